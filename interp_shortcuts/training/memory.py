"""Keeps freed memory with the process, so that a training step does not fetch it anew.

The C library of Linux (glibc) hands big blocks back to the system when they are freed, and the
next step has their pages mapped and cleared again: on the demo preset some 1,200 to 1,800 page
faults a step, and none once `keep_freed_memory` was called. How much time that is depends on the
machine; it matters most where several processes share the cores.
"""

from __future__ import annotations

import ctypes
import os
import sys

# From glibc's malloc.h
_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_THRESHOLD = -3

_MMAP_THRESHOLD = 32 * 2**20  # the largest that glibc takes
_TRIM_THRESHOLD = 2**30
_TOP_PAD = 64 * 2**20


def keep_freed_memory() -> bool:
    """Let the process keep up to 1 GiB of freed memory, and take big blocks from the heap.

    It holds for the whole process and until its end, since glibc has no way to read the former
    settings. It changes no result. Elsewhere than on Linux with glibc nothing happens, and where
    the environment sets glibc's own variables (`MALLOC_TRIM_THRESHOLD_` and the like), they hold.

    Returns:
        Whether the settings were taken.
    """
    if not sys.platform.startswith("linux") or any(
        name in os.environ for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
    ):
        return False
    try:
        library = ctypes.CDLL(None)
        _ = library.gnu_get_libc_version  # absent from other C libraries
        mallopt = library.mallopt
    except (OSError, AttributeError):
        return False
    settings = (
        (_M_MMAP_THRESHOLD, _MMAP_THRESHOLD),
        (_M_TRIM_THRESHOLD, _TRIM_THRESHOLD),
        (_M_TOP_PAD, _TOP_PAD),
    )
    taken = [bool(mallopt(option, value)) for option, value in settings]
    return all(taken)
