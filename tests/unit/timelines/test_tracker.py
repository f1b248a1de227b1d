"""Tracking: what is kept in a run folder, what is measured anew, and what `observe` asks for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
import xarray as xr
from counting_measures import CALLS, INTERRUPT_AT, Answers, Sums, files, track, values_of
from tiny_run import alter_checkpoint, copied, drop_last_checkpoints

from interp_shortcuts.errors import MeasureError, StorageError
from interp_shortcuts.measures.base import Observation, WeightsMeasure
from interp_shortcuts.models.build import build
from interp_shortcuts.models.weights import Weights
from interp_shortcuts.runs.run import Run
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.timelines import tracking as tracking_module
from interp_shortcuts.timelines.asked import checked_measures, checked_source
from interp_shortcuts.timelines.cache import PARTIAL_NAME
from interp_shortcuts.timelines.timeline import FILE_NAME, Timeline
from interp_shortcuts.timelines.tracker import CircuitTracker


def test_everything_is_measured_once_and_stored(folder: Path) -> None:
    timeline = track(folder, Sums(), Answers())
    assert {("sums", 5): 1} | {("answers", s): 1 for s in (0, 2, 4, 6, 8)} == CALLS
    assert timeline.steps == (0, 2, 4, 6, 8)
    assert timeline.data["sums"].attrs["measure_key"] == Sums().key
    assert timeline.data["answers_n"].dims == ()
    assert files(folder) == {FILE_NAME}
    xr.testing.assert_identical(timeline.data, Timeline.open(folder).data)


def test_tracking_again_measures_nothing_and_gives_the_same(folder: Path) -> None:
    first = track(folder, Sums(), Answers())
    written = (folder / FILE_NAME).stat().st_mtime_ns
    CALLS.clear()
    xr.testing.assert_identical(track(folder, Sums(), Answers()).data, first.data)
    assert not CALLS
    assert (folder / FILE_NAME).stat().st_mtime_ns == written


def test_without_the_cache_nothing_is_read_or_written(folder: Path) -> None:
    track(folder, Sums(), cache=False)
    assert not files(folder)
    track(folder, Sums())
    CALLS.clear()
    track(folder, Sums(), cache=False)
    assert CALLS["sums", 5] == 1


def test_a_new_measure_is_added_to_what_is_there(folder: Path) -> None:
    track(folder, Sums())
    CALLS.clear()
    timeline = track(folder, Answers())
    assert set(CALLS) == {("answers", s) for s in (0, 2, 4, 6, 8)}
    assert set(timeline.data.data_vars) == {"answers", "answers_n"}  # what was asked for
    assert set(Timeline.open(folder).data.data_vars) == {"answers", "answers_n", "sums"}
    CALLS.clear()
    track(folder, Sums(), Answers())
    assert not CALLS


def test_other_parameters_are_another_measure(folder: Path) -> None:
    one = track(folder, Sums(scale=1.0))
    two = track(folder, Sums(scale=2.0))
    assert CALLS["sums", 5] == 2
    np.testing.assert_allclose(two.data["sums"], 2 * one.data["sums"])
    xr.testing.assert_identical(Timeline.open(folder).data, two.data)
    CALLS.clear()
    again = track(folder, Sums(scale=1.0))  # waited beside the timeline
    assert not CALLS
    xr.testing.assert_equal(again.data, one.data)
    xr.testing.assert_identical(Timeline.open(folder).data, again.data)


def test_new_steps_are_added(folder: Path, run: Path) -> None:
    drop_last_checkpoints(folder, 2)
    track(folder, Sums(), Answers())
    CALLS.clear()
    whole = copied(run, folder.parent / "whole")
    (folder / FILE_NAME).rename(whole / FILE_NAME)
    timeline = track(whole, Sums(), Answers())
    assert CALLS == {("sums", 2): 1, ("answers", 6): 1, ("answers", 8): 1}
    fresh = track(whole, Sums(), Answers(), cache=False)
    xr.testing.assert_equal(timeline.data, fresh.data)


def test_a_changed_checkpoint_is_measured_anew(folder: Path) -> None:
    before = track(folder, Sums(), Answers())
    CALLS.clear()
    alter_checkpoint(folder, 4)
    after = track(folder, Sums(), Answers())
    assert CALLS == {("sums", 1): 1, ("answers", 4): 1}
    changed = (after.data["sums"] != before.data["sums"]).to_numpy()
    assert changed.tolist() == [False, False, True, False, False]
    fresh = track(folder, Sums(), Answers(), cache=False)
    xr.testing.assert_equal(after.data, fresh.data)
    xr.testing.assert_identical(Timeline.open(folder).data, after.data)


def test_a_measure_that_was_not_asked_for_again_is_not_kept_when_outdated(folder: Path) -> None:
    track(folder, Sums(), Answers())
    alter_checkpoint(folder, 4)
    track(folder, Sums())
    assert set(Timeline.open(folder).data.data_vars) == {"sums"}
    assert files(folder) == {FILE_NAME, PARTIAL_NAME}
    CALLS.clear()
    track(folder, Sums(), Answers())
    assert CALLS == {("answers", 4): 1}
    assert files(folder) == {FILE_NAME}


def test_a_step_that_is_gone_leaves_the_timeline(folder: Path) -> None:
    track(folder, Sums())
    drop_last_checkpoints(folder, 1)
    assert track(folder, Sums()).steps == (0, 2, 4, 6)
    assert Timeline.open(folder).steps == (0, 2, 4, 6)


def test_a_slice_of_the_trajectory_does_not_shorten_what_is_stored(folder: Path) -> None:
    whole = track(folder, Sums(), Answers())
    CALLS.clear()
    part = CircuitTracker(Trajectory.open(folder)[2:5], measures=[Sums()]).track()
    assert part.steps == (2, 4)
    assert not CALLS
    xr.testing.assert_identical(Timeline.open(folder).data, whole.data)


@pytest.mark.parametrize("step", [0, 4, 8])
def test_a_killed_tracking_goes_on_where_it_was(folder: Path, step: int) -> None:
    INTERRUPT_AT["answers"] = step
    with pytest.raises(KeyboardInterrupt):
        track(folder, Sums(), Answers())
    assert files(folder) == {PARTIAL_NAME}
    with pytest.raises(StorageError, match="not tracked yet, or not to the end"):
        Timeline.open(folder)
    CALLS.clear()
    INTERRUPT_AT.clear()
    timeline = track(folder, Sums(), Answers())
    assert {("answers", s): 1 for s in (0, 2, 4, 6, 8) if s >= step} == CALLS
    assert files(folder) == {FILE_NAME}
    fresh = track(folder, Sums(), Answers(), cache=False)
    xr.testing.assert_equal(timeline.data, fresh.data)


def test_progress_is_saved_while_tracking(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies without a word, as after kill -9, has saved what is due."""
    monkeypatch.setattr(tracking_module, "SECONDS_BETWEEN_SAVES", 0.0)
    saved = []

    @dataclass(frozen=True)
    class Watching(Answers):
        def measure(self, observation: Observation) -> xr.Dataset:
            saved.append((folder / PARTIAL_NAME).exists())
            return super().measure(observation)

    track(folder, Watching())
    assert saved == [False, True, True, True, True]


def test_an_error_names_measure_and_step_and_keeps_the_rest(folder: Path) -> None:
    @dataclass(frozen=True)
    class Fails(WeightsMeasure):
        name: ClassVar[str] = "fails"

        def of_weights(self, weights: Weights, task: Task) -> xr.Dataset:
            if values_of(weights).max() >= np.float32(limit):
                raise ZeroDivisionError("no such number")
            return xr.Dataset({"fails": ("checkpoint", values_of(weights))})

    limit = float("inf")
    values = track(folder, Fails(), cache=False).data["fails"].to_numpy()
    limit = float(values.max())
    worst = Trajectory.open(folder).steps[int(values.argmax())]
    match = f"fails at step {worst}: ZeroDivisionError: no such number"
    with pytest.raises(MeasureError, match=match):
        track(folder, Sums(), Fails())
    CALLS.clear()
    track(folder, Sums())
    assert not CALLS


@pytest.mark.parametrize("name", [FILE_NAME, PARTIAL_NAME])
def test_a_damaged_file_is_named_with_a_cure(folder: Path, name: str) -> None:
    INTERRUPT_AT["answers"] = 4
    if name == PARTIAL_NAME:
        with pytest.raises(KeyboardInterrupt):
            track(folder, Answers())
        INTERRUPT_AT.clear()
    else:
        track(folder, Sums())
    path = folder / name
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(StorageError, match=rf"{name}' is damaged.*Delete it and track the run"):
        track(folder, Sums())
    path.unlink()
    assert track(folder, Sums()).steps == (0, 2, 4, 6, 8)


def test_checkpoints_of_your_own_leave_nothing_on_disk(folder: Path) -> None:
    trajectory = Trajectory.open(folder)
    own = Trajectory.from_checkpoints(
        [(step, trajectory.weights(step)) for step in trajectory.steps],
        spec=trajectory.spec,
        task=trajectory.task,
    )
    timeline = CircuitTracker(own, measures=[Sums()]).track()
    assert not files(folder)
    assert timeline.data.attrs["source"] == "checkpoints"
    assert (timeline.data.attrs["seed"], timeline.data.attrs["config"]) == (-1, "")


def test_attrs_say_where_it_comes_from(folder: Path) -> None:
    attrs = track(folder, Sums()).data.attrs
    assert attrs["source"] == "run"
    assert attrs["path"] == "run"
    assert str(folder.parent) not in str(attrs)
    assert (attrs["seed"], attrs["n_classes"], attrs["chance"]) == (0, 2, 0.5)
    assert attrs["task_fingerprint"] == Trajectory.open(folder).task.fingerprint


def test_observing_leaves_the_model_as_it_is(folder: Path) -> None:
    trajectory = Trajectory.open(folder)
    model = trajectory.model(4).train()
    fired = []
    model.add_hook("blocks.0.hook_resid_pre", lambda value, hook: fired.append(1))
    model.W_E.requires_grad_(False)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    tracker = CircuitTracker(trajectory.task, measures=[Sums(), Answers()])
    tracker.observe(4, model)
    assert model.training
    assert not model.W_E.requires_grad
    assert model.W_U.requires_grad
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert len(model.hook_dict["blocks.0.hook_resid_pre"].fwd_hooks) == 1
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_compiled_model_can_be_observed(folder: Path) -> None:
    trajectory = Trajectory.open(folder)
    tracker = CircuitTracker(trajectory.task, measures=[Sums()])
    tracker.observe(4, torch.compile(trajectory.model(4), backend="eager"))
    assert tracker.timeline.steps == (4,)


def test_observing_asks_for_increasing_steps(folder: Path) -> None:
    trajectory = Trajectory.open(folder)
    model = trajectory.model(4)
    tracker = CircuitTracker(trajectory.task, measures=[Sums()])
    with pytest.raises(MeasureError, match=r"`step` \(=-1\) must be 0 or more"):
        tracker.observe(-1, model)
    tracker.observe(4, model)
    with pytest.raises(MeasureError, match=r"`step` \(=4\) was observed already"):
        tracker.observe(4, model)
    with pytest.raises(MeasureError, match=r"must be larger than that of the last .* \(=4\)"):
        tracker.observe(2, model)
    tracker.observe(7, model)
    assert tracker.timeline.steps == (4, 7)
    tracker.observe(9, model)
    assert tracker.timeline.steps == (4, 7, 9)  # the timeline is what was observed so far


def test_observing_another_model_is_an_error(folder: Path) -> None:
    trajectory = Trajectory.open(folder)
    tracker = CircuitTracker(trajectory.task, measures=[Sums()])
    tracker.observe(0, trajectory.model(4))
    other_spec = trajectory.spec.model_copy(update={"d_mlp": 12})
    other = build(other_spec, seed=0)
    with pytest.raises(MeasureError, match="The model at step 1 must have the spec"):
        tracker.observe(1, other)
    given = CircuitTracker(trajectory.task, measures=[Sums()], spec=trajectory.spec)
    with pytest.raises(MeasureError, match="must have the spec"):
        given.observe(1, other)
    with pytest.raises(MeasureError, match="`spec` must be left out with a trajectory"):
        CircuitTracker(trajectory, spec=other_spec)


def test_an_observation_that_fails_leaves_nothing_behind(folder: Path) -> None:
    trajectory = Trajectory.open(folder)
    tracker = CircuitTracker(trajectory.task, measures=[Sums(), Answers()])
    tracker.observe(0, trajectory.model(0))
    INTERRUPT_AT["answers"] = 2
    with pytest.raises(KeyboardInterrupt):
        tracker.observe(2, trajectory.model(2))
    INTERRUPT_AT.clear()
    tracker.observe(2, trajectory.model(2))
    assert tracker.timeline.steps == (0, 2)


def test_the_two_ways_of_use_are_told_apart(folder: Path) -> None:
    trajectory = Trajectory.open(folder)
    watching = CircuitTracker(trajectory.task)
    with pytest.raises(MeasureError, match=r"`track\(\)` needs a trajectory"):
        watching.track()
    with pytest.raises(MeasureError, match=r"There is no timeline yet; call `observe"):
        _ = watching.timeline
    tracking = CircuitTracker(trajectory, measures=[Sums()])
    with pytest.raises(MeasureError, match="`observe` needs a tracker that was given a task"):
        tracking.observe(0, trajectory.model(0))
    with pytest.raises(MeasureError, match=r"There is no timeline yet; call `track\(\)`"):
        _ = tracking.timeline
    assert tracking.track() is tracking.timeline
    assert repr(CircuitTracker(trajectory.task, measures=[Sums(), Answers()])) == (
        "CircuitTracker(task max_parity; measures: sums, answers)"
    )


def test_measures_are_checked(folder: Path) -> None:
    task = Trajectory.open(folder).task
    with pytest.raises(MeasureError, match="at least one measure; got none"):
        CircuitTracker(task, measures=[])
    with pytest.raises(MeasureError, match=r"`measures` holds Sums\(scale=1.0\) twice"):
        CircuitTracker(task, measures=[Sums(), Sums()])
    clash = CircuitTracker(Trajectory.open(folder), measures=[Sums(), Sums(scale=2.0)])
    with pytest.raises(MeasureError, match="Two measures give the variable `sums`"):
        clash.track()


def test_a_variable_of_the_users_own_in_the_file_is_no_measurement(folder: Path) -> None:
    timeline = track(folder, Sums())
    Timeline(timeline.data.assign(mine=("step", np.ones(5)))).save(folder)
    CALLS.clear()
    xr.testing.assert_identical(track(folder, Sums()).data, timeline.data)
    assert not CALLS


def test_a_source_that_is_no_trajectory_says_what_to_give(folder: Path) -> None:
    for source in (folder, str(folder)):
        with pytest.raises(MeasureError, match=r"give `Trajectory\.open\("):
            checked_source(source)
    with pytest.raises(MeasureError, match=r"Give `run\.trajectory\(\)`"):
        checked_source(Run.open(folder))
    with pytest.raises(MeasureError, match=r"must be a trajectory, such as .*got 3"):
        checked_source(3)


def test_one_measure_needs_no_list(folder: Path) -> None:
    trajectory = Trajectory.open(folder)
    assert CircuitTracker(trajectory, measures=Sums()).measures == (Sums(),)
    for wrong in (Sums, "sums", 3):
        with pytest.raises(MeasureError, match=r"`measures` must hold measures"):
            checked_measures(wrong)


@dataclass(frozen=True)
class Nameless(Answers):
    name = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Numbers(Answers):
    name: ClassVar[str] = "numbers"

    def measure(self, observation: Observation) -> xr.Dataset:
        return 0.5  # type: ignore[return-value]


@dataclass(frozen=True)
class WeightNumbers(Sums):
    name: ClassVar[str] = "weight_numbers"

    def of_weights(self, weights: Weights, task: Task) -> xr.Dataset:
        return values_of(weights)  # type: ignore[return-value]


def test_measures_that_break_their_contract_are_named(folder: Path) -> None:
    trajectory = Trajectory.open(folder)
    with pytest.raises(MeasureError, match=r"`Nameless` must have a `name`"):
        CircuitTracker(trajectory, measures=[Nameless()])
    for measure in (Numbers(), WeightNumbers()):
        words = rf"`{type(measure).__name__}` must return an `xarray\.Dataset`; it returned"
        with pytest.raises(MeasureError, match=words):
            CircuitTracker(trajectory, measures=[measure]).track()
    with pytest.raises(MeasureError, match=r"`Numbers` must return"):
        CircuitTracker(trajectory.task, measures=Numbers()).observe(0, trajectory.model(0))
