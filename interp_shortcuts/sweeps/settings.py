"""Which columns of a table of runs are settings, which of them vary, and what a setting is called.

The columns themselves are listed in `table`; what is computed from them is left to `rates`,
`interaction`, `survival` and `alignment`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd

from interp_shortcuts.errors import ConfigError


def require_columns(table: pd.DataFrame, names: Iterable[str]) -> None:
    """Checks that a table of runs has some columns.

    Raises:
        ConfigError: If one is missing; the message lists which, and what there is.
    """
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise ConfigError(
            f"the table of runs must have the columns {', '.join(missing)}; it has "
            f"{', '.join(map(str, table.columns)) or 'none'}."
        )


def setting_fields(table: pd.DataFrame) -> tuple[str, ...]:
    """The columns that say how a run was set up: those between `error` and `chance`."""
    require_columns(table, ("error", "chance"))
    names = list(map(str, table.columns))
    return tuple(names[names.index("error") + 1 : names.index("chance")])


def varying_fields(table: pd.DataFrame) -> tuple[str, ...]:
    """The setting fields in which the runs of the table differ, in the table's order."""
    return differing_fields(table, setting_fields(table))


def differing_fields(runs: pd.DataFrame, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the columns in which the runs differ; missing values are alike."""
    return tuple(name for name in names if len(runs[name].drop_duplicates()) > 1)


def groups(
    table: pd.DataFrame, names: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """The rows of each combination of values of some columns, in order of first appearance."""
    for values, rows in table.groupby(list(names), sort=False, dropna=False):
        yield cast("tuple[Any, ...]", values), rows


def rows_where(table: pd.DataFrame, mask: np.ndarray) -> pd.DataFrame:
    """The rows at which a boolean array is true."""
    return table.iloc[np.flatnonzero(mask)]


def setting_label(values: Mapping[str, Any]) -> str:
    """A setting in words, as a sweep labels its cells: `"n_layers=2, ratio=0.9"`."""
    return ", ".join(f"{name}={shown_value(value)}" for name, value in values.items())


def shown_value(value: Any) -> str:
    """A field's value as one would type it: 2 rather than 2.0."""
    if pd.isna(value):
        return "none"
    if isinstance(value, float) or hasattr(value, "dtype"):
        return f"{value:g}" if not isinstance(value, str) else value
    return str(value)


def settings_of_cells(table: pd.DataFrame) -> pd.DataFrame:
    """One row a cell, in the order of the table: `cell`, every setting field, and `chance`.

    Raises:
        ConfigError: If runs of one cell differ in a setting.
    """
    fields = (*setting_fields(table), "chance")
    rows = []
    for (cell,), runs in groups(table, ["cell"]):
        differing = differing_fields(runs, fields)
        if differing:
            raise ConfigError(
                f"runs of one cell must share every setting; those of {cell!r} differ in "
                f"{', '.join(differing)}."
            )
        rows.append({"cell": cell, **{name: runs[name].iloc[0] for name in fields}})
    return pd.DataFrame(rows, columns=["cell", *fields])
