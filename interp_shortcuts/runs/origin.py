"""Where the weights of a trajectory come from, and the hashes that are known of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from torch import Tensor

from interp_shortcuts.canonical import short_hash
from interp_shortcuts.errors import IdenticalCheckpointsWarning, StorageError
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.runs.checkpoint import content_hash
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.tasks.base import Task

Source = Path | Mapping[str, Tensor]
"""Where one checkpoint comes from: a file, or a state dict in memory."""


@dataclass(frozen=True)
class Origin:
    """What a trajectory and its slices share."""

    spec: AnySpec
    sources: Mapping[int, Source]
    load: Callable[[Source], dict[str, Tensor]]
    make_task: Callable[[], Task]
    path: Path | None = None
    config: RunConfig | None = None
    run_id: str | None = None
    hashes: dict[int, str] = field(default_factory=dict)
    warned: set[tuple[int, int]] = field(default_factory=set)

    @cached_property
    def task(self) -> Task:
        return self.make_task()

    def identity(self) -> str:
        if self.run_id is not None:
            return self.run_id
        hashes = [[step, self.hash(step)] for step in self.sources]
        return short_hash([self.spec.hash, hashes])

    def weights(self, step: int) -> dict[str, Tensor]:
        weights = self.load(self.sources[step])
        self.note(step, content_hash(weights))
        return weights

    def hash(self, step: int) -> str:
        if step not in self.hashes:
            self.weights(step)
        return self.hashes[step]

    def note(self, step: int, digest: str) -> None:
        """Remember a checkpoint's hash; warn if a neighbour has the same."""
        known = self.hashes.setdefault(step, digest)
        if known != digest:
            raise StorageError(
                f"The checkpoint of step {step} changed while it was in use: its content hash "
                f"was {known}, now it is {digest}. Open the trajectory again."
            )
        for first, second in pairwise(self.sources):
            if step in (first, second) and self.hashes.get(first) == self.hashes.get(second):
                self._warn(first, second)

    def _warn(self, first: int, second: int) -> None:
        if (first, second) in self.warned:
            return
        self.warned.add((first, second))
        warnings.warn(
            f"The checkpoints of steps {first} and {second} hold the same weights, which usually "
            "means that one was saved or loaded twice, or that a state dict was kept without "
            "cloning its tensors.",
            IdenticalCheckpointsWarning,
            stacklevel=4,
        )
