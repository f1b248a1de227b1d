"""How much main memory this process holds and has ever held, as Linux tells; NaN elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def held_memory() -> float:
    """Bytes of main memory that this process holds."""
    return _status("VmRSS")


def peak_memory() -> float:
    """The most that it ever held, in bytes."""
    return _status("VmHWM")


def _status(field: str) -> float:
    # not `getrusage`: its peak is inherited from the process that started this one
    status = Path("/proc/self/status")
    if not status.exists():
        return np.nan
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return float(line.split()[1]) * 1024
