from __future__ import annotations

import numpy as np
import pytest
from tiny_runs import TINY

from interp_shortcuts.cli.tracked import _unfinished
from interp_shortcuts.errors import StorageError
from interp_shortcuts.runs.lock import training_lock
from interp_shortcuts.runs.run import STATUSES, Run
from interp_shortcuts.runs.schedule import evaluation_steps
from interp_shortcuts.runs.store import RunFolder
from interp_shortcuts.tasks.task import ShortcutTask


def test_a_finished_run(tiny_run: Run):
    run = Run.open(tiny_run.path)
    assert run.status == "finished"
    assert run.config == TINY
    assert run.run_id == TINY.run_id
    assert repr(run) == (
        f"Run(finished, step 30 of 30, rule max_parity, seed 0, path='{tiny_run.path}')"
    )


def test_curves_are_tidy(tiny_run: Run):
    curves = tiny_run.curves()
    assert list(curves["step"].unique()) == list(evaluation_steps(TINY.schedule))
    assert list(curves["split"].unique()) == list(
        ShortcutTask.from_config(TINY.task, seed=0).splits
    )
    train, parts = curves[curves["split"] == "train"], ("consistent", "anti")
    for column in ("loss", "accuracy", "shortcut_rate"):
        total = sum(
            curves[curves["split"] == part]["n"].to_numpy()
            * curves[curves["split"] == part][column].to_numpy()
            for part in parts
        )
        np.testing.assert_allclose(train[column], np.asarray(total) / 64, rtol=1e-6)


def test_the_manifest_says_how_the_run_was_made(tiny_run: Run):
    manifest = tiny_run.manifest
    assert manifest["threads"] == 1
    assert manifest["device"] == "cpu"
    assert manifest["ended_by"] == "n_steps"
    assert manifest["started"] <= manifest["finished"]
    assert manifest["versions"]["torch"]
    assert manifest["task"]["achieved_ratio"] == 0.75
    assert manifest["warnings"] == []
    assert {int(step) for step in manifest["checkpoints"]} == set(tiny_run.trajectory().steps)


def test_no_file_holds_an_absolute_path(tiny_run: Run):
    needles = [str(tiny_run.path).encode(), str(tiny_run.path.parent).encode()]
    for file in tiny_run.path.rglob("*"):
        if file.is_file():
            assert not any(needle in file.read_bytes() for needle in needles), file


def test_a_dead_process_is_told_from_a_living_one(copy: RunFolder):
    copy.write_manifest({**copy.read_manifest(), "status": "running"})
    run = Run.open(copy.path)
    assert run.status == "interrupted"
    with training_lock(copy.path):
        assert run.status == "running"
    assert {"running", "interrupted"} < set(STATUSES)


def test_a_torn_line_of_an_interrupted_run_is_passed_over(copy: RunFolder):
    copy.curves_path.write_bytes(copy.curves_path.read_bytes()[:-9])
    with pytest.raises(StorageError, match="line 10 is damaged"):
        Run.open(copy.path).curves()
    copy.write_manifest({**copy.read_manifest(), "status": "running"})
    assert Run.open(copy.path).curves()["step"].max() == 25


def test_a_finished_run_without_all_of_its_curves_is_refused(copy: RunFolder):
    manifest = copy.read_manifest()
    lines = copy.curves_path.read_bytes().splitlines(keepends=True)
    copy.curves_path.write_bytes(b"".join(lines[:-1]))
    run = Run.open(copy.path)
    with pytest.raises(StorageError, match=r"curves.jsonl' ends at step 25, though .* step 30"):
        run.curves()
    for status in ("stopped", "diverged"):  # these end between two evaluations
        copy.write_manifest({**manifest, "status": status})
        assert run.curves()["step"].max() == 25
    copy.curves_path.unlink()
    for status in ("finished", "diverged"):
        copy.write_manifest({**manifest, "status": status})
        with pytest.raises(StorageError, match=r"curves.jsonl' is missing, .* Delete the run"):
            run.curves()
    copy.write_manifest({**manifest, "status": "diverged", "step": 0})  # at its first evaluation
    assert run.curves().empty
    copy.write_manifest({**manifest, "status": "stopped"})
    assert run.curves().empty


def test_a_config_that_was_edited_afterwards_is_found(copy: RunFolder):
    copy.write_config(TINY.replace(lr=0.5))
    with pytest.raises(StorageError, match=r"config.json' was changed after the run began"):
        Run.open(copy.path)


def test_the_last_step_of_a_run_that_was_killed_is_the_last_on_disk(copy: RunFolder):
    manifest = copy.read_manifest()
    copy.write_manifest({**manifest, "status": "running", "step": 0})
    run = Run.open(copy.path)
    assert run.last_step == 30
    assert "step 30 of 30" in repr(run)
    lines = copy.curves_path.read_bytes().splitlines(keepends=True)
    copy.curves_path.write_bytes(b"".join(lines[:2]) + lines[2][:9])
    for step in (20, 25, 30):
        copy.checkpoint_path(step).unlink()
    assert run.last_step == 15
    assert _unfinished(run) == "training interrupted at step 15 of 30"
    copy.curves_path.write_bytes(b"damaged\n")
    assert run.last_step == 15
    copy.write_manifest({**manifest, "status": "failed", "step": 3})
    assert run.last_step == 3
