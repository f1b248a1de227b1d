"""What a tracker is asked to measure, and of what, once it is known that both make sense.

The tracker itself is `tracker`; at how many checkpoints a measure is taken is `cadence`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.base import Measure
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.runs.run import Run
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.tasks.base import Task


def checked_source(source: object) -> Trajectory | Task:
    """The source; a run or a path is refused with what to give instead.

    Raises:
        MeasureError: If it is neither a trajectory nor a task.
    """
    if isinstance(source, Trajectory):
        return source
    if isinstance(source, Run):
        raise MeasureError(
            f"`source` must be a trajectory or a task; got {source!r}. Give `run.trajectory()`."
        )
    if isinstance(source, str | Path):
        raise MeasureError(
            f"`source` must be a trajectory or a task; got {str(source)!r}. For a run folder, give "
            f"`Trajectory.open({str(source)!r})`."
        )
    if isinstance(source, type) or not isinstance(source, Task):
        raise MeasureError(
            "`source` must be a trajectory, such as `Trajectory.open(path)` or "
            f"`run.trajectory()`, or a task; got {source!r}."
        )
    return source


def checked_measures(
    measures: object, source: Trajectory | Task | None = None, *, spec: AnySpec | None = None
) -> tuple[Measure, ...]:
    """The measures as a tuple; one measure needs no list.

    Args:
        measures: One measure or several.
        source: What they are taken of; they are then settled for it (see `Measure.settled`).
        spec: The model that they are taken of, if it is known.

    Raises:
        MeasureError: If there are none, one is there twice or has no name, something is no
            measure, or one asks another kind of task or reads another kind of model.
    """
    if isinstance(measures, Measure):
        measures = (measures,)
    if isinstance(measures, str | type) or not isinstance(measures, Iterable):
        raise MeasureError(
            f"`measures` must hold measures, such as `[QKSpearman()]`; got {measures!r}."
        )
    measures = tuple(measures)
    if not measures:
        raise MeasureError("`measures` must hold at least one measure; got none.")
    for measure in measures:
        if not isinstance(measure, Measure):
            raise MeasureError(
                f"`measures` must hold measures, such as `QKSpearman()`; got {measure!r}."
            )
        if not isinstance(getattr(measure, "name", None), str):
            raise MeasureError(
                f"The measure `{type(measure).__name__}` must have a `name`; give its class one: "
                '`name: ClassVar[str] = "my_measure"`.'
            )
    if source is not None:
        task = source.task if isinstance(source, Trajectory) else source
        for measure in measures:
            measure.require_kind(task, spec)
        measures = tuple(measure.settled(source) for measure in measures)
    keys = [measure.key for measure in measures]
    for index, key in enumerate(keys):
        if key in keys[:index]:
            raise MeasureError(f"`measures` holds {measures[index]} twice; give it once.")
    return measures
