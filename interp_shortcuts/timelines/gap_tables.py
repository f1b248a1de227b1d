"""Joint ablations and pruning of one run as tables, at the last step where they were measured.

What is ablated, and what it costs, is measured in `measures/attribution`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from interp_shortcuts.timelines.layout import measured_part

JOINTS = (("role_", "role_set"), ("", "component_set"))
"""Heroes and bloats as `RolePruning` finds them, then sets of one's own (`JointImportance`): what
the names of variables begin with, and the dim."""
PRUNED = "pruned_exact_match"

JOINT_COLUMNS = (
    *("component_set", "joint_drop", "joint_low", "joint_high"),
    *("sum_of_drops", "sum_low", "sum_high", "super_additivity", "n", "step"),
)
PRUNING_COLUMNS = ("pruned_kind", "k", "split", "exact_match", "low", "high", "n", "step")


def joint_table(data: xr.Dataset) -> pd.DataFrame:
    """What taking a set away at once costs, against the sum of its members' single costs.

    Returns:
        A row a set, with `JOINT_COLUMNS`: drops of exact match (fractions) with their 95%
        intervals, and their ratio (infinite where the sum is 0 and the joint drop is not; NaN where
        both are 0, and where there is no member). Empty if nothing was measured.
    """
    rows: dict[str, dict[str, Any]] = {}
    for prefix, dim in JOINTS:
        joint, single = f"{prefix}joint_drop", f"{prefix}sum_of_drops"
        if not {joint, single} <= set(data.data_vars):
            continue
        array = measured_part(data[joint])
        step = _last_step(array)
        for label in array[dim].to_numpy().tolist() if step is not None else ():
            at = {"step": step, dim: label}
            row = {
                "component_set": str(label),
                "joint_drop": _value(data, joint, at),
                **_ends(data, joint, at, "joint"),
                "sum_of_drops": _value(data, single, at),
                **_ends(data, single, at, "sum"),
                "super_additivity": _value(data, f"{prefix}super_additivity", at),
                "n": _examples(data, at, "pruned_n" if prefix else "joint_n"),
                "step": step,
            }
            rows.setdefault(row["component_set"], row)
    if not rows:
        return _empty(JOINT_COLUMNS, texts=("component_set",))
    return pd.DataFrame(list(rows.values()), columns=list(JOINT_COLUMNS))


def pruning_table(data: xr.Dataset) -> pd.DataFrame:
    """The exact match that is left when the k largest of a kind are taken away at once.

    Returns:
        A row for each kind, k and split, with `PRUNING_COLUMNS`; what is undefined (a run has
        fewer than k of that kind) is left out. Empty if nothing was measured.
    """
    if PRUNED not in data:
        return _empty(PRUNING_COLUMNS, texts=("pruned_kind", "split"))
    array = measured_part(data[PRUNED])
    step = _last_step(array)
    if step is None:
        return _empty(PRUNING_COLUMNS, texts=("pruned_kind", "split"))
    rows = []
    for kind in array["pruned_kind"].to_numpy().tolist():
        for split in array["split"].to_numpy().tolist():
            for k in array["k"].to_numpy().tolist():
                at = {"step": step, "pruned_kind": kind, "split": split, "k": k}
                value = float(array.sel(at))
                if not np.isfinite(value):
                    continue
                rows.append(
                    {
                        "pruned_kind": str(kind),
                        "k": int(k),
                        "split": str(split),
                        "exact_match": value,
                        **_ends(data, PRUNED, at),
                        "n": _examples(data, at, "pruned_n"),
                        "step": step,
                    }
                )
    return pd.DataFrame(rows, columns=list(PRUNING_COLUMNS))


def last_value(data: xr.Dataset, name: str) -> dict[str, Any]:
    """A number of the whole model at its last measured step: `value`, `low`, `high`, `n`, `step`.

    NaN, and no step, where it was not measured.
    """
    nothing = {"value": np.nan, "low": np.nan, "high": np.nan, "n": None, "step": None}
    if name not in data or set(measured_part(data[name]).dims) != {"step"}:
        return nothing
    step = _last_step(measured_part(data[name]))
    if step is None:
        return nothing
    at = {"step": step}
    return {
        "value": _value(data, name, at),
        **_ends(data, name, at),
        "n": _examples(data, at, "n_examples"),
        "step": step,
    }


def _last_step(array: xr.DataArray) -> int | None:
    """The last step with a value; an infinite one counts. None for none."""
    others = [dim for dim in array.dims if dim != "step"]
    known = ~np.isnan(array.transpose("step", *others).to_numpy().astype(np.float64))
    taken = np.flatnonzero(known.reshape(array.sizes["step"], -1).any(axis=1))
    return int(array["step"].to_numpy()[taken[-1]]) if taken.size else None


def _value(data: xr.Dataset, name: str, at: dict[str, Any]) -> float:
    if name not in data:
        return float("nan")
    array = measured_part(data[name])
    return float(array.sel({dim: label for dim, label in at.items() if dim in array.dims}))


def _ends(data: xr.Dataset, name: str, at: dict[str, Any], prefix: str = "") -> dict[str, float]:
    names = {end: f"{prefix}_{end}" if prefix else end for end in ("low", "high")}
    interval = f"{name}_interval"
    return {own: _value(data, interval, {**at, "bound": end}) for end, own in names.items()}


def _examples(data: xr.Dataset, at: dict[str, Any], own: str) -> int | None:
    """Number of examples, of the variable's own measure if it says so; None where nothing does."""
    for name in (own, "n_examples"):
        if name in data and set(measured_part(data[name]).dims) <= set(at):
            value = _value(data, name, at)
            return int(value) if np.isfinite(value) else None
    return None


def _empty(columns: tuple[str, ...], *, texts: tuple[str, ...]) -> pd.DataFrame:
    table = pd.DataFrame(columns=list(columns))
    return table.astype({name: str if name in texts else float for name in columns})
