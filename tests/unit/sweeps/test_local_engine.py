"""The local engine: whatever is killed or interrupted, nothing is lost and no bit changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from small_sweep import (
    ENVIRONMENT,
    SCRIPT,
    attempts,
    gone,
    small_sweep,
    trained_alone,
    trainer,
    until,
)
from tiny_runs import tree

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.presets import smoke
from interp_shortcuts.runs.run import Run
from interp_shortcuts.sweeps import LocalEngine, train_seeds
from interp_shortcuts.sweeps.folder import SweepFolder
from interp_shortcuts.sweeps.table import results


class Driver:
    """`interp-shortcuts sweep FILE` in a process of its own, with one worker."""

    def __init__(self, folder: Path) -> None:
        self.home = SweepFolder(folder / "out")
        self.script = folder / "sweep.py"
        self.script.write_text(SCRIPT)

    def start(self) -> subprocess.Popen[str]:
        command = ["-m", "interp_shortcuts.cli", "sweep", str(self.script), "--workers", "1"]
        return subprocess.Popen(
            [sys.executable, *command, "--out", str(self.home.path)],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.mark.slow
def test_killed_workers_and_drivers_and_ctrl_c_lose_nothing(tmp_path: Path):
    driver, sweep = Driver(tmp_path), small_sweep()
    first, second = sweep.jobs

    # A worker is killed: its run comes again after the others. Then the driver is killed.
    process = driver.start()
    _, worker = trainer(driver.home, [first])
    os.kill(worker, signal.SIGKILL)
    _, worker = trainer(driver.home, [second])
    process.send_signal(signal.SIGKILL)
    process.communicate()
    until(lambda: gone(worker), seconds=60.0)
    assert [Run.open(driver.home.run_path(job)).status for job in sweep.jobs] == ["interrupted"] * 2

    # The next one is interrupted by Ctrl-C.
    process = driver.start()
    worker = trainer(driver.home, [second], turns=1)[1]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "stopping 1 run ..." in err
    assert err.rstrip().endswith("interrupted; the same command goes on from here")
    assert "Traceback" not in err
    assert gone(worker)
    assert list(results(driver.home.path)["status"]) == ["finished", "stopped"]

    # The last one finishes; its bar begins with what was finished before.
    process = driver.start()
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0
    assert out.splitlines() == [str(driver.home.csv_path), str(driver.home.parquet_path)]
    assert "1/2 runs" in err
    assert list(results(driver.home.path)["status"]) == ["finished", "finished"]

    # Nothing was run twice: every attempt went on where the last one had been saved.
    assert attempts(driver.home, first) == ["lost", "finished"]
    assert attempts(driver.home, second) == ["", "stopped", "finished"]
    for job, turns in ((first, 1), (second, 2)):
        resumed = Run.open(driver.home.run_path(job)).manifest["resumed"]
        assert [turn["step"] >= 20 for turn in resumed] == [True] * turns
        alone = trained_alone(job.config, tmp_path / job.folder_name)
        assert tree(driver.home.run_path(job)) == alone


@pytest.mark.slow
def test_a_seed_trained_by_a_worker_is_the_one_trained_alone(tmp_path: Path):
    config = smoke(3)
    (result,) = train_seeds([config], out=tmp_path / "many", workers=2, progress=False)
    assert result.ok
    assert tree(result.path) == trained_alone(config, tmp_path / "alone")


def test_a_script_without_a_guard_is_told_so(tmp_path: Path):
    script = tmp_path / "unguarded.py"
    script.write_text(
        "from interp_shortcuts import presets\n"
        "from interp_shortcuts.sweeps import train_seeds\n"
        f"train_seeds([presets.smoke(0)], out={str(tmp_path / 'runs')!r}, workers=2)\n"
    )
    done = subprocess.run(
        [sys.executable, script], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    last = done.stderr.rstrip().splitlines()[-1]
    assert "ConfigError: a worker process could not start" in last
    assert "if __name__ == '__main__':" in last


def test_impossible_workers_are_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"`workers` must be at least 1; got 0"):
        LocalEngine(0)
    with pytest.raises(ConfigError, match=r"`workers` must be at least 1; got 0"):
        train_seeds([smoke(0)], out=tmp_path, workers=0)
