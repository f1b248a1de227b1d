"""What a panel of the timeline consists of, and the heads and rule that all pictures agree on.

Which panels there are is in `panels.py`; how they are drawn, in `timeline.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from interp_shortcuts.models.sites import Component
from interp_shortcuts.plots.palette import Style
from interp_shortcuts.timelines.component_curves import ABLATION, DIRECTION


@dataclass(frozen=True, eq=False)
class Line:
    """One line over the steps at which it was measured.

    Attributes:
        group: Legend group: the component or split; one click toggles it in every panel.
        label: What the hover calls it.
        style: Colour, dash, marker.
        steps: The steps at which the quantity was measured; the line connects them.
        values: One value per step.
        low: Lower end of the 95% interval, if there is one.
        high: Upper end.
        n: Number of examples per step, if the value is a mean over examples.
        quantity: What the hover calls the value; empty for the panel's quantity.
        faint: Drawn thinner and dashed: a second form of the same quantity.
        hidden: Not shown at first sight; a click on its legend entry shows it.
    """

    group: str
    label: str
    style: Style
    steps: tuple[int, ...]
    values: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    n: np.ndarray | None = None
    quantity: str = ""
    faint: bool = False
    hidden: bool = False


@dataclass(frozen=True, eq=False)
class Reference:
    """A level to read lines against: chance, or a ceiling.

    Attributes:
        text: The label at its right end.
        values: One value per step of the timeline.
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
        measure: The variable whose half-way steps are marked on the lines; empty for none.
        on: The split or direction that the variable is read on; empty if neither applies.
        lines: What is drawn.
        references: Levels to read against.
        span: Fixed range of the y axis; None for automatic.
        log: Whether the y axis is logarithmic.
        legend: Whether lines are splits, heads, or heads, MLPs and sets of them ("causal"); None
            for a panel with one line, which needs no legend.
        missing: Why the panel is left out; None if it is drawn.
        notes: What is undefined inside a drawn panel.
    """

    key: str
    title: str
    reading: str
    quantity: str
    about: str = ""
    measure: str = ""
    on: str = ""
    lines: tuple[Line, ...] = ()
    references: tuple[Reference, ...] = ()
    span: tuple[float, float] | None = None
    log: bool = False
    legend: Literal["split", "component", "causal"] | None = "component"
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
        direction: Direction (target<-source) of the transfer panels.
        ablation: Ablation of the panels that show what it costs.
        part: Part of the model whose gradients are shown.
    """

    feature: str | None = None
    label_feature: str | None = None
    split: str = "validation"
    activation_form: bool = True
    direction: str = DIRECTION
    ablation: str = ABLATION
    part: str = "model"


def heads(data: xr.Dataset) -> list[tuple[str, int, int]]:
    """Name, layer and head of every head in the dataset, in the order that fixes colours."""
    if "layer" not in data.coords or "head" not in data.coords:
        return []
    return [
        (str(Component(int(layer), "head", int(head))), int(layer), int(head))
        for layer in data["layer"].values
        for head in data["head"].values
    ]


def components(data: xr.Dataset) -> list[str]:
    """Every component in the dataset, in the order that fixes colours: heads, MLPs, sets."""
    found = [name for name, _, _ in heads(data)]
    if "component" in data.coords:
        found += [str(name) for name in data["component"].values]
    return list(dict.fromkeys(found))


def rule_name(data: xr.Dataset) -> str:
    """The name of the task's rule, e.g. `max_parity`; empty if the dataset does not say."""
    try:
        task = json.loads(data.attrs.get("task", "") or "{}")
    except json.JSONDecodeError:
        task = {}
    rule = task.get("rule") if isinstance(task, dict) else None
    return str(rule or data.attrs.get("task_name", ""))
