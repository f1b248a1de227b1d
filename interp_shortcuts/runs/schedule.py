"""At which steps a run is evaluated and kept: dense while the circuits form, then evenly spaced.

Loads no torch. Who evaluates and who writes checkpoints is the training loop's business.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ScheduleConfig(BaseModel):
    """How long a run is, and which of its steps are evaluated, kept and resumable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n_steps: int = Field(default=600, ge=1, description="Number of optimiser steps.")
    dense_until: int = Field(
        default=100,
        ge=0,
        description="Up to this step, evaluations are evenly spaced in log time; afterwards every "
        "`every` steps. 0: evenly spaced throughout.",
    )
    dense_points: int = Field(
        default=24,
        ge=0,
        description="Number of log-spaced evaluations from step 1 to `dense_until` (those that "
        "round to the same step count once).",
    )
    every: int = Field(
        default=10, ge=1, description="Steps between evaluations after `dense_until`."
    )
    checkpoint_stride: int = Field(
        default=1,
        ge=1,
        description="Keep a checkpoint at every k-th evaluation (1: at each); the first and the "
        "last step are always kept.",
    )
    resume_every: int = Field(
        default=50,
        ge=1,
        description="Steps between saves of the state that an interrupted run resumes from.",
    )


def evaluation_steps(schedule: ScheduleConfig) -> tuple[int, ...]:
    """The steps at which every split is evaluated: strictly increasing, with 0 and `n_steps`.

    Step s means: after s optimiser steps, so step 0 is the initial model.
    """
    last, until, points = schedule.n_steps, schedule.dense_until, schedule.dense_points
    steps = {0, last}
    start = 0
    if until > 0 and points > 0:
        start = until
        steps.add(until)
        steps |= {round(until ** (index / max(points - 1, 1))) for index in range(points)}
    steps |= set(range(start, last, schedule.every))
    return tuple(sorted(step for step in steps if step <= last))


def kept_steps(schedule: ScheduleConfig) -> tuple[int, ...]:
    """The steps whose weights are kept as checkpoints: a subset of `evaluation_steps`."""
    steps = evaluation_steps(schedule)
    kept = steps[:: schedule.checkpoint_stride]
    return kept if kept[-1] == steps[-1] else (*kept, steps[-1])
