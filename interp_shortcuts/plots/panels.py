"""What each panel of the timeline shows: selects lines, intervals and references from a dataset.

A panel whose variable is missing or undefined everywhere keeps its place in the list as a reason,
so that nothing disappears in silence. How panels are drawn is left to `timeline.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import xarray as xr

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.sites import Component
from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import Style, component_style, split_style
from interp_shortcuts.timelines.layout import measured_part

LOSS_SPLITS = ("consistent", "anti", "validation", "adversarial")


@dataclass(frozen=True, eq=False)
class Line:
    """One line over the steps.

    Attributes:
        group: Legend group: the component or split; one click toggles it in every panel.
        label: What the hover calls it.
        style: Colour, dash, marker.
        values: One value per step.
        low: Lower end of the 95% interval, if there is one.
        high: Upper end.
        n: Number of examples per step, if the value is a mean over examples.
        faint: Drawn thinner and dashed: a second form of the same quantity.
    """

    group: str
    label: str
    style: Style
    values: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    n: np.ndarray | None = None
    faint: bool = False


@dataclass(frozen=True, eq=False)
class Reference:
    """A level to read lines against: chance, or a ceiling.

    Attributes:
        text: The label at its right end.
        values: One value per step.
        group: Legend group of the component that it belongs to; None for all.
        colour: None for grey.
    """

    text: str
    values: np.ndarray
    group: str | None = None
    colour: str | None = None


@dataclass(frozen=True)
class Panel:
    """One panel of the timeline, or the reason why it is left out.

    Attributes:
        key: Short name, used to choose panels.
        title: Heading, markup-safe.
        reading: How to read it, in one short line.
        quantity: What the hover calls the value.
        about: The feature it is about; empty if there is none.
        lines: What is drawn.
        references: Levels to read against.
        span: Fixed range of the y axis; None for automatic.
        log: Whether the y axis is logarithmic.
        legend: Whether lines are splits or components.
        missing: Why the panel is left out; None if it is drawn.
        notes: What is undefined inside a drawn panel.
    """

    key: str
    title: str
    reading: str
    quantity: str
    about: str = ""
    lines: tuple[Line, ...] = ()
    references: tuple[Reference, ...] = ()
    span: tuple[float, float] | None = None
    log: bool = False
    legend: Literal["split", "component"] = "component"
    missing: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Choice:
    """What the caller asked to see.

    Attributes:
        feature: Feature of the QK panels; None for the first that was measured.
        label_feature: Feature of the OV panels; None for the first that was measured.
        split: Split of the panels that read activations.
        activation_form: Whether the activation form of QK Spearman is drawn too.
    """

    feature: str | None = None
    label_feature: str | None = None
    split: str = "validation"
    activation_form: bool = True


def heads(data: xr.Dataset) -> list[tuple[str, int, int]]:
    """Name, layer and head of every head in the dataset, in the order that fixes colours."""
    if "layer" not in data.coords or "head" not in data.coords:
        return []
    return [
        (str(Component(int(layer), "head", int(head))), int(layer), int(head))
        for layer in data["layer"].values
        for head in data["head"].values
    ]


def measured(variable: xr.DataArray, dim: str) -> list[str]:
    """Labels along `dim` that the variable was measured for, in order."""
    return [str(label) for label in measured_part(variable)[dim].values]


def _pick(variable: xr.DataArray, dim: str, wanted: str | None) -> str | None:
    choices = measured(variable, dim)
    if wanted is None:
        return choices[0] if choices else None
    return wanted if wanted in choices else None


def _why_missing(data: xr.Dataset, name: str) -> str | None:
    if name not in data:
        return f"the variable `{name}` is not in this timeline"
    if bool(data[name].isnull().all()):
        meaning = plain(data[name].attrs.get("nan_means", "no reason given"))
        return f"`{name}` is undefined at every step ({meaning})"
    return None


def _interval(data: xr.Dataset, name: str, where: dict[str, object]) -> dict[str, Any]:
    if f"{name}_interval" not in data:
        return {}
    interval = data[f"{name}_interval"].sel(where)
    return {
        "low": interval.sel(bound="low").values.astype(np.float64),
        "high": interval.sel(bound="high").values.astype(np.float64),
    }


def _examples(data: xr.Dataset, split: str) -> dict[str, Any]:
    if "n_examples" not in data:
        return {}
    examples = data["n_examples"].sel(split=split)
    return {"n": np.broadcast_to(examples.values, (data.sizes["step"],)).astype(np.float64)}


def _finish(
    panel: Panel, lines: Sequence[Line], nan_means: str, references: Sequence[Reference]
) -> Panel:
    """The panel with the lines that have a value; the others become notes."""
    kept = tuple(line for line in lines if np.isfinite(line.values).any())
    absent = [line.label for line in lines if not np.isfinite(line.values).any()]
    if not kept:
        return replace(panel, missing=f"undefined at every step ({nan_means})")
    notes = (f"{', '.join(absent)}: undefined at every step ({nan_means})",) if absent else ()
    groups = {line.group for line in kept}
    shown = tuple(r for r in references if r.group is None or r.group in groups)
    return replace(panel, lines=kept, references=shown, notes=notes)


def _by_split(data: xr.Dataset, name: str, splits: Sequence[str], panel: Panel) -> Panel:
    lines = []
    for split in splits:
        if split not in data["split"].values:
            continue
        where: dict[str, object] = {"split": split}
        lines.append(
            Line(
                group=plain(split),
                label=plain(split),
                style=split_style(split),
                values=data[name].sel(where).values.astype(np.float64),
                **_interval(data, name, where),
                **_examples(data, split),
            )
        )
    return _finish(panel, lines, plain(data[name].attrs.get("nan_means", "no reason given")), ())


def _by_head(
    data: xr.Dataset,
    name: str,
    selection: dict[str, object],
    panel: Panel,
    *,
    references: Sequence[Reference] = (),
    extra: Sequence[Line] = (),
) -> Panel:
    lines = []
    for index, (head, layer, number) in enumerate(heads(data)):
        where = {"layer": layer, "head": number, **selection}
        split = selection.get("split")
        lines.append(
            Line(
                group=head,
                label=head,
                style=component_style(index),
                values=data[name].sel(where).values.astype(np.float64),
                **_interval(data, name, where),
                **(_examples(data, str(split)) if split is not None else {}),
            )
        )
    reason = plain(data[name].attrs.get("nan_means", "no reason given"))
    return _finish(panel, [*lines, *extra], reason, references)


def accuracy_panel(data: xr.Dataset, _: Choice) -> Panel:
    """Accuracy by split, with the level of guessing."""
    panel = Panel(
        "accuracy",
        "Accuracy by split",
        "adversarial: the shortcut is always wrong",
        "accuracy",
        span=(-0.04, 1.04),
        legend="split",
    )
    if reason := _why_missing(data, "accuracy"):
        return replace(panel, missing=reason)
    drawn = _by_split(data, "accuracy", [str(s) for s in data["split"].values], panel)
    if drawn.missing or "chance" not in data.attrs:
        return drawn
    chance = np.full(data.sizes["step"], float(data.attrs["chance"]))
    return replace(drawn, references=(Reference("guessing", chance),))


def loss_panel(data: xr.Dataset, _: Choice) -> Panel:
    """Mean loss of the two groups of training examples and of the held-out splits."""
    panel = Panel(
        "loss",
        "Loss by group (nats, log scale)",
        "saturation: the consistent group has little left",
        "loss (nats)",
        log=True,
        legend="split",
    )
    if reason := _why_missing(data, "loss"):
        return replace(panel, missing=reason)
    return _by_split(data, "loss", LOSS_SPLITS, panel)


def qk_panel(data: xr.Dataset, choice: Choice) -> Panel:
    """QK Spearman: does a head look for large values of the feature?"""
    panel = Panel("qk", "QK Spearman", "+1: the head looks for the largest", "QK Spearman")
    if reason := _why_missing(data, "qk_spearman"):
        return replace(panel, missing=reason)
    feature = _pick(data["qk_spearman"], "feature", choice.feature)
    if feature is None:
        return replace(panel, missing=f"the feature {plain(choice.feature)!r} was not measured")
    name = plain(feature)
    extra = _activation_lines(data, feature, choice.split) if choice.activation_form else []
    dashed = f"; dashed: activations, {plain(choice.split)}" if extra else ""
    panel = Panel(
        "qk",
        f"QK Spearman with {name}",
        f"+1: looks for large {name}{dashed}",
        f"QK Spearman with {name}",
        about=feature,
        span=(-1.08, 1.08),
    )
    zero = Reference("", np.zeros(data.sizes["step"]))
    selection: dict[str, object] = {"feature": feature}
    return _by_head(data, "qk_spearman", selection, panel, references=[zero], extra=extra)


def _activation_lines(data: xr.Dataset, feature: str, split: str) -> list[Line]:
    name = "qk_spearman_activation"
    if name not in data or split not in measured(data[name], "split"):
        return []
    lines = []
    for index, (head, layer, number) in enumerate(heads(data)):
        where: dict[str, object] = {
            "layer": layer,
            "head": number,
            "feature": feature,
            "split": split,
        }
        examples = _examples(data, split)
        if examples and f"{name}_undefined" in data:
            examples = {"n": examples["n"] - data[f"{name}_undefined"].sel(where).values}
        line = Line(
            group=head,
            label=f"{head}, activations on {plain(split)}",
            style=component_style(index),
            values=data[name].sel(where).values.astype(np.float64),
            faint=True,
            **_interval(data, name, where),
            **examples,
        )
        lines.append(line)
    return lines


def _ov_feature(data: xr.Dataset, name: str, choice: Choice) -> str | None:
    return _pick(data[name], "feature", choice.label_feature)


def ov_fraction_panel(data: xr.Dataset, choice: Choice) -> Panel:
    """Between-class share of the variance of what a head writes, with its chance level."""
    name = "ov_class_fraction"
    panel = Panel(
        "ov_fraction", "OV class fraction", "share of what is written", "OV class fraction"
    )
    if reason := _why_missing(data, name):
        return replace(panel, missing=reason)
    feature = _ov_feature(data, name, choice)
    if feature is None:
        return replace(
            panel, missing=f"the feature {plain(choice.label_feature)!r} was not measured"
        )
    panel = Panel(
        "ov_fraction",
        f"OV class fraction, {plain(feature)}",
        "1: all that the head writes is the class",
        f"OV class fraction, {plain(feature)}",
        about=feature,
        span=(-0.04, 1.04),
    )
    references = []
    if f"{name}_chance" in data:
        chance = float(data[f"{name}_chance"].sel(feature=feature))
        if np.isfinite(chance):
            level = np.full(data.sizes["step"], chance)
            references.append(Reference(f"chance {chance:.2f}", level))
    return _by_head(data, name, {"feature": feature}, panel, references=references)


def ov_spearman_panel(data: xr.Dataset, choice: Choice) -> Panel:
    """Rank correlation of what a head writes with the class, with the ceiling that ties set."""
    name = "ov_spearman"
    panel = Panel("ov_spearman", "OV Spearman", "read against its ceiling", "OV Spearman")
    if reason := _why_missing(data, name):
        return replace(panel, missing=reason)
    feature = _ov_feature(data, name, choice)
    if feature is None:
        return replace(
            panel, missing=f"the feature {plain(choice.label_feature)!r} was not measured"
        )
    panel = Panel(
        "ov_spearman",
        f"OV Spearman with {plain(feature)}",
        "ceiling: the most that ties allow",
        f"OV Spearman with {plain(feature)}",
        about=feature,
        span=(-1.08, 1.08),
    )
    references = [Reference("", np.zeros(data.sizes["step"])), *_ceilings(data, feature)]
    return _by_head(data, name, {"feature": feature}, panel, references=references)


def _ceilings(data: xr.Dataset, feature: str) -> list[Reference]:
    """One grey ceiling where all heads share it at every step, else one per head."""
    if "ov_spearman_ceiling" not in data:
        return []
    ceiling = data["ov_spearman_ceiling"].sel(feature=feature)
    defined = ceiling.values[np.isfinite(ceiling.values)]
    if not defined.size:
        return []
    if np.ptp(defined) < 5e-3:
        level = np.full(data.sizes["step"], float(defined.max()))
        return [Reference(f"ceiling {level[0]:.2f}", level)]
    return [
        Reference(
            "ceiling (dotted)" if index == 0 else "",
            ceiling.sel(layer=layer, head=number).values.astype(np.float64),
            group=head,
            colour=component_style(index).colour,
        )
        for index, (head, layer, number) in enumerate(heads(data))
    ]


def attention_to_max_panel(data: xr.Dataset, choice: Choice) -> Panel:
    """Mean attention weight from "=" on the maximum."""
    name = "attention_to_max"
    split = plain(choice.split)
    panel = Panel(
        "attention_to_max",
        "Attention from '=' to the maximum",
        f"mean weight over the {split} examples",
        "attention to the maximum",
        span=(-0.04, 1.04),
    )
    if reason := _why_missing(data, name):
        return replace(panel, missing=reason)
    if choice.split not in measured(data[name], "split"):
        return replace(panel, missing=f"the split {split!r} was not measured")
    return _by_head(data, name, {"split": choice.split}, panel)


def attention_to_first_panel(data: xr.Dataset, choice: Choice) -> Panel:
    """Mean attention weight from "=" on position 0, where first-element shortcuts look."""
    name = "attention"
    split = plain(choice.split)
    panel = Panel(
        "attention_to_first",
        "Attention from '=' to position 0",
        f"mean weight over the {split} examples",
        "attention to position 0",
        span=(-0.04, 1.04),
    )
    if reason := _why_missing(data, name):
        return replace(panel, missing=reason)
    if choice.split not in measured(data[name], "split"):
        return replace(panel, missing=f"the split {split!r} was not measured")
    return _by_head(data, name, {"split": choice.split, "position": 0}, panel)


PANELS: dict[str, Callable[[xr.Dataset, Choice], Panel]] = {
    "accuracy": accuracy_panel,
    "loss": loss_panel,
    "qk": qk_panel,
    "ov_fraction": ov_fraction_panel,
    "ov_spearman": ov_spearman_panel,
    "attention_to_max": attention_to_max_panel,
    "attention_to_first": attention_to_first_panel,
}


def rule_name(data: xr.Dataset) -> str:
    """The name of the task's rule, e.g. `max_parity`; empty if the dataset does not say."""
    try:
        task = json.loads(data.attrs.get("task", "") or "{}")
    except json.JSONDecodeError:
        task = {}
    rule = task.get("rule") if isinstance(task, dict) else None
    return str(rule or data.attrs.get("task_name", ""))


def select_panels(
    data: xr.Dataset, choice: Choice, names: Sequence[str] | None = None
) -> list[Panel]:
    """The panels of a timeline, in order.

    Args:
        data: A timeline's dataset.
        choice: Which feature, split and forms are shown.
        names: Keys of `PANELS`; None for all (position 0 only for first-element rules).

    Raises:
        ConfigError: If a name is unknown.
    """
    if names is None:
        first = rule_name(data).startswith("first")
        names = [name for name in PANELS if first or name != "attention_to_first"]
    for name in names:
        if name not in PANELS:
            raise ConfigError(f"`panels` must be among {', '.join(PANELS)}; got {name!r}.")
    return [PANELS[name](data, choice) for name in names]
