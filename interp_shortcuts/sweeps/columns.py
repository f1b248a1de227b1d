"""The columns of a table of results: their names, order and types. What fills them is `table`.

A sweep under label noise has other columns than one of a shortcut task: there is no shortcut whose
fate is counted, and there are wrong labels.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

import pandas as pd
from pydantic import BaseModel

from interp_shortcuts.runs.config import RunConfig, part_models
from interp_shortcuts.tasks.any_config import NOISY_CONFIGS

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

_NOISY_SETTING = {"arithmetic": "str", "modulus": "Int64", "noise": "float64"}
_NOISY_SETTING |= {"train_fraction": "float64", "width": "Int64", "activation": "str"}
_NOISY_SETTING |= {"optimizer": "str", "lr": "float64", "weight_decay": "float64"}
_NOISY_SETTING |= {"n_steps": "int64"}
NOISY_FINALS = {f"final_{name}": name for name in ("clean", "noisy", "noisy_true", "test")}
"""The columns of accuracies at the last evaluation under label noise, and their splits."""
_NOISY_RESULT = {"chance": "float64", "last_step": "Int64"}
_NOISY_RESULT |= dict.fromkeys((*NOISY_FINALS, "best_test", "seconds"), "Float64")


@dataclass(frozen=True)
class Columns:
    """The columns of one kind of table, with their types; the fields of the grid stand between."""

    setting: Mapping[str, str]
    result: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that every such table has."""
        return (*_RUN, *self.setting, *self.result)


OF_SHORTCUTS = Columns(SETTING_COLUMNS, _RESULT)
OF_NOISE = Columns(_NOISY_SETTING, _NOISY_RESULT)

COLUMNS = OF_SHORTCUTS.names
"""The columns of every table of a shortcut task; further fields of the grid stand before
`chance`."""
NOISY_COLUMNS = OF_NOISE.names
"""The same under label noise."""


def columns_of(task: BaseModel) -> Columns:
    """The columns of a sweep over such a task."""
    return OF_NOISE if isinstance(task, NOISY_CONFIGS) else OF_SHORTCUTS


def columns_among(names: Collection[str]) -> Columns:
    """The columns of a table with columns of these names."""
    return OF_NOISE if "final_test" in names else OF_SHORTCUTS


def typed(
    rows: Sequence[Mapping[Any, Any]], fields: Sequence[str], columns: Columns = OF_SHORTCUTS
) -> pd.DataFrame:
    """The rows as a table, its columns in order and of the same types wherever they come from.

    Args:
        rows: Values by column; in a CSV file all of them are texts.
        fields: Further fields of the grid, which stand before `chance`.
        columns: The columns of this kind of table.

    Raises:
        ValueError: If a value is not of its column's type.
    """
    others = {name: _dtype(name) for name in fields if name not in columns.setting}
    dtypes = {**_RUN, **columns.setting, **others, **columns.result}
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
