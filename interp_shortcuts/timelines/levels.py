"""The level of a measure in phase 1 and at the end, and where it crosses half way between them.

This is the one home of what *before*, *after* and *half way* mean; only evaluations at which a
measure was taken count, so that a measure taken at every tenth checkpoint is read like any other.
Levels and half-way steps follow the science notes on arXiv 2607.10116; how levels are averaged is
ours.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float64, Int64

from interp_shortcuts.timelines.events import start_of_last_run


def in_phase1(
    steps: Int64[np.ndarray, " step"], *, learned: int | None, onset: int | None
) -> Bool[np.ndarray, " step"]:
    """The evaluations whose mean is the phase-1 level.

    Those from `shortcut_learned` to the onset; without an onset only the first one from
    `shortcut_learned` on, since nothing says where phase 1 ended. None without a shortcut phase.
    """
    if learned is None:
        return np.zeros(len(steps), dtype=bool)
    since = steps >= learned
    if onset is not None:
        return since & (steps <= onset)
    return since & (np.cumsum(since) == 1)


def at_end(
    steps: Int64[np.ndarray, " step"], *, onset: int | None, m: int
) -> Bool[np.ndarray, " step"]:
    """The evaluations whose mean is the final level: the last `m`, as far as they follow the onset.

    A measure that was taken at few steps may have fewer than `m` after the onset; those before it
    belong to phase 1.
    """
    last = np.arange(len(steps)) >= len(steps) - m
    return last if onset is None else last & (steps > onset)


def half_way(
    values: Float64[np.ndarray, " step"],
    steps: Int64[np.ndarray, " step"],
    *,
    phase1: float,
    final: float,
    since: int,
) -> int | None:
    """The first evaluation since `since` from which the known values stay past the mean level."""
    considered = np.isfinite(values) & (steps >= since)
    known, at = values[considered], steps[considered]
    middle = (phase1 + final) / 2
    start = start_of_last_run(known >= middle if final > phase1 else known <= middle)
    return None if start is None else int(at[start])
