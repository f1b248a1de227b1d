"""A timeline as a tidy table: one value a row, for people who think in data frames."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from interp_shortcuts.timelines.layout import measured_part

INTERVAL = "_interval"
TEXT_COLUMNS = ("component", "split", "feature")
LABEL_COLUMNS = ("layer", "head", "position", "integer", "class", "example")


def tidy_table(data: xr.Dataset) -> pd.DataFrame:
    """All variables below each other.

    Columns: `step`, `measure` (the variable's name), `component` (`"L0.H1"`), `split`, `feature`,
    `layer`, `head`, `position`, `integer`, `class`, `example`, any other dim there is, `value`, and
    `low` and `high`, the 95% interval where there is one. Labels that do not apply are empty
    (text) or missing (numbers). Padding is left out; what is undefined stays as NaN.
    """
    tables = [_one(data, str(name)) for name in data.data_vars if not _is_interval(data, str(name))]
    if not tables:
        tables = [pd.DataFrame({"step": [], "measure": [], "value": []})]
    table = pd.concat(tables, ignore_index=True)
    for name in TEXT_COLUMNS:
        given = table[name] if name in table else pd.Series("", index=table.index)
        table[name] = given.where(given.notna(), "").astype(str)
    for name in ("step", *LABEL_COLUMNS):
        given = table[name] if name in table else pd.Series(pd.NA, index=table.index)
        table[name] = given.astype("Int64")
    first = ["step", "measure", *TEXT_COLUMNS, *LABEL_COLUMNS]
    last = ["value", "low", "high"]
    for name in last:
        given = table[name] if name in table else pd.Series(float("nan"), index=table.index)
        table[name] = given.astype("float64")
    others = [name for name in table.columns if name not in (*first, *last)]
    for name in others:  # texts, such as `ablation` or `part`, are empty where they do not apply
        if not pd.api.types.is_numeric_dtype(table[name]):
            table[name] = table[name].where(table[name].notna(), "").astype(str)
    return table.reindex(columns=[*first, *others, *last])


def _is_interval(data: xr.Dataset, name: str) -> bool:
    return name.endswith(INTERVAL) and name.removesuffix(INTERVAL) in data.data_vars


def _one(data: xr.Dataset, name: str) -> pd.DataFrame:
    array = measured_part(data[name]).reset_coords(drop=True)
    columns = {"value": array}
    interval = f"{name}{INTERVAL}"
    if interval in data.data_vars and "bound" in data[interval].dims:
        bounds = measured_part(data[interval]).reset_coords(drop=True)
        columns |= {side: bounds.sel(bound=side, drop=True) for side in ("low", "high")}
    if not array.dims:
        return pd.DataFrame({"measure": [name], "value": [array.item()]})
    table = xr.Dataset(columns).to_dataframe(dim_order=list(array.dims)).reset_index()
    table.insert(0, "measure", name)
    if {"layer", "head"} <= set(table.columns):
        table["component"] = "L" + table["layer"].astype(str) + ".H" + table["head"].astype(str)
    return table
