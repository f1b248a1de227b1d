"""Processes that measure checkpoints beside this one.

They are spawned, so that they inherit nothing, and each imports torch once; until then this process
measures alone. A process that is no longer needed is ended; one whose tracker died ends by itself.
What is measured at which checkpoint, and what becomes of it, is left to `tracking`.
"""

from __future__ import annotations

import multiprocessing
import pickle
import queue
import signal
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
import xarray as xr
from torch import nn

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.along import located
from interp_shortcuts.measures.base import Measure
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.any_model import build_any, load_any
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.timelines.measured import require_dataset

Pending: TypeAlias = deque[tuple[int, frozenset[str]]]
"""Steps that no process has taken yet, each with the keys of the measures that are taken there."""


class Request(NamedTuple):
    """A checkpoint to be measured."""

    step: int
    weights: Mapping[str, np.ndarray]
    keys: frozenset[str]
    """Of the measures that are taken there."""


class Done(NamedTuple):
    """What was measured at a checkpoint, by the measures' keys."""

    step: int
    results: dict[str, xr.Dataset]


@dataclass(frozen=True)
class Job:
    """What a process must know to measure the checkpoints of a trajectory."""

    spec: AnySpec
    task: Task
    measures: tuple[Measure, ...]

    def measured(self, model: nn.Module, step: int, keys: frozenset[str]) -> Iterator[Done]:
        """One measure after the other on the model at a step; they share its forward passes.

        Raises:
            MeasureError: If one fails; names it and the step.
        """
        observation = Observation(model, self.task, step)
        for measure in self.measures:
            if measure.key in keys:
                with located(measure.name, step):
                    result = require_dataset(measure, measure.measure(observation))
                yield Done(step, {measure.key: result})


class Processes:
    """Processes that take steps from a queue which this process takes from too.

    Args:
        n: How many.
        job: What they measure.
        trajectory: The checkpoints.
        pending: What is to be measured; emptied by all who measure.
        threads: Torch's thread count in each.

    Raises:
        MeasureError: If a task or a measure cannot be sent to another process.
    """

    def __init__(
        self,
        n: int,
        job: Job,
        trajectory: Trajectory,
        pending: Pending,
        *,
        threads: int,
    ) -> None:
        try:
            sent = pickle.dumps(job)
        except Exception as error:
            raise MeasureError(
                f"`workers` (={n + 1}) needs a task and measures that can be sent to another "
                f"process; these cannot: {error}. Define their functions at the top of a module, "
                "or leave `workers` at 1."
            ) from error
        self._trajectory, self._pending = trajectory, pending
        self._found: queue.SimpleQueue[Done | Exception] = queue.SimpleQueue()
        self._processes = [self._started(sent, threads) for _ in range(n)]

    def finished(self, *, wait: bool = False) -> Iterator[Done]:
        """What has come back since the last time; or the next, however long it takes.

        Raises:
            MeasureError: If a measure failed, or a process ended.
        """
        while wait or not self._found.empty():
            done = self._found.get()
            if isinstance(done, Exception):
                raise done
            yield done
            wait = False

    def close(self) -> None:
        """Ends the processes; what they are at is lost."""
        self._pending.clear()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()

    def _started(self, sent: bytes, threads: int) -> BaseProcess:
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=serve, args=(theirs, sent, threads), daemon=True)
        process.start()
        theirs.close()  # or its end would not be seen here
        threading.Thread(target=self._feed, args=(ours,), daemon=True).start()
        return process

    def _feed(self, connection: Connection) -> None:
        """Gives a process one step at a time, once it is ready."""
        try:
            connection.recv()
            while self._pending:
                step, keys = self._pending.popleft()
                weights = self._trajectory.weights(step)
                arrays = {name: weight.numpy() for name, weight in weights.items()}
                connection.send(Request(step, arrays, keys))
                self._found.put(connection.recv())
        except IndexError:  # another took the last one
            return
        except (EOFError, OSError) as error:
            self._found.put(_ended(error))
        except Exception as error:
            self._found.put(error)


def serve(connection: Connection, sent: bytes, threads: int) -> None:
    """What a process does: measures what it is asked for until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the tracker's
    torch.set_num_threads(threads)
    job: Job = pickle.loads(sent)
    model = build_any(job.spec)
    connection.send("ready")
    while True:
        try:
            request: Request = connection.recv()
        except EOFError:
            return
        connection.send(_answer(job, model, request))


def _answer(job: Job, model: nn.Module, request: Request) -> Done | Exception:
    try:
        load_any(model, {name: torch.from_numpy(a) for name, a in request.weights.items()})
        found: dict[str, xr.Dataset] = {}
        for done in job.measured(model, request.step, request.keys):
            found |= done.results
        return Done(request.step, found)
    except Exception as error:
        return _sendable(error)


def _sendable(error: Exception) -> Exception:
    """The error, or its text where it cannot be sent to another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return MeasureError(str(error))
    return error


def _ended(error: Exception) -> MeasureError:
    failure = MeasureError(
        "a worker process ended before it had measured its checkpoint; what it said is above. A "
        "script that tracks with `workers` above 1 must keep what it does under "
        "`if __name__ == '__main__':`, since every worker imports it."
    )
    failure.__cause__ = error
    return failure


@contextmanager
def shared_threads(workers: int) -> Iterator[int]:
    """Gives this process its share of torch's threads, at least one, and all of them back."""
    whole = torch.get_num_threads()
    share = max(whole // workers, 1)
    if share != whole:
        torch.set_num_threads(share)
    try:
        yield share
    finally:
        if share != whole:
            torch.set_num_threads(whole)
