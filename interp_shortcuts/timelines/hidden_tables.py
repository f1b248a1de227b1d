"""Tables of what was measured under label noise, at the last step where it was measured.

Events over steps are found in `hidden_progress`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from interp_shortcuts.timelines.layout import measured_part

FINAL_COLUMNS = ("network", "acting", "group", "accuracy", "low", "high", "loss", "n", "step")
PARTITION_COLUMNS = ("score", "keep", "share", "group", "accuracy", "low", "high", "step")
_FILTERED = ("network", "acting", "group")
_KEPT = ("keep", "share", "group")
SPECTRA_COLUMNS = ("quantity", "of", "mean", "median", "n", "n_undefined", "step")


def finals_table(data: xr.Dataset) -> pd.DataFrame:
    """Accuracy and loss of the network and its filtered parts.

    Returns:
        A row for each network, activation and group, with `FINAL_COLUMNS`: accuracy as a fraction
        with its 95% interval over the `n` examples, loss in nats; NaN for an empty group, and where
        it was not measured. The network itself acts as `"trained"` at the least. Empty if nothing
        was measured.
    """
    whole = [("full", "trained", *rest) for rest in _finals(data, "group", ("group",))]
    parts = [tuple(rest) for rest in _finals(data, "filtered", _FILTERED)]
    known = {row[:3] for row in whole}
    rows = [*whole, *(row for row in parts if row[:3] not in known)]
    order = dict.fromkeys(row[0] for row in [*parts, *whole])
    rows.sort(key=lambda row: list(order).index(row[0]))
    return pd.DataFrame(rows, columns=list(FINAL_COLUMNS))


def partition_table(data: xr.Dataset) -> pd.DataFrame:
    """Accuracy when a share of the neurons is kept, by what orders them.

    Returns:
        A row for each score, end that is kept, share and group, with `PARTITION_COLUMNS`; `low`
        and `high` bound the random draws, and are NaN for the scores. Empty if it was not measured.
    """
    name = "partition_accuracy"
    if name not in data:
        return pd.DataFrame(columns=list(PARTITION_COLUMNS))
    bounds = {
        end: dict(_last(data, f"partition_random_{end}", *_KEPT))
        for end in ("low", "high")
        if f"partition_random_{end}" in data
    }
    rows = []
    for (score, *place), (accuracy, step) in _last(data, name, "score", *_KEPT):
        row = dict(zip(_KEPT, place, strict=True))
        ends = {
            end: found.get(tuple(place), (np.nan, 0))[0] if score == "random" else np.nan
            for end, found in bounds.items()
        }
        rows.append({"score": score, **row, "accuracy": accuracy, **ends, "step": step})
    return pd.DataFrame(rows, columns=list(PARTITION_COLUMNS))


def spectra_table(data: xr.Dataset) -> pd.DataFrame:
    """How periodic the neurons are: concentration, participation ratio and phase error.

    Returns:
        A row for each quantity and vector or convention, with `SPECTRA_COLUMNS`: mean and median
        over the `n` neurons that define it; the size of the phase error in radians. Empty if the
        spectra were not measured.
    """
    rows = []
    for name, dim, sized in (
        ("concentration", "vector", False),
        ("ipr", "convention", False),
        ("phase_error", None, True),
    ):
        if name not in data:
            continue
        array = measured_part(data[name]).isel(step=-1)
        for label in array[dim].to_numpy().tolist() if dim else [""]:
            values = array.sel({dim: label}).to_numpy() if dim else array.to_numpy()
            values = np.abs(values) if sized else values
            known = values[np.isfinite(values)].astype(np.float64)
            rows.append(
                {
                    "quantity": name,
                    "of": str(label),
                    "mean": float(known.mean()) if known.size else np.nan,
                    "median": float(np.median(known)) if known.size else np.nan,
                    "n": int(known.size),
                    "n_undefined": int(values.size - known.size),
                    "step": int(array["step"]),
                }
            )
    return pd.DataFrame(rows, columns=list(SPECTRA_COLUMNS))


def unembedding_table(data: xr.Dataset) -> pd.DataFrame:
    """Accuracy when frequencies of the unembedding are kept: a row for each end, k and group.

    Returns:
        Columns `keep`, `k`, `group`, `accuracy`, `step`; empty if it was not measured.
    """
    columns = ["keep", "k", "group", "accuracy", "step"]
    if "unembedding_accuracy" not in data:
        return pd.DataFrame(columns=columns)
    rows = [
        dict(zip(columns, (*place, accuracy, step), strict=True))
        for place, (accuracy, step) in _last(data, "unembedding_accuracy", *columns[:3])
    ]
    return pd.DataFrame(rows, columns=columns)


def _last(
    data: xr.Dataset, name: str, *dims: str
) -> list[tuple[tuple[Any, ...], tuple[float, int]]]:
    """Every label of these dims with the value at the last step measured, and that step."""
    array = measured_part(data[name]).transpose("step", *dims)
    if not array.sizes["step"]:
        return []
    last = array.isel(step=-1)
    step = int(last["step"])
    labels = [last[dim].to_numpy().tolist() for dim in last.dims]
    values = last.to_numpy().astype(np.float64)
    return [
        (
            tuple(labels[axis][place] for axis, place in enumerate(index)),
            (float(values[index]), step),
        )
        for index in np.ndindex(*values.shape)
    ]


def _finals(data: xr.Dataset, prefix: str, dims: tuple[str, ...]) -> list[list[Any]]:
    """The labels of each row, accuracy, ends of its interval, loss, n and step."""
    name = f"{prefix}_accuracy"
    if name not in data:
        return []
    losses = dict(_last(data, f"{prefix}_loss", *dims)) if f"{prefix}_loss" in data else {}
    bounded = f"{name}_interval" in data
    ends = dict(_last(data, f"{name}_interval", *dims, "bound")) if bounded else {}
    sizes = group_sizes(data)
    unknown = (float("nan"), 0)
    return [
        [
            *place,
            accuracy,
            *(ends.get((*place, end), unknown)[0] for end in ("low", "high")),
            losses.get(place, unknown)[0],
            sizes.get(place[-1]),
            step,
        ]
        for place, (accuracy, step) in _last(data, name, *dims)
    ]


def group_sizes(data: xr.Dataset) -> dict[str, int]:
    """The number of examples of each group; none if it was not recorded."""
    for name in ("group_n", "filtered_n"):
        if name in data:
            array = measured_part(data[name])
            array = array.isel(step=-1) if "step" in array.dims else array
            labels = array["group"].to_numpy().tolist()
            return {str(label): int(n) for label, n in zip(labels, array.to_numpy(), strict=True)}
    return {}
