"""`Sweep`: a base config, a grid over its fields and seeds; which runs that makes.

A plan only: where the runs lie is `folder`, who trains them `engines`, what came of them `table`.
Loads no torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.sweeps.seeds import parse_seeds, run_folder_name
from interp_shortcuts.tasks.sequence_config import SequenceConfig

Grid = dict[str, tuple[Any, ...]] | tuple[dict[str, Any], ...]
"""The values of each field, or the cells themselves."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NOT_IN_A_GRID = {
    "seed": "seeds are given by `seeds`",
    "name": "a label changes nothing",
    **dict.fromkeys(("task", "model", "optim", "schedule"), "name its fields instead"),
}


@dataclass(frozen=True)
class Cell:
    """One setting of a sweep, trained at every seed."""

    label: str
    """The fields in words, such as `"n_layers=2, ratio=0.9"`; `"base"` without any."""
    fields: Mapping[str, Any]
    """The fields that differ from the base, by flat name."""


@dataclass(frozen=True)
class Job:
    """One run of a sweep."""

    cell: Cell
    seed: int
    config: RunConfig

    @property
    def folder_name(self) -> str:
        """The name of its run folder; equal configs have equal names, in any sweep."""
        return run_folder_name(self.config)


class Sweep(BaseModel):
    """Which runs: every cell of a grid at every seed.

    ```python
    Sweep(
        name="imbalance",
        base=presets.max_parity_demo(),
        grid={"n_layers": [1, 2], "ratio": [0.5, 0.9]},   # 4 cells
        seeds="0-9",                                      # 40 runs
    )
    ```
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(description="Also the name of its folder.")
    base: RunConfig = Field(description="What all runs share; its own seed is not used.")
    grid: Grid = Field(
        default_factory=dict,
        description="Values by flat field name, whose product makes the cells "
        '(`{"n_layers": [1, 2], "ratio": [0.5, 0.9]}`), or a list of the cells themselves '
        '(`[{"n_layers": 1, "lr": 1e-3}, {"n_layers": 2, "lr": 3e-4}]`).',
    )
    seeds: tuple[int, ...] = Field(
        description='The seeds of every cell: numbers, a range, or a text such as `"0-9"`.'
    )

    if TYPE_CHECKING:  # what the validators below accept

        def __init__(
            self,
            *,
            name: str,
            base: RunConfig,
            grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]] = ...,
            seeds: Iterable[int] | str,
        ) -> None: ...

    @field_validator("name")
    @classmethod
    def _name_is_a_folder_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"`name` must be letters, digits, '.', '_' and '-', beginning with a letter or "
                f"digit, since a folder is named after it; got {name!r}."
            )
        return name

    @field_validator("base")
    @classmethod
    def _base_has_a_shortcut(cls, base: RunConfig) -> RunConfig:
        if isinstance(base.task, SequenceConfig):
            raise ValueError(
                "`base` must have a shortcut task, since a sweep's table counts what became of the "
                f"shortcut; got {base.task.label}. Train seeds of a sequence task with "
                "`train_seeds`."
            )
        return base

    @field_validator("grid", mode="before")
    @classmethod
    def _grid_is_values_or_cells(cls, grid: Any) -> Grid:
        if isinstance(grid, Mapping):
            return {name: _values(name, values) for name, values in grid.items()}
        if _is_listed(grid) and all(isinstance(cell, Mapping) for cell in grid):
            cells = tuple(dict(cell) for cell in grid)
            if cells:
                return cells
        raise ValueError(
            "`grid` must be values by field, such as {'ratio': [0.5, 0.9]}, or a list of cells, "
            f"such as [{{'ratio': 0.5, 'lr': 0.01}}]; got {grid!r}."
        )

    @field_validator("seeds", mode="before")
    @classmethod
    def _seeds_are_numbers(cls, seeds: Any) -> tuple[Any, ...]:
        if isinstance(seeds, str):
            return parse_seeds(seeds)
        if not _is_listed(seeds) or not list(seeds):
            raise ValueError(
                f"`seeds` must be numbers or a text such as '0-9', at least one; got {seeds!r}."
            )
        return tuple(seeds)

    @model_validator(mode="after")
    def _runs_are_valid_and_differ(self) -> Sweep:
        first: dict[str, Job] = {}
        for job in self.jobs:
            other = first.setdefault(job.folder_name, job)
            if other is not job:
                raise ValueError(
                    f"`grid` and `seeds` must give different runs; ({other.cell.label}), seed "
                    f"{other.seed} and ({job.cell.label}), seed {job.seed} are the same."
                )
        return self

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that the grid sets, in its order."""
        return tuple(dict.fromkeys(name for cell in self.cells for name in cell.fields))

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The settings, the last field of the grid varying fastest."""
        if isinstance(self.grid, tuple):
            settings = self.grid
        else:
            settings = [
                dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())
            ]
        return tuple(Cell(_label(setting), setting) for setting in settings)

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """The runs, seed by seed, so that every cell has some runs early."""
        for name in self.fields:
            if name in _NOT_IN_A_GRID:
                raise ValueError(f"`grid` must not set `{name}`: {_NOT_IN_A_GRID[name]}.")
        configs = [self.base.replace(**cell.fields) for cell in self.cells]
        return tuple(
            Job(cell, seed, config.replace(seed=seed))
            for seed in self.seeds
            for cell, config in zip(self.cells, configs, strict=True)
        )


def _label(setting: Mapping[str, Any]) -> str:
    texts = (f"{name}={'none' if v is None else v}" for name, v in setting.items())
    return ", ".join(texts) or "base"


def _values(name: str, values: Any) -> tuple[Any, ...]:
    if not _is_listed(values) or not list(values):
        raise ValueError(
            f"`grid`: `{name}` must have a list of at least one value; got {values!r}."
        )
    return tuple(values)


def _is_listed(values: Any) -> bool:
    return isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping)
