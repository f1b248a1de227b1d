"""`run_sweep`: what is trained, what is skipped, and what a failure leaves; in this process."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from small_sweep import attempts, small_sweep

from interp_shortcuts.errors import StorageError
from interp_shortcuts.runs.lock import training_lock
from interp_shortcuts.runs.run import Run
from interp_shortcuts.sweeps import run_sweep
from interp_shortcuts.sweeps.engines import InProcessEngine
from interp_shortcuts.sweeps.folder import SweepFolder
from interp_shortcuts.sweeps.plan import Sweep
from interp_shortcuts.sweeps.script import load_sweeps
from interp_shortcuts.sweeps.seeds import SeedResult
from interp_shortcuts.sweeps.table import results

GOOD = {"n_layers": 1, "n_steps": 4}
IMPOSSIBLE = {"n_train": 2000}
"""More training examples than there are sequences."""
WILD = {"optimizer": "sgd", "lr": 1e30, "n_steps": 4}


def trained(sweep: Sweep, out: Path, **more: Path) -> list[SeedResult]:
    return run_sweep(sweep, out=out, engine=InProcessEngine(), progress=False, **more)


def test_a_failure_is_tried_once_more_and_stops_nothing(tmp_path: Path):
    sweep, home = small_sweep(IMPOSSIBLE, WILD, GOOD), SweepFolder(tmp_path / "s")
    ended = trained(sweep, home.path)
    assert [result.status for result in ended] == ["failed", "diverged", "finished"]
    assert [result.ok for result in ended] == [False, False, True]
    tried = [attempts(home, job) for job in sweep.jobs]
    assert tried == [["failed", "failed"], ["diverged"], ["finished"]]
    table = results(home.path)
    assert list(table["status"]) == ["failed", "diverged", "finished"]
    assert table["error"][0].startswith("TaskError: ")
    assert str(ended[0].error) in table["error"][0]
    assert "the loss is" in table["error"][1]
    assert table["error"][2] == ""

    # Again: what has ended is left alone, and what failed has another chance.
    before = Run.open(home.run_path(sweep.jobs[2])).manifest
    assert [result.status for result in trained(sweep, home.path)] == [
        "failed",
        "diverged",
        "finished",
    ]
    assert Run.open(home.run_path(sweep.jobs[2])).manifest == before
    tried = [attempts(home, job) for job in sweep.jobs]
    assert tried == [["failed"] * 4, ["diverged"], ["finished"]]


def test_a_larger_plan_keeps_the_runs_that_it_shares(tmp_path: Path):
    home = SweepFolder(tmp_path / "s")
    trained(small_sweep(GOOD), home.path)
    larger = small_sweep({**GOOD, "ratio": 0.5}, GOOD)
    assert all(result.ok for result in trained(larger, home.path))
    assert attempts(home, larger.jobs[1]) == ["finished"]
    assert list(results(home.path)["cell"]) == [cell.label for cell in larger.cells]


def test_two_processes_do_not_drive_one_sweep(tmp_path: Path):
    with (
        training_lock(tmp_path),
        pytest.raises(StorageError, match=r"is being run by another process"),
    ):
        trained(small_sweep(GOOD), tmp_path)


def test_a_folder_of_something_else_is_left_as_it_is(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StorageError, match=r"not a sweep folder"):
        trained(small_sweep(GOOD), tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.name != ".lock"] == ["notes.txt"]


def test_ctrl_c_marks_the_run_and_keeps_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from interp_shortcuts.training import session

    append = session.append_curve

    def pressed(path, record):
        append(path, record)
        if record["step"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    sweep, home = small_sweep({**GOOD, "every": 2}, {**GOOD, "ratio": 0.5}), SweepFolder(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(session, "append_curve", pressed)
        with pytest.raises(KeyboardInterrupt):
            trained(sweep, home.path)
    assert list(results(home.path)["status"]) == ["stopped", "pending"]
    assert all(result.ok for result in trained(sweep, home.path))
    assert attempts(home, sweep.jobs[0]) == ["stopped", "finished"]


def test_a_rule_of_the_script_is_known_where_its_runs_are_trained(tmp_path: Path):
    from interp_shortcuts.tasks import rules

    path = tmp_path / "script.py"
    path.write_text(
        "from interp_shortcuts import presets\n"
        "from interp_shortcuts.sweeps import Sweep\n"
        "from interp_shortcuts.tasks.rules import TaskRule, register_rule\n"
        "register_rule(TaskRule('last_mod3', label=lambda x: x.sum(1) % 3,\n"
        "    shortcut=lambda x: x[:, -1] % 3, n_classes=3))\n"
        "sweep = Sweep(name='own', base=presets.smoke(rule='last_mod3', n_steps=2), seeds='0')\n"
    )
    (sweep,) = load_sweeps(path)
    assert all(result.ok for result in trained(sweep, tmp_path / "own", script=path))
    rules.RULES.pop("last_mod3")  # as in a process that has not run the script
    assert list(results(tmp_path / "own")["chance"]) == [1 / 3]
