"""What is shown while several runs are trained: one bar over the runs, with what is left to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta

from tqdm.auto import tqdm

from interp_shortcuts.errors import InterpShortcutsError
from interp_shortcuts.sweeps.cost import run_flops
from interp_shortcuts.sweeps.dispatch import Observer
from interp_shortcuts.sweeps.worker import Assignment, Ending

SECONDS_BETWEEN_LOOKS = 2.0
_FORMAT = "{desc}: {n_fmt}/{total_fmt} runs |{bar}| {elapsed}{postfix}"


class Progress(Observer):
    """A bar over runs: how many have ended, failed and are running, and the time that is left.

    The time is that of the work still to do, by the operations of each run and its step on disk, at
    the pace since the first step was seen: before that, workers start.
    """

    def __init__(
        self, assignments: Mapping[str, Assignment], *, label: str, done: int, shown: bool
    ) -> None:
        """Begins with `done` runs that had ended before."""
        self._assignments = assignments
        self._work = _weights(assignments)
        self._before: dict[str, float] = {}
        self._now: dict[str, float] = {}
        self._failed = 0
        self._looked = time.monotonic()
        self._paced: tuple[float, float] | None = None
        self._bar = tqdm(
            total=done + len(assignments),
            initial=done,
            desc=label,
            bar_format=_FORMAT,
            disable=not shown,
            dynamic_ncols=True,
        )

    def began(self, key: str) -> None:
        self._before.setdefault(key, self._share_done(key))
        self._now.setdefault(key, self._before[key])

    def ended(self, key: str, ending: Ending, *, again: bool) -> None:
        if again:
            return
        self._now[key] = 1.0
        if ending.status != "stopped":
            self._bar.update()
            self._failed += ending.status != "finished"

    def tick(self, running: Collection[str]) -> None:
        now = time.monotonic()
        if now - self._looked < SECONDS_BETWEEN_LOOKS:
            return
        self._looked = now
        for key in running:
            self._now[key] = self._share_done(key)
        self._bar.set_postfix_str(self.line(len(running), now=now))

    def line(self, n_running: int, *, now: float) -> str:
        """The counts, and the time that is left once there is a pace to tell it by.

        Args:
            n_running: How many runs are being trained.
            now: The time, in seconds.
        """
        left = sum(work * (1 - self._now.get(key, 0.0)) for key, work in self._work.items())
        done = sum(self._work[key] * (self._now[key] - self._before[key]) for key in self._now)
        parts = [f"{n_running} running", f"{self._failed} failed"]
        if self._paced is None and done > 0:
            self._paced = (now, done)
        elif self._paced is not None and done > self._paced[1]:
            since, then = self._paced
            seconds = round((now - since) * left / (done - then))
            parts.append(f"{timedelta(seconds=seconds)} left")
        return ", ".join(parts)

    def aside(self, action: Callable[[], None]) -> None:
        """Does something that prints, without tearing the bar."""
        with tqdm.external_write_mode():
            action()

    def close(self) -> None:
        """Leaves the bar as it is."""
        self._bar.close()

    def _share_done(self, key: str) -> float:
        """The fraction of a run's steps that is on disk."""
        from interp_shortcuts.runs.run import Run  # loads pandas, which `presets` need not

        try:
            run = Run.open(self._assignments[key].path)
            return min(run.last_step / run.config.schedule.n_steps, 1.0)
        except (InterpShortcutsError, OSError):  # not begun, or written at this moment
            return 0.0


def _weights(assignments: Mapping[str, Assignment]) -> dict[str, float]:
    """How much work each run is; the steps alone where a rule is known to its script only."""
    try:
        return {key: float(run_flops(one.config)) for key, one in assignments.items()}
    except InterpShortcutsError:
        return {key: float(one.config.schedule.n_steps) for key, one in assignments.items()}
