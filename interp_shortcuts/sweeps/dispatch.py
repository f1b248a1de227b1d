"""Hands runs to an engine until all have ended: retries, and a clean end on Ctrl-C.

Every way of training several runs goes through here, whatever the engine. What is shown or recorded
meanwhile is an `Observer`'s business.
"""

from __future__ import annotations

import dataclasses
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from interp_shortcuts.sweeps.engines import Engine
from interp_shortcuts.sweeps.worker import Assignment, Ending

TICK = 0.25
"""Seconds between looks at the runs, and at Ctrl-C."""
SECONDS_TO_STOP = 60.0
"""How long runs may take to stop before they are killed; a step can take that long."""


class Observer:
    """Is told what happens; does nothing by itself."""

    def began(self, key: str) -> None:
        """An attempt at a run began."""

    def ended(self, key: str, ending: Ending, *, again: bool) -> None:
        """An attempt ended; `again` if there will be another one."""

    def tick(self, running: Collection[str]) -> None:
        """Some time has passed; these runs are being trained."""

    def stopping(self, running: Collection[str]) -> None:
        """Ctrl-C was pressed, and these runs are told to stop."""


def dispatch(
    assignments: Mapping[str, Assignment],
    engine: Engine,
    observer: Observer,
    *,
    retry_failed: bool,
) -> None:
    """Trains the runs, in order, as many at once as the engine has slots.

    A run whose worker died is tried once more, from its last saved state, after the others.

    Args:
        assignments: The runs by a name of their own.
        engine: Who trains them; started.
        observer: Who is told.
        retry_failed: Whether a run that failed is tried once more, too.

    Raises:
        KeyboardInterrupt: On Ctrl-C, once all runs have stopped. A second one kills them.
    """
    queue = deque(assignments.items())
    tried: Counter[str] = Counter()
    running: set[str] = set()
    with _interrupts(engine) as pressed:
        try:
            while (queue or running) and not pressed():
                while queue and len(running) < engine.slots:
                    key, assignment = queue.popleft()
                    tried[key] += 1
                    running.add(key)
                    observer.began(key)
                    engine.submit(key, assignment)
                for key, ending in engine.wait(TICK):
                    again = tried[key] == 1 and (
                        ending.status == "lost" or (ending.status == "failed" and retry_failed)
                    )
                    if again:
                        queue.append((key, dataclasses.replace(assignments[key], resume=True)))
                    running.remove(key)
                    observer.ended(key, ending, again=again)
                observer.tick(running)
            if pressed():
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            _stop(engine, running, observer)
            raise


def _stop(engine: Engine, running: set[str], observer: Observer) -> None:
    """Stops the runs and tells of each; those that do not stop in time are killed."""
    try:
        if not engine.in_process:
            observer.stopping(running)
            engine.interrupt()
            deadline = time.monotonic() + SECONDS_TO_STOP
            while running and time.monotonic() < deadline:
                for key, ending in engine.wait(TICK):
                    running.remove(key)
                    lost = ending.status == "lost"
                    observer.ended(key, Ending("stopped") if lost else ending, again=False)
    finally:
        for key in sorted(running):
            observer.ended(key, Ending("stopped"), again=False)
        running.clear()


@contextmanager
def _interrupts(engine: Engine) -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed; it is noted, so that it interrupts nothing half done.

    The second one raises. In a thread, or where runs are trained in this process, the first does.
    """
    if engine.in_process or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    presses = 0

    def note(*_: object) -> None:
        nonlocal presses
        presses += 1
        if presses > 1:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: presses > 0
    finally:
        signal.signal(signal.SIGINT, before)
