"""Runs under label noise, laid side by side: seeds of one setting, or the cells of a sweep.

Each run is read in `timelines.hidden_progress`; runs that differ in nothing but the seed are a
cell. Means are over seeds; an excluded run is in no number, and always listed. Sentences are made
in `hidden_cells_text`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.sweeps.hidden_cell_tables import (
    cell_label,
    course_of_cells,
    descent_by_width,
    events_of_cells,
    finals_of_cells,
    fitted_first_of_cells,
    run_table,
)
from interp_shortcuts.timelines.hidden_progress import (
    FITTED,
    THRESHOLD,
    HiddenProgress,
    find_hidden_progress,
)
from interp_shortcuts.timelines.run_settings import settings
from interp_shortcuts.timelines.timeline import Timeline

_NOT_A_SETTING = ("seed", "name")


@dataclass(frozen=True, eq=False)
class HiddenCells:
    """What runs under label noise say together.

    Attributes:
        threshold: Test accuracy that counts as having generalised.
        fitted_at: Training accuracy that counts as having begun to fit.
        progress: The events of each run that counts, by its name.
        excluded: Runs that count in nothing, with the reason.
        timelines: The timeline of each run that has one, those that are excluded too.
        shared: Settings that all runs share.
        differing: Settings in which runs differ, but for seed and name; they make the cells.
        cells: The label of every cell, in the order of its settings, with these.
        runs: One row a run, those that are excluded too: `run`, `cell`, `seed`, a column for each
            differing setting, final accuracies (`clean`, `noisy`, `test`, `test_G`,
            `test_G_quadratic`, `noisy_R`), `concentration` of w, the steps `full_step`, `G_step`
            and `G_quadratic_step`, `fitted_first`, `last_step` and `reason`.
        finals: Final accuracies over the seeds of each cell (`FINALS`): mean with its 95% t
            interval, and how many seeds define it.
        events: How often, and when, the network and network G reach the threshold for good
            (`EVENTS`); counts with their exact 95% interval.
        first: How often noisy labels are fitted first (`FIRST`), with the exact 95% interval.
        course: Accuracies over steps, over the seeds measured there (`COURSE`).
        descent: Final accuracies by width (`DESCENT`); a line for each setting of everything else.
    """

    threshold: float
    fitted_at: float
    progress: Mapping[str, HiddenProgress]
    excluded: Mapping[str, str]
    timelines: Mapping[str, Timeline]
    shared: Mapping[str, Any]
    differing: tuple[str, ...]
    cells: Mapping[str, Mapping[str, Any]]
    runs: pd.DataFrame
    finals: pd.DataFrame
    events: pd.DataFrame
    first: pd.DataFrame
    course: pd.DataFrame
    descent: pd.DataFrame

    def tables(self) -> dict[str, pd.DataFrame]:
        """Every table by its name."""
        names = ("runs", "finals", "events", "first", "course", "descent")
        return {name: getattr(self, name) for name in names}


def hidden_cells(
    timelines: Mapping[str, Timeline],
    *,
    excluded: Mapping[str, str] | None = None,
    threshold: float = THRESHOLD,
    fitted_at: float = FITTED,
) -> HiddenCells:
    """Lays runs under label noise side by side.

    Args:
        timelines: The timeline of each run, by its name.
        excluded: Runs that count in nothing, with the reason; they need not have a timeline. Runs
            in which no group was measured are excluded by themselves.
        threshold: Test accuracy that counts as having generalised, in (0, 1].
        fitted_at: Training accuracy that counts as having begun to fit, in (0, 1].

    Raises:
        MeasureError: If there is no run at all, or a level is not in (0, 1].
    """
    excluded = dict(excluded or {})
    if not timelines and not excluded:
        raise MeasureError("`timelines` must hold at least one run; got none.")
    progress: dict[str, HiddenProgress] = {}
    for name, line in timelines.items():
        found = find_hidden_progress(line, threshold=threshold, fitted_at=fitted_at)
        if not found.steps:
            excluded.setdefault(name, "no group was measured")
        if name not in excluded:
            progress[name] = found
    own = {name: _settings(line) for name, line in timelines.items()}
    differing, shared = _compared({name: own[name] for name in progress} or own)
    labels = {name: cell_label(own[name], differing) for name in own}
    members: dict[str, list[str]] = {}
    for name in progress:
        members.setdefault(labels[name], []).append(name)
    members = dict(
        sorted(
            members.items(),
            key=lambda cell: [_place(own[cell[1][0]].get(name)) for name in differing],
        )
    )
    counted = {name: timelines[name] for name in progress}
    finals = finals_of_cells(members, progress)
    return HiddenCells(
        threshold=threshold,
        fitted_at=fitted_at,
        progress=progress,
        excluded=excluded,
        timelines=dict(timelines),
        shared=shared,
        differing=differing,
        cells={
            cell: {name: own[names[0]].get(name) for name in differing}
            for cell, names in members.items()
        },
        runs=run_table(timelines, progress, excluded, own, labels, differing),
        finals=finals,
        events=events_of_cells(members, progress),
        first=fitted_first_of_cells(members, progress),
        course=course_of_cells(members, counted),
        descent=descent_by_width(finals, members, own, differing),
    )


def why_no_descent(found: HiddenCells) -> str:
    """Why test accuracy cannot be drawn over the width; empty if it can."""
    if len(set(found.descent["width"].tolist())) > 1:
        return ""
    return "the runs have one width only" if found.progress else "no run counts"


def _settings(timeline: Timeline) -> dict[str, Any]:
    every = settings(timeline.data)
    return {name: value for name, value in every.items() if name not in _NOT_A_SETTING}


def _compared(own: Mapping[str, Mapping[str, Any]]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The settings in which runs differ, and what the others are."""
    names = dict.fromkeys(name for setting in own.values() for name in setting)
    values = {name: [setting.get(name) for setting in own.values()] for name in names}
    differing = tuple(n for n, found in values.items() if any(v != found[0] for v in found))
    return differing, {n: found[0] for n, found in values.items() if n not in differing}


def _place(value: Any) -> tuple[int, float, str]:
    """By which cells are put in order: numbers by size, before everything else by its text."""
    if isinstance(value, int | float):
        return 0, float(value), ""
    return 1, 0.0, str(value)
