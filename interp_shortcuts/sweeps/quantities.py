"""Which curves of a timeline are laid over each other, seed on seed, and how they are read.

Heads of one layer have no identity over seeds: which of two takes the shortcut is chance. So in
each seed the heads of a layer are put in order by the QK Spearman that they have at the onset,
largest in size first, and that order is kept for every quantity and step. MLPs and sets keep their
names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from interp_shortcuts.timelines.component_curves import DIRECTION, SPLIT, Reading, component_curves
from interp_shortcuts.timelines.layout import measured_part

ORDERED_BY = "qk_spearman"
"""The variable whose size at the onset puts the heads of a layer in order."""
_HEAD = re.compile(r"L(\d+)\.H(\d+)")


@dataclass(frozen=True)
class Quantity:
    """One variable of a timeline, read at some labels.

    Attributes:
        name: Its name in the aligned table.
        measure: The variable.
        labels: The label that is read of each dim, e.g. `{"split": "adversarial"}`.
        words: What it is called in pictures.
    """

    name: str
    measure: str
    words: str
    labels: Mapping[str, str] = field(default_factory=dict)


QUANTITIES = (
    Quantity("adversarial_accuracy", "accuracy", "adversarial accuracy", {"split": "adversarial"}),
    Quantity("validation_accuracy", "accuracy", "validation accuracy", {"split": "validation"}),
    Quantity("qk_spearman", "qk_spearman", "QK Spearman", {"split": SPLIT}),
    Quantity("ov_class_fraction", "ov_class_fraction", "OV class fraction", {"split": SPLIT}),
    Quantity("rule_transfer", "rule_transfer", "rule transfer", {"direction": DIRECTION}),
    Quantity(
        "shortcut_transfer", "shortcut_transfer", "shortcut transfer", {"direction": DIRECTION}
    ),
    Quantity("gradient_cosine", "gradient_cosine", "gradient cosine", {"part": "model"}),
    Quantity(
        "gradient_excess", "gradient_excess", "gradient amplification / floor", {"part": "model"}
    ),
)
"""What is aligned unless one asks for something else."""


@dataclass(frozen=True, eq=False)
class SeedCurve:
    """One quantity of one component in one run; undefined is NaN."""

    component: str
    """Empty for the whole model."""
    steps: np.ndarray
    values: np.ndarray


def seed_curves(data: xr.Dataset, quantity: Quantity, names: Mapping[str, str]) -> list[SeedCurve]:
    """The curve of each component; none if the quantity was not measured.

    Args:
        data: A timeline's dataset.
        quantity: What is read.
        names: What heads are called in this run, from `names_of_heads`.
    """
    if quantity.measure not in data:
        return []
    labels = {"split": "", "direction": "", "part": ""} | dict(quantity.labels)
    array = measured_part(data[quantity.measure])
    if {"step", "component"} <= set(array.dims) or {"step", "layer", "head"} <= set(array.dims):
        found = component_curves(data, Reading(quantity.measure, quantity.labels))
        return [
            SeedCurve(names.get(curve.component, curve.component), curve.steps, curve.values)
            for curve in found
        ]
    for dim in array.dims:
        if dim == "step":
            continue
        if labels.get(str(dim), "") not in array[dim]:
            return []
        array = array.sel({dim: labels[str(dim)]})
    steps = array["step"].to_numpy().astype(np.int64)
    return [SeedCurve("", steps, array.to_numpy().astype(np.float64))]


def names_of_heads(data: xr.Dataset, onset: int) -> dict[str, str]:
    """What each head is called over seeds: `L0.H1` may be `L0 head 1`, the first of its layer.

    Empty, so that heads keep their own names, when QK Spearman was not measured or is undefined.
    """
    by_layer: dict[str, list[tuple[float, str]]] = {}
    for curve in component_curves(data, Reading(ORDERED_BY, {"split": SPLIT})):
        match = _HEAD.fullmatch(curve.component)
        before = np.flatnonzero((curve.steps <= onset) & np.isfinite(curve.values))
        if match is None or not before.size:
            return {}
        size = abs(float(curve.values[before[-1]]))
        by_layer.setdefault(match[1], []).append((-size, curve.component))
    return {
        head: f"L{layer} head {rank}"
        for layer, heads in by_layer.items()
        for rank, (_, head) in enumerate(sorted(heads), start=1)
    }
