"""Which variables of a timeline count as attribution and which as causal importance.

The measures themselves are in `measures/attribution`; how two of them are compared is
`attribution_gap`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import xarray as xr

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.timelines.layout import measured_part

_SINGLE = re.compile(r"L\d+\.(?:H\d+|mlp)")


@dataclass(frozen=True)
class GapReading:
    """One quantity of every component.

    Attributes:
        name: What it is called in tables and pictures, and in calls.
        variable: The variable of the timeline.
        labels: The label that is read of each further dim.
    """

    name: str
    variable: str
    labels: Mapping[str, str] = field(default_factory=dict)


def _named(*readings: GapReading) -> Mapping[str, GapReading]:
    return MappingProxyType({reading.name: reading for reading in readings})


METHODS = _named(
    GapReading("gradient norm W_V+W_O", "gradient_norm", {"reading": "W_V+W_O"}),
    GapReading("gradient norm W_V", "gradient_norm", {"reading": "W_V"}),
    GapReading("weight × gradient", "weight_gradient"),
    GapReading("activation × gradient", "activation_gradient"),
    GapReading("integrated gradients", "integrated_gradients"),
)
"""Attributions: what a gradient says of a component. Sizes; larger is more."""

REFERENCES = _named(
    GapReading("mean ablation", "exact_match_drop", {"ablation_kind": "mean"}),
    GapReading("zero ablation", "exact_match_drop", {"ablation_kind": "zero"}),
    GapReading("resample ablation", "exact_match_drop", {"ablation_kind": "resample"}),
    GapReading("mean ablation, loss", "loss_rise", {"ablation_kind": "mean"}),
    GapReading("Shapley", "shapley"),
)
"""Causal importance: what taking a component away costs. Signed: below 0, it stood in the way."""

NO_SPLIT = "none"
"""In the place of a split in a variable's attributes: no length qualified (`ood_examples`)."""

METHOD = "gradient norm W_V+W_O"
REFERENCE = "mean ablation"
"""The pair that the paper compares."""
LOSS_REFERENCE = "mean ablation, loss"
"""The reference that has an order before the model answers anything right."""


def method_named(name: str) -> GapReading:
    """The attribution of that name.

    Raises:
        MeasureError: If there is none; lists those there are.
    """
    return _choice("method", name, METHODS)


def reference_named(name: str) -> GapReading:
    """The importance of that name.

    Raises:
        MeasureError: If there is none; lists those there are.
    """
    return _choice("reference", name, REFERENCES)


def why_unread(data: xr.Dataset, reading: GapReading) -> str:
    """Why a quantity cannot be read of a timeline; empty if it can."""
    if reading.variable not in data:
        return f"{reading.variable} was not measured"
    array = measured_part(data[reading.variable])
    if array.attrs.get("split") == NO_SPLIT:
        return str(array.attrs.get("nan_means", "no length was asked"))
    if not {"step", "component"} <= set(array.dims):
        return f"{reading.variable} has not the dims step and component"
    for dim, label in reading.labels.items():
        if dim not in array.dims or label not in array[dim].to_numpy().tolist():
            return f"{reading.variable} was not measured for {dim.replace('_', ' ')} {label}"
    return ""


def why_not_asked(data: xr.Dataset) -> str:
    """Why a run was asked at no held-out length, so that it is to be excluded; empty if it was."""
    for reading in (*REFERENCES.values(), *METHODS.values()):
        if reading.variable in data and data[reading.variable].attrs.get("split") == NO_SPLIT:
            return why_unread(data, reading)
    return ""


def read(data: xr.Dataset, reading: GapReading, *, bound: str | None = None) -> xr.DataArray:
    """One quantity [step component] of single components, at the steps where it was measured.

    Sets of components are left out. A step at which no component has a value was not measured.

    Args:
        data: A timeline's dataset, of which `why_unread` says that it can be read.
        reading: What is read.
        bound: `"low"` or `"high"`: that end of its 95% interval in its place; all NaN where the
            timeline has no interval of it.
    """
    values = _selected(data, reading.variable, reading.labels)
    taken = np.isfinite(values.to_numpy()).any(axis=1)
    values = values.isel(step=np.flatnonzero(taken))
    if bound is None:
        return values
    name = f"{reading.variable}_interval"
    if name not in data:
        return xr.full_like(values, np.nan)
    ends = _selected(data, name, {**reading.labels, "bound": bound})
    return ends.reindex(step=values["step"], component=values["component"])


def _selected(data: xr.Dataset, name: str, labels: Mapping[str, str]) -> xr.DataArray:
    array = measured_part(data[name]).sel(dict(labels)).reset_coords(drop=True)
    single = [
        name for name in array["component"].to_numpy().tolist() if _SINGLE.fullmatch(str(name))
    ]
    array = array.sel(component=single).transpose("step", "component")
    return array.astype(np.float64)


def _choice(what: str, name: str, choices: Mapping[str, GapReading]) -> GapReading:
    if name not in choices:
        *others, last = map(repr, choices)
        raise MeasureError(f"`{what}` must be {', '.join(others)} or {last}; got {name!r}.")
    return choices[name]
