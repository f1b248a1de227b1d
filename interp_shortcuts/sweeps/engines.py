"""What an engine is: something that trains several runs at once, and tells when each has ended.

In which order runs are handed out, and what happens after a failure, is `dispatch`'s business.
`LocalEngine` and `RayEngine` are in files of their own.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from interp_shortcuts.sweeps.worker import Assignment, Ending, perform


class Engine(ABC):
    """Trains runs; one that is started can be used for several sweeps in turn."""

    name: ClassVar[str]
    in_process: ClassVar[bool] = False
    """Whether runs are trained in this very process, where Ctrl-C reaches them by itself."""

    _started = False

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many runs are trained at once."""

    @abstractmethod
    def submit(self, key: str, assignment: Assignment) -> None:
        """Begin a run; no more than `slots` at a time."""

    @abstractmethod
    def wait(self, timeout: float) -> list[tuple[str, Ending]]:
        """The runs that have ended; returns after `timeout` seconds if there are none."""

    @abstractmethod
    def interrupt(self) -> None:
        """Tell the runs to stop; each ends by `wait`, its folder saying `stopped`."""

    @abstractmethod
    def start(self) -> None:
        """Make ready."""

    @abstractmethod
    def close(self) -> None:
        """End all workers, at once."""

    @contextmanager
    def session(self) -> Iterator[None]:
        """The engine started for the block; inside another session it stays as it is."""
        if self._started:
            yield
            return
        self.start()
        self._started = True
        try:
            yield
        finally:
            self._started = False
            self.close()


class InProcessEngine(Engine):
    """One run after another in this process."""

    name = "in process"
    in_process = True

    def __init__(self) -> None:
        self._waiting: list[tuple[str, Assignment]] = []

    @property
    def slots(self) -> int:
        return 1

    def submit(self, key: str, assignment: Assignment) -> None:
        self._waiting.append((key, assignment))

    def wait(self, timeout: float) -> list[tuple[str, Ending]]:  # noqa: ARG002
        key, assignment = self._waiting.pop()
        return [(key, perform(assignment))]

    def interrupt(self) -> None:
        """Nothing is left running: Ctrl-C has ended the run."""

    def start(self) -> None:
        self._waiting.clear()

    def close(self) -> None:
        self._waiting.clear()


def cpu_count() -> int:
    """The CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
