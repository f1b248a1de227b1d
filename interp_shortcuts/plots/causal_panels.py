"""Panels of the causal role of heads, MLPs and sets: what they carry, what they are needed for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.panel import Choice, Panel, Reference
from interp_shortcuts.plots.panel_lines import by_component, measured, why_missing
from interp_shortcuts.timelines.layout import measured_part

PATCHING, ABLATION_MEASURE = "CrossSplitPatching", "Ablation"
_DROP = "ablation_accuracy_drop"


def rule_transfer_panel(data: xr.Dataset, choice: Choice) -> Panel:
    """Share of pairs whose prediction moves to the source's true label."""
    return _transfer(data, choice, "rule", "true")


def shortcut_transfer_panel(data: xr.Dataset, choice: Choice) -> Panel:
    """Share of pairs whose prediction moves to the source's shortcut label."""
    return _transfer(data, choice, "shortcut", "shortcut")


def _transfer(data: xr.Dataset, choice: Choice, what: str, label: str) -> Panel:
    name = f"{what}_transfer"
    panel = Panel(
        name,
        f"{what.capitalize()} transfer of patched components",
        f"moves to the source's {label} label; dashed: disruption",
        f"{what} transfer",
        measure=name,
        on=choice.direction,
        span=(-0.04, 1.04),
        legend="causal",
    )
    if reason := why_missing(data, name, PATCHING):
        return replace(panel, missing=reason)
    if choice.direction not in measured(data[name], "direction"):
        return replace(panel, missing=f"the direction {plain(choice.direction)!r} was not measured")
    where = {"direction": choice.direction}
    return by_component(data, name, where, panel, n=f"{name}_n", beside="disruption")


def adversarial_ablation_panel(data: xr.Dataset, choice: Choice) -> Panel:
    """What ablation costs on adversarial examples, which only the rule answers."""
    return _ablation(data, choice, "adversarial", "needed for the rule; below 0: stood in its way")


def validation_ablation_panel(data: xr.Dataset, choice: Choice) -> Panel:
    """What ablation costs on validation examples, which the shortcut answers as well."""
    return _ablation(data, choice, "validation", "needed for the shortcut or the rule")


def _ablation(data: xr.Dataset, choice: Choice, split: str, reading: str) -> Panel:
    panel = Panel(
        f"ablation_{split}",
        f"{split.capitalize()} accuracy lost to ablation",
        f"{reading} ({plain(choice.ablation)} ablation)",
        f"{split} accuracy lost",
        measure=_DROP,
        on=split,
        legend="causal",
    )
    if reason := why_missing(data, _DROP, ABLATION_MEASURE):
        return replace(panel, missing=reason)
    for dim, label in (("split", split), ("ablation", choice.ablation)):
        if label not in measured(data[_DROP], dim):
            return replace(panel, missing=f"the {dim} {plain(label)!r} was not measured")
    # one range for both splits, so that they can be compared
    every = measured_part(data[_DROP]).sel(ablation=choice.ablation)
    span = (float(every.min()) - 0.06, float(every.max()) + 0.06)
    zero = Reference("", np.zeros(data.sizes["step"]))
    where = {"ablation": choice.ablation, "split": split}
    return by_component(
        data, _DROP, where, replace(panel, span=span), n="ablation_n", references=[zero]
    )
