"""A sweep whose runs train in a moment, how to catch one in the middle, and how to kill it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from tiny_runs import tree

from interp_shortcuts.presets import smoke
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.lock import is_being_trained
from interp_shortcuts.runs.store import RunFolder
from interp_shortcuts.sweeps.folder import SweepFolder
from interp_shortcuts.sweeps.plan import Job, Sweep

BASE = smoke(n_steps=80, every=10, resume_every=20, n_train=64, n_validation=16, n_adversarial=16)

SLOWLY = """
import multiprocessing
import time

def slowly():
    from interp_shortcuts.training import session
    append = session.append_curve

    def append_slowly(path, record):
        append(path, record)
        time.sleep(0.3)

    session.append_curve = append_slowly

if multiprocessing.parent_process() or "ray" in __import__("sys").modules:  # in a worker
    slowly()
"""
"""Keeps a run in its middle for a second or two, at no cost."""

SCRIPT = f"""{SLOWLY}
from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep

base = presets.smoke(
    n_steps=80, every=10, resume_every=20, n_train=64, n_validation=16, n_adversarial=16
)
sweep = Sweep(name="small", base=base, grid={{"n_layers": [1, 2]}}, seeds="0")
"""

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def small_sweep(*cells: dict[str, object]) -> Sweep:
    return Sweep(name="small", base=BASE, grid=cells or {"n_layers": [1, 2]}, seeds=[0])


def trained_alone(config: RunConfig, folder: Path) -> dict[str, bytes]:
    """What the run gives when it is trained here, by itself."""
    from interp_shortcuts.training.loop import train

    return tree(train(config, out=folder, threads=1, progress=False).path)


def trainer(home: SweepFolder, jobs: list[Job], *, turns: int = 0) -> tuple[Job, int]:
    """Waits until one of the jobs is in the middle; the job, and the process that trains it.

    Args:
        home: The sweep's folder.
        jobs: Those that are looked at.
        turns: How often the job must have been resumed.
    """
    found: list[tuple[Job, int]] = []

    def look() -> bool:
        for job in jobs:
            folder = RunFolder(home.run_path(job))
            if not is_being_trained(folder.path) or not folder.curves_path.exists():
                continue
            lines = folder.curves_path.read_bytes().count(b"\n")
            if lines >= 4 and len(folder.read_manifest()["resumed"]) == turns:  # past step 20
                holder = lock_holder(folder.path / ".lock")
                if holder is not None:
                    found.append((job, holder))
                    return True
        return False

    until(look)
    return found[0]


def lock_holder(lock: Path) -> int | None:
    for process in psutil.process_iter():
        try:
            if any(file.path == str(lock) for file in process.open_files()):
                return process.pid
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return None


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def until(true: Callable[[], bool], *, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def attempts(home: SweepFolder, job: Job) -> list[str]:
    """How the attempts at a job ended."""
    return [attempt.status for attempt in home.attempts(job).read()]
