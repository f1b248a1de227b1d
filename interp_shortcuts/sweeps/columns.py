"""The columns of a table of results: their names, order and types. What fills them is `table`."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

import pandas as pd

from interp_shortcuts.runs.config import RunConfig, part_models

JOB_STATUSES = ("pending", "running", "finished", "failed", "diverged", "stopped")
"""What the column `status` can be; a run whose process was killed is `stopped`."""

_RUN = {"cell": "str", "seed": "int64", "run": "str", "run_id": "str"}
_RUN |= {"status": "str", "error": "str"}
SETTING_COLUMNS = {"rule": "str", "ratio": "float64", "length": "int64", "n_integers": "int64"}
SETTING_COLUMNS |= {"n_train": "int64", "n_layers": "int64", "n_heads": "int64"}
SETTING_COLUMNS |= {"weight_decay": "float64", "n_steps": "int64"}
_RESULT = {"chance": "float64", "outcome": "str", "generalised": "boolean", "lasting": "boolean"}
_STEPS = ("shortcut_learned", "saturation", "onset", "completion", "lost", "last_step")
_RESULT |= dict.fromkeys(_STEPS, "Int64")
_ACCURACIES = ("final_validation", "final_adversarial", "best_adversarial")
_RESULT |= dict.fromkeys(_ACCURACIES, "Float64")
_RESULT |= {"n_adversarial": "Int64", "seconds": "Float64"}

COLUMNS = (*_RUN, *SETTING_COLUMNS, *_RESULT)
"""The columns of every table of results; further fields of the grid stand before `chance`."""


def typed(rows: Sequence[Mapping[Any, Any]], fields: Sequence[str]) -> pd.DataFrame:
    """The rows as a table, its columns in order and of the same types wherever they come from.

    Args:
        rows: Values by column; in a CSV file all of them are texts.
        fields: Further fields of the grid, which stand before `chance`.

    Raises:
        ValueError: If a value is not of its column's type.
    """
    others = {name: _dtype(name) for name in fields if name not in SETTING_COLUMNS}
    dtypes = {**_RUN, **SETTING_COLUMNS, **others, **_RESULT}
    table = pd.DataFrame(rows, columns=list(dtypes))
    return pd.DataFrame(
        {name: _column(pd.Series(table[name]), dtype) for name, dtype in dtypes.items()}
    )


def _column(values: pd.Series, dtype: str) -> pd.Series:
    if dtype == "str":
        return values.where(values.notna(), "").astype("str")
    values = values.astype("object").where(values.notna() & (values != ""), None)
    if dtype == "boolean":
        values = values.replace({"True": True, "False": False}).astype("object")
        return values.astype("boolean")
    numbers: Any = pd.to_numeric(values)
    return numbers.astype(dtype) if dtype == "int64" else numbers.astype("float64").astype(dtype)


def _dtype(field: str) -> str:
    """The column type of a field of `RunConfig`, by its annotation; text for what is no field."""
    kind = _annotation(field)
    if get_origin(kind) in (Union, types.UnionType):  # optional: a missing value
        (kind,) = [part for part in get_args(kind) if part is not type(None)]
    if get_origin(kind) is Literal or kind not in (int, float):
        return "str"
    return "Int64" if kind is int else "Float64"


def _annotation(field: str) -> Any:
    parts = [model for name in RunConfig.model_fields for model in part_models(name)]
    for home in (RunConfig, *parts):
        if field in home.model_fields:
            return home.model_fields[field].annotation
    return str
