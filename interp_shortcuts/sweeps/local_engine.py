"""`LocalEngine`: runs in processes of this machine, without a server.

Each worker is a pool of one process: when it dies, its run alone is lost. A worker ends by itself
when the process that drives it is gone, however that went.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from interp_shortcuts.errors import ConfigError, WorkerLostError
from interp_shortcuts.sweeps.engines import Engine, cpu_count
from interp_shortcuts.sweeps.worker import Assignment, Ending, perform

SECONDS_TO_START = 60.0


@dataclass(eq=False)
class _Worker:
    """A process, and what it is doing."""

    pool: ProcessPoolExecutor
    ready: Future[int]
    """Its process id, once it has started."""
    key: str | None = None
    future: Future[Ending] | None = None

    def signal(self, sign: int) -> None:
        """Send a signal, if the process is there."""
        with suppress(Exception):  # it never started, or is gone
            os.kill(self.ready.result(timeout=SECONDS_TO_START), sign)


@dataclass
class LocalEngine(Engine):
    """Processes of this machine; each takes one run at a time and imports torch once.

    Attributes:
        workers: How many; none: as many as there are CPUs.
    """

    name = "local"

    workers: int | None = None
    _workers: list[_Worker] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ConfigError(f"`workers` must be at least 1; got {self.workers}.")

    @property
    def slots(self) -> int:
        return cpu_count() if self.workers is None else self.workers

    def start(self) -> None:
        """Processes start when there is work for them."""

    def submit(self, key: str, assignment: Assignment) -> None:
        worker = next((one for one in self._workers if one.key is None), None)
        if worker is None:
            worker = self._new_worker()
        worker.key, worker.future = key, worker.pool.submit(_work, assignment)

    def wait(self, timeout: float) -> list[tuple[str, Ending]]:
        busy = {worker.future: worker for worker in self._workers if worker.future is not None}
        done, _ = wait(busy, timeout=timeout, return_when=FIRST_COMPLETED)
        ended = []
        for future in done:
            worker = busy[future]
            key, ending = worker.key, self._ending(worker, future)
            worker.key = worker.future = None
            assert key is not None
            ended.append((key, ending))
        return ended

    def interrupt(self) -> None:
        for worker in self._workers:
            if worker.key is not None:
                worker.signal(signal.SIGTERM)

    def close(self) -> None:
        for worker in self._workers:
            if worker.key is not None:
                worker.signal(signal.SIGKILL)
            worker.pool.shutdown(wait=True, cancel_futures=True)
        self._workers.clear()

    def _new_worker(self) -> _Worker:
        spawn = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=_prepare)
        with _ctrl_c_held_back():  # the process inherits it, until it is ready for it
            worker = _Worker(pool, pool.submit(os.getpid))
        self._workers.append(worker)
        return worker

    def _ending(self, worker: _Worker, future: Future[Ending]) -> Ending:
        error = future.exception()
        if error is None:
            return future.result()
        if isinstance(error, BrokenProcessPool):
            self._workers.remove(worker)
            worker.pool.shutdown(wait=True)
            if worker.ready.exception() is not None:
                raise ConfigError(
                    "a worker process could not start; what it said is above. A script must keep "
                    "what it does under `if __name__ == '__main__':`, since every worker imports "
                    "it."
                ) from error
            return Ending(
                "lost", error=WorkerLostError("the process that trained it was killed or crashed")
            )
        if isinstance(error, KeyboardInterrupt):
            return Ending("stopped")
        return Ending("failed", error=error if isinstance(error, Exception) else None)


def _prepare() -> None:
    """What a new worker does first: leave Ctrl-C to the driver, and watch that it lives."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_driver, daemon=True).start()


def _end_with_driver() -> None:
    """Runs can be stopped at any moment, and the next driver must find them free."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)


def _work(assignment: Assignment) -> Ending:
    """Trains one run; SIGTERM stops it as Ctrl-C would."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        return perform(assignment)
    except KeyboardInterrupt:
        return Ending("stopped")
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _stop(sign: int, frame: Any) -> None:  # noqa: ARG001
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: the run is being marked as stopped
    raise KeyboardInterrupt


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
