"""Taking a measure along a trajectory: the loop, its progress bar, and errors that name the step.

What is measured at a step is left to the measures; keeping and resuming results, to the timelines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from interp_shortcuts.errors import InterpShortcutsError, MeasureError
from interp_shortcuts.measures.observation import require_fit
from interp_shortcuts.models.weights import Weights
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.tasks.base import Task

CHUNK = 64
"""Checkpoints whose weights are held at once by measures that read weights alone."""
SECONDS_BEFORE_BAR = 2.0


@runtime_checkable
class ReadsWeights(Protocol):
    """A measure that has a form for stacked weights."""

    name: ClassVar[str]
    constant: ClassVar[frozenset[str]]

    def of_weights(self, weights: Weights, task: Task) -> xr.Dataset:
        """The measure of stacked weights, with `checkpoint` as the leading dimension."""
        ...


def over_weights(
    measure: ReadsWeights, trajectory: Trajectory, *, progress: bool = True
) -> xr.Dataset:
    """Takes `measure.of_weights` along a trajectory, many checkpoints at a time."""
    steps = trajectory.steps
    require_fit(trajectory.spec, trajectory.task)
    chunks = [steps[start : start + CHUNK] for start in range(0, len(steps), CHUNK)]
    found = []
    for chunk in progress_bar(chunks, measure.name, total=len(chunks), progress=progress):
        try:
            found.append(measure.of_weights(trajectory.stacked(chunk), trajectory.task))
        except Exception:
            for step in chunk:  # one at a time, to name the step that fails
                with located(measure.name, step):
                    measure.of_weights(trajectory.stacked([step]), trajectory.task)
            raise
    return along_steps(found, steps, constant=measure.constant, dim="checkpoint")


def along_steps(
    datasets: Sequence[xr.Dataset],
    steps: Iterable[int],
    *,
    constant: frozenset[str] = frozenset(),
    dim: str = "step",
) -> xr.Dataset:
    """Joins measurements into one dataset whose first dimension is `step`.

    Args:
        datasets: One for each step, or, when `dim` is another name, one for each run of steps.
        steps: The steps, in order.
        constant: Variables that are the same at every step; they are kept without `step`.
        dim: The dimension along which the datasets are joined.
    """
    if not datasets:
        raise MeasureError("`trajectory` must hold at least one checkpoint; got none.")
    first = datasets[0]
    kept = [name for name in first.data_vars if name in constant]
    joined = xr.concat(
        [data.drop_vars(kept) for data in datasets],
        dim=dim,
        data_vars="all",
        coords="minimal",
        compat="override",
        join="exact",
        combine_attrs="override",
    )
    if dim != "step":
        joined = joined.rename({dim: "step"})
    joined = joined.assign_coords(step=np.asarray(list(steps), dtype=np.int64))
    return joined.assign({name: first[name] for name in kept})


@contextmanager
def located(measure: str, step: int | None) -> Iterator[None]:
    """Adds the measure and the step to whatever error happens inside.

    Raises:
        MeasureError: From the original error.
    """
    try:
        yield
    except Exception as error:
        where = measure if step is None else f"{measure} at step {step}"
        what = "" if isinstance(error, InterpShortcutsError) else f"{type(error).__name__}: "
        raise MeasureError(f"{where}: {what}{error}") from error


def progress_bar(items: Iterable[Any], label: str, *, total: int, progress: bool) -> Iterable[Any]:
    """The items, with a bar that appears once two seconds have passed."""
    return tqdm(
        items, desc=label, total=total, disable=not progress, delay=SECONDS_BEFORE_BAR, leave=False
    )
