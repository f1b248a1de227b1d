"""`run_sweep`: trains what is missing of a sweep, and records every attempt.

It can be killed at any moment and started again: what is finished is skipped, what was interrupted
goes on from its last saved state. How runs are handed out is `dispatch`, by whom they are trained
the engines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from interp_shortcuts.errors import StorageError
from interp_shortcuts.runs.lock import training_lock
from interp_shortcuts.runs.store import ENDED
from interp_shortcuts.sweeps.attempts import AttemptLog
from interp_shortcuts.sweeps.dispatch import Observer, dispatch
from interp_shortcuts.sweeps.engines import Engine
from interp_shortcuts.sweeps.folder import SweepFolder
from interp_shortcuts.sweeps.local_engine import LocalEngine
from interp_shortcuts.sweeps.plan import Sweep
from interp_shortcuts.sweeps.progress import Progress
from interp_shortcuts.sweeps.seeds import SeedResult, seed_result
from interp_shortcuts.sweeps.table import job_status
from interp_shortcuts.sweeps.worker import Assignment, Ending


def run_sweep(
    sweep: Sweep,
    *,
    out: Path | str,
    engine: Engine | None = None,
    threads: int = 1,
    device: str = "cpu",
    script: Path | None = None,
    progress: bool = True,
    on_stop: Callable[[int], None] | None = None,
) -> list[SeedResult]:
    """Trains every run of a sweep that has not ended yet.

    A run that fails, or whose worker dies, is tried once more, then recorded as failed with its
    error; it never stops the others. Calling this again goes on: runs that have ended are left as
    they are, interrupted ones go on to the bit-identical end, failed ones are tried again.

    Args:
        sweep: The plan.
        out: The sweep folder. A changed plan of the same name keeps the runs that it shares.
        engine: Who trains; none: `LocalEngine()`, a process for each CPU.
        threads: Torch's thread count for each run; another count differs in rounding.
        device: Where to train, `"cpu"` or `"cuda"`; bits are only promised on `"cpu"`.
        script: A script to run in every worker before, for the rules that it registers.
        progress: Whether a bar shows how far the runs are.
        on_stop: Called on Ctrl-C, with the number of runs that are told to stop.

    Returns:
        One result a run, in the order of `sweep.jobs`; those that failed or diverged have `ok`
        False.

    Raises:
        StorageError: If the folder holds something else, or another process runs the sweep.
        ConfigError: If the engine cannot start.
        KeyboardInterrupt: On Ctrl-C, once all runs have stopped.
    """
    engine = LocalEngine() if engine is None else engine
    home = SweepFolder(Path(out).absolute())
    with _driving(home):
        home.write_sweep(sweep)
        jobs = {job.folder_name: job for job in sweep.jobs}
        statuses = {key: job_status(home, job)[0] for key, job in jobs.items()}
        assignments = {
            key: Assignment(
                job.config,
                home.run_path(job),
                threads=threads,
                device=device,
                script=None if script is None else script.resolve(),
            )
            for key, job in jobs.items()
        }
        todo = {key: one for key, one in assignments.items() if statuses[key] not in ENDED}
        bar = Progress(todo, label=sweep.name, done=len(jobs) - len(todo), shown=progress)
        logs = {key: home.attempts(jobs[key]) for key in todo}
        record = _Record(todo, logs, bar, engine=engine.name, on_stop=on_stop)
        try:
            if todo:
                with engine.session():
                    dispatch(todo, engine, record, retry_failed=True)
        finally:
            bar.close()
    return [
        record.results.get(key)
        or SeedResult(assignments[key].config, assignments[key].path, statuses[key])
        for key in jobs
    ]


class _Record(Observer):
    """Writes every attempt down, and keeps how each run ended."""

    def __init__(
        self,
        assignments: Mapping[str, Assignment],
        logs: Mapping[str, AttemptLog],
        bar: Progress,
        *,
        engine: str,
        on_stop: Callable[[int], None] | None,
    ) -> None:
        self.results: dict[str, SeedResult] = {}
        self._began: dict[str, float] = {}
        self._assignments, self._logs, self._bar = assignments, logs, bar
        self._engine, self._on_stop = engine, on_stop

    def began(self, key: str) -> None:
        self._began[key] = time.monotonic()
        self._logs[key].begin(engine=self._engine)
        self._bar.began(key)

    def ended(self, key: str, ending: Ending, *, again: bool) -> None:
        # one that was stopped or lost tells no time; then that of its worker's start is in it
        seconds = ending.seconds or time.monotonic() - self._began[key]
        self._logs[key].end(ending.status, error=ending.text, seconds=seconds, again=again)
        self._bar.ended(key, ending, again=again)
        if not again:
            self.results[key] = seed_result(self._assignments[key], ending)

    def tick(self, running: Collection[str]) -> None:
        self._bar.tick(running)

    def stopping(self, running: Collection[str]) -> None:
        tell = self._on_stop
        if tell is not None:
            self._bar.aside(lambda: tell(len(running)))


@contextmanager
def _driving(home: SweepFolder) -> Iterator[None]:
    """One process drives a sweep at a time; the lock goes with the process."""
    made = not home.path.exists()
    home.path.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        try:
            held.enter_context(training_lock(home.path))
        except StorageError as error:
            raise StorageError(
                f"The sweep in '{home.path}' is being run by another process. Wait for it or stop "
                "it; `interp-shortcuts sweep status` shows how far it is."
            ) from error
        try:
            yield
        finally:
            if made and not home.plan_path.exists():  # refused before anything was written
                (home.path / ".lock").unlink(missing_ok=True)
                home.path.rmdir()
