"""What a process and those that it starts cost: CPU seconds and main memory (on Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import active_children
from pathlib import Path
from threading import Event, Thread

import numpy as np

SECONDS_BETWEEN_LOOKS = 0.2


def cpu_time() -> float:
    """CPU seconds of this process, and of those that it started and that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


@contextmanager
def other_processes() -> Iterator[dict[int, float]]:
    """The most memory that each process started in the block ever held, by process id."""
    peaks: dict[int, float] = {}
    over = Event()

    def watch() -> None:
        while not over.wait(SECONDS_BETWEEN_LOOKS):
            for process in active_children():
                assert process.pid is not None
                peaks[process.pid] = max(peaks.get(process.pid, 0), peak_memory(process.pid))

    watching = Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield peaks
    finally:
        over.set()
        watching.join()


def held_memory() -> float:
    """Bytes of main memory that this process holds."""
    return _status("VmRSS")


def peak_memory(process: int | None = None) -> float:
    """The most that a process ever held, by default this one; 0 if it has just ended."""
    return _status("VmHWM", process)


def _status(field: str, process: int | None = None) -> float:
    # not `getrusage`: its peak is inherited from the process that started this one
    status = Path(f"/proc/{process or 'self'}/status")
    if not Path("/proc/self/status").exists():
        return np.nan
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return 0
    found = [line for line in lines if line.startswith(field)]  # none of a process that is ending
    return float(found[0].split()[1]) * 1024 if found else 0
