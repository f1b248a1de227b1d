"""How the arrays of several measures lie in one dataset, and how they are taken apart again.

Measures that share a dim but not its labels (QK reads `magnitude`, OV reads `parity`; attention is
measured on two splits, accuracy on five; patching is done at every tenth step) are padded to the
union of the labels: with NaN, integers as floats. Each padded variable says in its attribute
`covers` (JSON) which labels it was measured for, so that padding is never taken for an undefined
value, and in `measured_dtype` what it was before.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.tasks.any_config import NOISE_GROUPS

_SHORTCUT_SPLITS = ("train", "consistent", "anti", "validation", "adversarial")
LABEL_ORDER = {
    "split": (*_SHORTCUT_SPLITS, "clean", "noisy", "noisy_true", "test"),
    "group": ("consistent", "anti", *NOISE_GROUPS),
}
"""Labels that come in this order whatever is measured first; others in order of appearance."""


def measured_part(array: xr.DataArray) -> xr.DataArray:
    """The array without the labels that it was not measured for, and of the measured type."""
    covers = json.loads(array.attrs.get("covers", "{}"))
    array = array.sel({dim: labels for dim, labels in covers.items() if dim in array.dims})
    dtype = array.attrs.get("measured_dtype")
    return array.astype(dtype, keep_attrs=True) if dtype else array


def put_together(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """One dataset of the parts, each what one measure gave, at the steps of all of them.

    Raises:
        MeasureError: If two parts give the same variable, or sizes of a dim that do not fit.
    """
    homes: dict[Hashable, str] = {}
    for part in parts:
        for name, array in part.data_vars.items():
            measure = f"{array.attrs.get('measure')} ({array.attrs.get('measure_key')})"
            if name in homes:
                raise MeasureError(
                    f"Two measures give the variable `{name}`: {homes[name]} and {measure}. "
                    "Track them one at a time, or give one measure a tuple of features."
                )
            homes[name] = measure
    labels = _all_labels(parts)
    notes = _notes(parts, labels)
    padded = [_padded(part, labels, notes) for part in parts]
    try:
        return xr.merge(padded, join="exact", compat="broadcast_equals", combine_attrs="override")
    except ValueError as error:
        raise MeasureError(f"The measures do not fit into one timeline: {error}") from error


def take_apart(data: xr.Dataset) -> dict[str, xr.Dataset]:
    """What each measure gave, by `measure_key`: the inverse of `put_together`.

    Variables that say no measure (a user's own) are left out.
    """
    names: dict[str, list[Hashable]] = {}
    for name, array in data.data_vars.items():
        if "measure_key" in array.attrs:
            names.setdefault(str(array.attrs["measure_key"]), []).append(name)
    return {
        key: xr.Dataset({name: _unpadded(data[name]) for name in of_measure})
        for key, of_measure in names.items()
    }


def _all_labels(parts: Sequence[xr.Dataset]) -> dict[Hashable, np.ndarray]:
    """For each labelled dim on which parts differ, the union of their labels."""
    found: dict[Hashable, list[np.ndarray]] = {}
    for part in parts:
        for dim in (dim for dim in part.dims if dim in part.coords):
            found.setdefault(dim, []).append(np.asarray(part[dim].to_numpy()))
    differing = {}
    for dim, labels in found.items():
        if all(np.array_equal(labels[0], other) for other in labels[1:]):
            continue
        union = list(dict.fromkeys(label for array in labels for label in array.tolist()))
        if all(array.dtype.kind in "iuf" for array in labels):
            union.sort()
        order = LABEL_ORDER.get(str(dim), ())
        union.sort(key=lambda label: order.index(label) if label in order else len(order))
        differing[dim] = np.array(union)
    return differing


def _notes(
    parts: Sequence[xr.Dataset], dims: Collection[Hashable]
) -> dict[Hashable, dict[Any, Any]]:
    """What the parts together note on each label of these dims, e.g. the weights' hash at a step.

    By coordinate that is no label itself, then by label.
    """
    found: dict[Hashable, dict[Any, Any]] = {}
    for part in parts:
        for name, coord in part.coords.items():
            if len(coord.dims) == 1 and name not in part.dims and coord.dims[0] in dims:
                own = zip(part[coord.dims[0]].to_numpy().tolist(), coord.to_numpy(), strict=True)
                found[name] = dict(own) | found.get(name, {})
    return found


def _padded(
    part: xr.Dataset,
    labels: Mapping[Hashable, np.ndarray],
    notes: Mapping[Hashable, Mapping[Any, Any]],
) -> xr.Dataset:
    grow = {
        dim: union
        for dim, union in labels.items()
        if dim in part.coords and not np.array_equal(part[dim].to_numpy(), union)
    }
    if not grow:
        return part
    own = {dim: part[dim].to_numpy().tolist() for dim in grow}
    texts = {name: "" for name in part.coords if part[name].dtype.kind == "U" and name not in grow}
    wide = part.reindex(grow, fill_value=texts) if texts else part.reindex(grow)
    for name in (name for name in notes if name in part.coords):
        dim = part[name].dims[0]
        if dim in grow:  # what one part notes on a label holds for all; a part's own comes first
            own_notes = zip(own[dim], part[name].to_numpy(), strict=True)
            known = {**notes[name], **dict(own_notes)}
            pairs = zip(grow[dim].tolist(), wide[name].to_numpy(), strict=True)
            values = np.array([known.get(label, padding) for label, padding in pairs])
            wide = wide.assign_coords({name: (dim, values, part[name].attrs)})
    for name, array in part.data_vars.items():
        covers = {str(dim): own[dim] for dim in array.dims if dim in grow}
        if covers:
            wide[name].attrs["covers"] = json.dumps(covers)
            if wide[name].dtype != array.dtype:
                wide[name].attrs["measured_dtype"] = str(array.dtype)
    return wide


def _unpadded(array: xr.DataArray) -> xr.DataArray:
    own = measured_part(array).copy()
    own.attrs = {name: value for name, value in own.attrs.items() if name not in _PADDING_ATTRS}
    return own


_PADDING_ATTRS = ("covers", "measured_dtype")
