"""`RayEngine`: runs on the machines of a Ray cluster. The only file that imports Ray.

Every run writes its own folder, so all machines must see the sweep folder under the same path (a
shared file system); what comes back through Ray is how the run ended, and no more.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from interp_shortcuts.errors import ConfigError, WorkerLostError
from interp_shortcuts.sweeps.engines import Engine
from interp_shortcuts.sweeps.worker import Assignment, Ending, perform

_GIB = 2**30


@dataclass
class RayEngine(Engine):
    """Runs as Ray tasks.

    A run's thread count is set inside the task, since Ray's own setting follows `num_cpus`: the
    result is that of the local engine, to the bit, on the same kind of CPU.

    Attributes:
        address: The cluster, such as `"host:6379"`, or `"auto"` for the one that this machine is
            part of. None: that of `RAY_ADDRESS`, else Ray is started here for the while. A
            connection that the process has already is used, and kept.
        num_cpus: CPUs that Ray reserves for each run.
        num_gpus: GPUs that Ray reserves for each run; several runs can share one.
        memory: Memory that Ray reserves for each run, in GiB; None reserves none.
        workers: How many runs at once; none: as many as the cluster's resources hold. More than
            that wait in Ray, which is how a cluster that grows by itself is told to.
    """

    name = "ray"

    address: str | None = None
    num_cpus: int | float = 1
    num_gpus: int | float = 0
    memory: int | float | None = None
    workers: int | None = None
    _runs: dict[Any, str] = field(default_factory=dict, init=False, repr=False)
    _own: bool = field(default=False, init=False, repr=False)
    _task: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ConfigError(f"`workers` must be at least 1; got {self.workers}.")
        for name in ("num_cpus", "num_gpus"):
            if getattr(self, name) < 0:
                raise ConfigError(f"`{name}` must be 0 or more; got {getattr(self, name)}.")
        if self.memory is not None and self.memory <= 0:
            raise ConfigError(f"`memory` (in GiB) must be above 0; got {self.memory}.")
        if not self.num_cpus and not self.num_gpus:
            raise ConfigError("`num_cpus` or `num_gpus` must be above 0; got 0 for both.")

    @property
    def slots(self) -> int:
        if self.workers is not None:
            return self.workers
        import ray

        there = ray.cluster_resources()
        asked = {"CPU": self.num_cpus, "GPU": self.num_gpus, "memory": (self.memory or 0) * _GIB}
        fits = [int(there.get(name, 0) / need) for name, need in asked.items() if need]
        return max(1, min(fits))

    def start(self) -> None:
        if find_spec("ray") is None:
            raise ConfigError(
                "The engine 'ray' needs Ray, which is not installed: "
                "pip install 'interp-shortcuts[ray]'."
            )
        import ray

        self._own = not ray.is_initialized()
        if self._own:
            self._connect()
        self._task = ray.remote(
            num_cpus=self.num_cpus,
            num_gpus=self.num_gpus,
            memory=int((self.memory or 0) * _GIB),
            max_retries=0,  # retries are the driver's business
            max_calls=0,  # a worker takes many runs and imports torch once
        )(_work)

    def submit(self, key: str, assignment: Assignment) -> None:
        self._runs[self._task.options(name=key).remote(assignment)] = key

    def wait(self, timeout: float) -> list[tuple[str, Ending]]:
        import ray

        done, _ = ray.wait(list(self._runs), num_returns=1, timeout=timeout)
        return [(self._runs.pop(run), _ending(run)) for run in done]

    def interrupt(self) -> None:
        import ray

        for run in self._runs:
            ray.cancel(run, force=False)  # raises KeyboardInterrupt in the task

    def close(self) -> None:
        import ray

        for run in self._runs:
            ray.cancel(run, force=True)
        self._runs.clear()
        if self._own:
            ray.shutdown()

    def _connect(self) -> None:
        import ray

        address = self.address or os.environ.get("RAY_ADDRESS") or "local"
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "warning"}
        if address == "local":
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            options["include_dashboard"] = False
        try:
            ray.init(address, **options)
        except (ConnectionError, ValueError) as error:
            raise ConfigError(f"No Ray cluster answers at {address!r}: {error}") from error


def _work(assignment: Assignment) -> Ending:
    """Trains one run in a worker of Ray; cancelling the task stops it as Ctrl-C would."""
    try:
        return perform(assignment)
    except KeyboardInterrupt:
        return Ending("stopped")


def _ending(run: Any) -> Ending:
    import ray
    from ray.exceptions import RayError, RayTaskError, TaskCancelledError

    try:
        return ray.get(run)
    except TaskCancelledError:
        return Ending("stopped")
    except RayTaskError as error:  # not the run's own: those come back as endings
        return Ending("failed", error=RuntimeError(str(error.cause or error)))
    except RayError as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        return Ending("lost", error=WorkerLostError(f"its worker in Ray died: {reason}"))
