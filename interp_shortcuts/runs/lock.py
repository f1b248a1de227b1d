"""One process trains in a run folder at a time, and a dead one is told from a living one.

The operating system drops the lock when its holder dies, however it dies. Where the platform or
the file system has no such locks, the functions here let everything pass.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from interp_shortcuts.errors import StorageError

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None

_NAME = ".lock"


@contextmanager
def training_lock(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; it goes with the process, or with the block.

    Raises:
        StorageError: If another process is training in the folder.
    """
    if fcntl is None:
        yield
        return
    path = folder / _NAME
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StorageError(
                f"'{folder}' is being trained in by another process. Wait for it, stop it, or "
                "choose another `out`."
            ) from error
        except OSError:  # a file system without locks
            yield
            return
        yield
        with suppress(OSError):
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def is_being_trained(folder: Path) -> bool | None:
    """Whether a living process holds the folder's lock; None where that cannot be known."""
    if fcntl is None:
        return None
    try:
        descriptor = os.open(folder / _NAME, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return False
