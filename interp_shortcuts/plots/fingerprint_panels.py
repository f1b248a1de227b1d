"""Panels of the circuit fingerprints of heads: where they look (QK, attention), what they write."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import component_style
from interp_shortcuts.plots.panel import Choice, Line, Panel, Reference, heads
from interp_shortcuts.plots.panel_lines import by_head, counts, curve, measured, pick, why_missing


def qk_panel(data: xr.Dataset, choice: Choice) -> Panel:
    """QK Spearman: does a head look for large values of the feature?"""
    panel = Panel("qk", "QK Spearman", "+1: the head looks for the largest", "QK Spearman")
    if reason := why_missing(data, "qk_spearman"):
        return replace(panel, missing=reason)
    feature = pick(data["qk_spearman"], "feature", choice.feature)
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
        measure="qk_spearman",
        span=(-1.08, 1.08),
    )
    zero = Reference("", np.zeros(data.sizes["step"]))
    selection: dict[str, object] = {"feature": feature}
    return by_head(data, "qk_spearman", selection, panel, references=[zero], extra=extra)


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
        found = curve(data, name, where)
        examples = counts(data, "n_examples", {"split": split}, found["steps"])
        undefined = counts(data, f"{name}_undefined", where, found["steps"])
        if examples and undefined:
            examples = {"n": examples["n"] - undefined["n"]}
        line = Line(
            group=head,
            label=f"{head}, activations on {plain(split)}",
            style=component_style(index),
            faint=True,
            **found,
            **examples,
        )
        lines.append(line)
    return lines


def _ov_feature(data: xr.Dataset, name: str, choice: Choice) -> str | None:
    return pick(data[name], "feature", choice.label_feature)


def ov_fraction_panel(data: xr.Dataset, choice: Choice) -> Panel:
    """Between-class share of the variance of what a head writes, with its chance level."""
    name = "ov_class_fraction"
    panel = Panel(
        "ov_fraction", "OV class fraction", "share of what is written", "OV class fraction"
    )
    if reason := why_missing(data, name):
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
        measure=name,
        span=(-0.04, 1.04),
    )
    references = []
    if f"{name}_chance" in data:
        chance = float(data[f"{name}_chance"].sel(feature=feature))
        if np.isfinite(chance):
            level = np.full(data.sizes["step"], chance)
            references.append(Reference(f"chance {chance:.2f}", level))
    return by_head(data, name, {"feature": feature}, panel, references=references)


def ov_spearman_panel(data: xr.Dataset, choice: Choice) -> Panel:
    """Rank correlation of what a head writes with the class, with the ceiling that ties set."""
    name = "ov_spearman"
    panel = Panel("ov_spearman", "OV Spearman", "read against its ceiling", "OV Spearman")
    if reason := why_missing(data, name):
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
        measure=name,
        span=(-1.08, 1.08),
    )
    references = [Reference("", np.zeros(data.sizes["step"])), *_ceilings(data, feature)]
    return by_head(data, name, {"feature": feature}, panel, references=references)


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
        measure=name,
        on=choice.split,
        span=(-0.04, 1.04),
    )
    if reason := why_missing(data, name):
        return replace(panel, missing=reason)
    if choice.split not in measured(data[name], "split"):
        return replace(panel, missing=f"the split {split!r} was not measured")
    return by_head(data, name, {"split": choice.split}, panel)


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
    if reason := why_missing(data, name):
        return replace(panel, missing=reason)
    if choice.split not in measured(data[name], "split"):
        return replace(panel, missing=f"the split {split!r} was not measured")
    return by_head(data, name, {"split": choice.split, "position": 0}, panel)
