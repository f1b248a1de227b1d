"""Thinned measures: which steps they are taken at, what is kept of them, and how they are read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from counting_measures import CALLS, INTERRUPT_AT, Answers, Sums, files, track
from tiny_run import alter_checkpoint, copied, drop_last_checkpoints

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.timelines import tracking as tracking_module
from interp_shortcuts.timelines.cache import PARTIAL_NAME
from interp_shortcuts.timelines.cadence import checked_cadence, due
from interp_shortcuts.timelines.timeline import FILE_NAME, Timeline
from interp_shortcuts.timelines.tracker import CircuitTracker

THIN = {"answers": 3}
"""Of the steps 0, 2, 4, 6, 8: the first, the fourth and the last."""


def asked() -> list[int]:
    return sorted(step for name, step in CALLS if name == "answers")


def steps_of(timeline: Timeline, name: str) -> list[int]:
    return timeline.array(name)["step"].to_numpy().tolist()


@pytest.mark.parametrize(
    ("every", "expected"),
    [(1, (0, 2, 4, 6, 8)), (2, (0, 4, 8)), (3, (0, 6, 8)), (4, (0, 8)), (99, (0, 8))],
)
def test_the_first_every_kth_and_the_last(every: int, expected: tuple[int, ...]) -> None:
    assert due((0, 2, 4, 6, 8), every) == expected
    assert due((), every) == ()
    assert due((5,), every) == (5,)


def test_what_is_asked_for_is_checked() -> None:
    assert checked_cadence(1, ["a", "b"]) == {"a": 1, "b": 1}
    assert checked_cadence(4, ["a", "b"]) == {"a": 4, "b": 4}
    assert checked_cadence({"b": 3}, ["a", "b"]) == {"a": 1, "b": 3}
    with pytest.raises(MeasureError, match=r"`cadence` of 'b' \(=0\) must be 1 or more"):
        checked_cadence({"b": 0}, ["a", "b"])
    with pytest.raises(MeasureError, match="names 'c', which is not measured; the measures are a,"):
        checked_cadence({"c": 2}, ["a", "b"])


def test_a_thinned_measure_is_taken_at_its_steps_only(folder: Path) -> None:
    timeline = track(folder, Sums(), Answers(), cadence=THIN)
    assert asked() == [0, 6, 8]
    assert timeline.steps == (0, 2, 4, 6, 8)
    assert steps_of(timeline, "answers") == [0, 6, 8]
    assert steps_of(timeline, "sums") == [0, 2, 4, 6, 8]
    attrs = timeline.data["answers"].attrs
    assert attrs["cadence"] == 3
    assert json.loads(attrs["covers"]) == {"step": [0, 6, 8]}
    assert "cadence" not in timeline.data["sums"].attrs
    assert "cadence" not in timeline.data["answers_n"].attrs  # has no steps
    assert np.isnan(timeline.data["answers"].sel(step=[2, 4])).all()
    whole = track(folder, Sums(), Answers(), cache=False)
    np.testing.assert_array_equal(
        timeline.array("answers"), whole.array("answers").sel(step=[0, 6, 8])
    )
    table = timeline.to_dataframe()
    assert table.loc[table["measure"] == "answers", "step"].tolist() == [0, 6, 8]
    assert files(folder) == {FILE_NAME}
    xr.testing.assert_identical(timeline.data, Timeline.open(folder).data)


def test_tracking_thinly_again_measures_nothing(folder: Path) -> None:
    first = track(folder, Sums(), Answers(), cadence=THIN)
    written = (folder / FILE_NAME).stat().st_mtime_ns
    CALLS.clear()
    xr.testing.assert_identical(track(folder, Sums(), Answers(), cadence=THIN).data, first.data)
    assert not CALLS
    assert (folder / FILE_NAME).stat().st_mtime_ns == written


def test_all_measures_can_be_thinned(folder: Path) -> None:
    timeline = track(folder, Sums(), Answers(), cadence=4)
    assert timeline.steps == (0, 8)
    assert timeline.data["sums"].attrs["cadence"] == 4
    assert CALLS == {("sums", 2): 1, ("answers", 0): 1, ("answers", 8): 1}
    xr.testing.assert_identical(timeline.data, Timeline.open(folder).data)
    CALLS.clear()
    track(folder, Sums(), Answers(), cadence=4)
    assert not CALLS


def test_a_finer_cadence_measures_what_is_missing(folder: Path) -> None:
    track(folder, Sums(), Answers(), cadence=THIN)
    CALLS.clear()
    timeline = track(folder, Sums(), Answers())
    assert asked() == [2, 4]
    assert "cadence" not in timeline.data["answers"].attrs
    xr.testing.assert_identical(Timeline.open(folder).data, timeline.data)
    fresh = track(folder, Sums(), Answers(), cache=False)
    xr.testing.assert_equal(timeline.data, fresh.data)


def test_a_coarser_cadence_loses_nothing_that_was_measured(folder: Path) -> None:
    whole = track(folder, Sums(), Answers())
    CALLS.clear()
    thin = track(folder, Sums(), Answers(), cadence=THIN)
    assert steps_of(thin, "answers") == [0, 6, 8]
    xr.testing.assert_identical(Timeline.open(folder).data, whole.data)
    track(folder, Sums(), Answers(), Answers(variable="more"), cadence=THIN)  # writes anew
    CALLS.clear()
    again = track(folder, Sums(), Answers())
    assert not CALLS
    xr.testing.assert_equal(again.data, whole.data)


def test_a_thinned_measure_stays_in_the_timeline_when_another_is_added(folder: Path) -> None:
    track(folder, Sums(), Answers(), cadence=THIN)
    track(folder, Answers(variable="more"))
    stored = Timeline.open(folder)
    assert set(stored.data.data_vars) == {"more", "more_n", "sums", "answers", "answers_n"}
    assert steps_of(stored, "answers") == [0, 6, 8]
    assert stored.data["answers"].attrs["cadence"] == 3
    assert steps_of(stored, "more") == [0, 2, 4, 6, 8]


def test_a_run_that_went_on_is_measured_where_it_is_due(folder: Path, run: Path) -> None:
    drop_last_checkpoints(folder, 2)
    track(folder, Sums(), Answers(), cadence=THIN)
    assert asked() == [0, 4]  # step 4 as the last
    CALLS.clear()
    whole = copied(run, folder.parent / "whole")
    (folder / FILE_NAME).rename(whole / FILE_NAME)
    timeline = track(whole, Sums(), Answers(), cadence=THIN)
    assert asked() == [6, 8]
    assert steps_of(timeline, "answers") == [0, 6, 8]
    xr.testing.assert_identical(Timeline.open(whole).data, timeline.data)
    CALLS.clear()
    track(whole, Sums(), Answers())
    assert asked() == [2]  # step 4 was kept beside the timeline


def test_a_changed_checkpoint_that_is_due_is_measured_anew(folder: Path) -> None:
    track(folder, Sums(), Answers(), cadence=THIN)
    for step in (4, 6):
        alter_checkpoint(folder, step)
    CALLS.clear()
    after = track(folder, Sums(), Answers(), cadence=THIN)
    assert asked() == [6]
    fresh = track(folder, Sums(), Answers(), cadence=THIN, cache=False)
    xr.testing.assert_equal(after.data, fresh.data)


@pytest.mark.parametrize("step", [0, 6, 8])
def test_a_killed_thin_tracking_goes_on_where_it_was(folder: Path, step: int) -> None:
    INTERRUPT_AT["answers"] = step
    with pytest.raises(KeyboardInterrupt):
        track(folder, Sums(), Answers(), cadence=THIN)
    assert files(folder) == {PARTIAL_NAME}
    CALLS.clear()
    INTERRUPT_AT.clear()
    timeline = track(folder, Sums(), Answers(), cadence=THIN)
    assert {("answers", s): 1 for s in (0, 6, 8) if s >= step} == CALLS
    assert files(folder) == {FILE_NAME}
    fresh = track(folder, Sums(), Answers(), cadence=THIN, cache=False)
    xr.testing.assert_equal(timeline.data, fresh.data)


def test_observing_takes_every_kth_and_the_last_when_told(folder: Path) -> None:
    trajectory = Trajectory.open(folder)
    tracker = CircuitTracker(trajectory.task, measures=[Sums(), Answers()], cadence=THIN)
    for step, model in trajectory:
        if step == 8:
            assert steps_of(tracker.timeline, "answers") == [0, 6]
        tracker.observe(step, model, last=step == 8)
    observed = tracker.timeline
    tracked = track(folder, Sums(), Answers(), cadence=THIN)
    xr.testing.assert_identical(
        observed.data.drop_attrs(deep=False), tracked.data.drop_attrs(deep=False)
    )


def test_the_bar_counts_what_will_be_measured(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    class Bar:
        def __init__(self, *, total: int, **options: object) -> None:
            seen.append(total)

        def update(self, n: int) -> None:
            seen.append(n)

        def close(self) -> None:
            seen.append(-1)

    monkeypatch.setattr(tracking_module, "tqdm", Bar)
    track(folder, Sums(), Answers(), cadence=THIN)
    assert seen == [5 + 3, 5, 1, 1, 1, -1]
