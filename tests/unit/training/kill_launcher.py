"""Trains tiny runs in processes that are killed, and resumes them; run by `test_kill.py`.

Importing torch takes seconds, so this process imports once and forks the ones that die.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from tiny_runs import TINY

from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.training import loop, session

CONFIG = TINY.replace(
    n_steps=120, batch_size=24, grad_clip=1.0, dense_until=20, every=10, checkpoint_stride=2
)


def global_random_state() -> list[object]:
    """Here and not under pytest, where the run-time checks of types draw from `random`."""
    numpy_state = np.random.get_state()[1].tolist()  # type: ignore[index] # noqa: NPY002
    return [random.getstate(), torch.get_rng_state().tolist(), numpy_state]


def fork(
    out: Path, *, config: RunConfig = CONFIG, prepare: Callable[[], None] = lambda: None
) -> int:
    """Start a process that trains, or goes on training, in a folder."""
    child = os.fork()
    if child:
        return child
    status = 3
    try:
        torch.set_num_threads(1)
        prepare()
        before = global_random_state()
        loop.train(config, out=out, resume=True, progress=False, threads=1)
        status = 0 if global_random_state() == before else 4
    except KeyboardInterrupt:
        status = 2
    finally:
        os._exit(status)


def wait(child: int) -> int:
    """How the process ended: its exit status, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_at_random(out: Path, sign: int, *, times: int, draw: random.Random) -> list[int]:
    """Kill the run that often, each time once a random number of further lines is written."""
    endings = []
    for _ in range(times):
        curves = out / "curves.jsonl"
        before = curves.stat().st_size if curves.exists() else 0
        child = fork(out)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            size = curves.stat().st_size if curves.exists() else 0
            if size > before + draw.randrange(3000):
                break
            time.sleep(0.001)
        time.sleep(draw.random() * 0.02)
        os.kill(child, sign)
        endings.append(wait(child))
    return [*endings, wait(fork(out))]


def kill_at_each_write(out: Path) -> list[int]:
    """Kill the run just before, or just after, its n-th rename: every third n in turn."""
    endings = []
    for count in range(1, 200, 3):
        child = fork(out, prepare=lambda count=count: _die_at_rename(count))
        endings.append(wait(child))
        if endings[-1] == 0:
            break
    return endings


def _die_at_rename(count: int) -> None:
    rename, calls = os.replace, 0

    def replace(source, target):
        nonlocal calls
        calls += 1
        if calls == count and count % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        rename(source, target)
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = replace


def kill_in_a_line(out: Path) -> list[int]:
    """Kill the run half way through a line of its curves, at three steps, and finish it."""

    def prepare(step: int) -> None:
        append = session.append_curve

        def half(path, record):
            append(path, record)
            if record["step"] == step:
                os.truncate(path, path.stat().st_size - 40)
                os.kill(os.getpid(), signal.SIGKILL)

        session.append_curve = half

    endings = [wait(fork(out, prepare=lambda step=step: prepare(step))) for step in (0, 20, 100)]
    return [*endings, wait(fork(out))]


if __name__ == "__main__":
    root = Path(sys.argv[1])
    draw = random.Random(int(sys.argv[2]))
    print("whole", wait(fork(root / "whole")))
    print("random", *kill_at_random(root / "random", signal.SIGKILL, times=4, draw=draw))
    print("interrupted", *kill_at_random(root / "interrupted", signal.SIGINT, times=3, draw=draw))
    print("writes", *kill_at_each_write(root / "writes"))
    print("line", *kill_in_a_line(root / "line"))
