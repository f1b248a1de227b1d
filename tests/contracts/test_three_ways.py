"""A run folder, checkpoints of one's own, and one's own loop give the same numbers, bit by bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from tiny_run import trained

from interp_shortcuts.models.build import weights_of
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.timelines.timeline import Timeline
from interp_shortcuts.timelines.tracker import CircuitTracker


@pytest.fixture(scope="module")
def trajectory(tmp_path_factory: pytest.TempPathFactory) -> Trajectory:
    return Trajectory.open(trained(tmp_path_factory.mktemp("run") / "tiny").path)


@pytest.fixture(scope="module")
def from_run(trajectory: Trajectory) -> Timeline:
    return CircuitTracker(trajectory).track()


def same(one: Timeline, other: Timeline) -> None:
    assert set(one.data.variables) == set(other.data.variables)
    for name in one.data.variables:
        xr.testing.assert_identical(one.data[name], other.data[name])
        first, second = one.data[name].to_numpy(), other.data[name].to_numpy()
        assert first.dtype == second.dtype, name
        if first.dtype.kind == "f":  # NaN included, and -0.0 told from 0.0
            assert first.tobytes() == second.tobytes(), name
    for name in ("task", "task_fingerprint", "spec", "n_classes", "chance", "versions"):
        assert one.data.attrs[name] == other.data.attrs[name], name


def test_every_measure_is_there(from_run: Timeline, trajectory: Trajectory) -> None:
    assert from_run.steps == trajectory.steps
    expected = {"accuracy", "qk_spearman", "attention_to_max", "ov_spearman", "ov_class_fraction"}
    assert expected <= set(from_run.data.data_vars)
    assert np.isfinite(from_run.array("qk_score")).all()


def test_state_dicts_and_files(trajectory: Trajectory, from_run: Timeline, tmp_path: Path) -> None:
    checkpoints: list[tuple[int, object]] = []
    for number, (step, model) in enumerate(trajectory):
        file = tmp_path / f"{step}.pt"
        torch.save(model.state_dict(), file)
        checkpoints.append((step, file if number % 2 else weights_of(model)))
    own = Trajectory.from_checkpoints(checkpoints, spec=trajectory.spec, task=trajectory.task)
    timeline = CircuitTracker(own).track()
    same(timeline, from_run)
    assert timeline.data.attrs["source"] == "checkpoints"


def test_the_users_own_loop(trajectory: Trajectory, from_run: Timeline) -> None:
    tracker = CircuitTracker(trajectory.task)
    for step, model in trajectory:
        tracker.observe(step, model.train())
        assert model.training
    same(tracker.timeline, from_run)
    assert tracker.timeline.data.attrs["source"] == "observed"


def test_what_is_stored(trajectory: Trajectory, from_run: Timeline) -> None:
    assert trajectory.path is not None
    same(Timeline.open(trajectory.path), from_run)
    same(CircuitTracker(Trajectory.open(trajectory.path)).track(), from_run)


def test_phases_are_the_same(trajectory: Trajectory, from_run: Timeline) -> None:
    assert trajectory.path is not None
    stored = Timeline.open(trajectory.path)
    assert stored.phases().to_dict() == from_run.phases().to_dict()
