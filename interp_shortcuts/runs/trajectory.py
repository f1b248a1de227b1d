"""`Trajectory`: the checkpoints of one run, in order, read one at a time when asked for.

It does not care who wrote them: a run folder of this package, a user's own files, or state dicts
in memory. What is measured on them is left to the measures.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any, overload

from torch import Tensor

from interp_shortcuts.errors import StorageError
from interp_shortcuts.models.any_model import AnyModel, build_any, load_any
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.weights import Weights
from interp_shortcuts.runs.checkpoint import load_checkpoint, read_header
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.foreign import foreign_weights
from interp_shortcuts.runs.opening import (
    check_complete,
    check_fingerprint,
    check_task,
    rebuild_task,
)
from interp_shortcuts.runs.origin import Origin, Source
from interp_shortcuts.runs.store import TRAIN_ANEW, RunFolder
from interp_shortcuts.tasks.base import Task


class Trajectory:
    """The checkpoints of one run, in order of their steps.

    Indices are steps, not positions: `trajectory[100]` is the model at step 100,
    `trajectory[100:300]` the trajectory of the kept steps in [100, 300), and
    `trajectory[::50]` that of the kept steps 0, 50, 100, ... Iterating gives `(step, model)`, with
    one model object that is refilled at each step; `model(step)` gives a fresh one.

    Make one with `Trajectory.open` or `Trajectory.from_checkpoints`.
    """

    def __init__(self, origin: Origin, steps: tuple[int, ...]) -> None:
        self._origin = origin
        self._steps = steps

    @classmethod
    def open(cls, path: str | Path, *, task: Task | None = None) -> Trajectory:
        """The trajectory in a run folder; a run that is not finished has what it has so far.

        Args:
            path: The run folder.
            task: The task, where the run's rule is a function of your own that is not registered.

        Raises:
            StorageError: If the folder is no run, or any of its files is missing or damaged.
        """
        folder = RunFolder(Path(path))
        config = folder.read_config()
        manifest = folder.read_manifest()
        spec = config.spec
        files = folder.checkpoint_files()
        listed: dict[str, str] | None = manifest.get("checkpoints")
        check_complete(folder, config, files, listed)
        fingerprint = manifest.get("task_fingerprint")
        if task is not None:
            check_task(task, spec=spec)
            check_fingerprint(task, fingerprint, folder)
        origin = Origin(
            spec=spec,
            sources=files,
            load=lambda source: load_checkpoint(Path(str(source)), spec=spec),
            make_task=lambda: task or rebuild_task(config, fingerprint, folder),
            path=folder.path,
            config=config,
            run_id=config.run_id,
        )
        for step, file in files.items():
            header = read_header(file, spec=spec)
            if header.step != step:
                raise StorageError(
                    f"'{file}' holds the weights of step {header.step}, not of step {step}: it "
                    "was renamed. Give it its own name back."
                )
            if listed is not None and listed[str(step)] != header.content_hash:
                raise StorageError(
                    f"'{file}' is not the checkpoint that the run wrote: its content hash is "
                    f"{header.content_hash}, and '{folder.manifest_path}' lists "
                    f"{listed[str(step)]}. Restore it from a copy. Or: {TRAIN_ANEW}"
                )
            origin.note(step, header.content_hash)
        return cls(origin, tuple(files))

    @classmethod
    def from_checkpoints(
        cls,
        checkpoints: Sequence[tuple[int, str | Path | Mapping[str, Any]]],
        *,
        spec: AnySpec,
        task: Task,
    ) -> Trajectory:
        """A trajectory of your own checkpoints.

        Args:
            checkpoints: Pairs of a step and a `.safetensors`, `.pt` or `.pth` file or a state
                dict, in increasing order of the steps. State dicts are copied here; when you
                collect them in a training loop, clone them, since the optimiser changes their
                tensors in place.
            spec: The model that they belong to (`ModelSpec.from_model(model)`, or the `spec` of a
                `TwoLayerNet`).
            task: What the model was trained on.

        Raises:
            StorageError: If there is none, an entry is no such pair, a step is repeated or out of
                order, or a file is missing, or a state dict is not of the spec. What is inside a
                file is checked when it is read.
        """
        checkpoints = _pairs(checkpoints)
        steps = [step for step, _ in checkpoints]
        if not steps:
            raise StorageError("`checkpoints` is empty; give at least one (step, checkpoint) pair.")
        for before, after in pairwise(steps):
            if after == before:
                raise StorageError(
                    f"`checkpoints` has step {after} twice; give one checkpoint for each step."
                )
            if after < before:
                raise StorageError(
                    f"`checkpoints` must be in increasing order of the steps; {after} comes after "
                    f"{before}. Sort them by their step."
                )
        if steps[0] < 0:
            raise StorageError(f"A step must be 0 or more; got {steps[0]}.")
        check_task(task, spec=spec)
        sources: dict[int, Source] = {
            step: dict(foreign_weights(source, spec=spec))
            if isinstance(source, Mapping)
            else Path(source)
            for step, source in checkpoints
        }
        for step, source in sources.items():
            if isinstance(source, Path) and not source.is_file():
                raise StorageError(
                    f"'{source}' (step {step}) is missing. Give the path of a checkpoint file."
                )
        origin = Origin(
            spec=spec,
            sources=sources,
            load=lambda source: foreign_weights(source, spec=spec),
            make_task=lambda: task,
        )
        for step, source in sources.items():
            if isinstance(source, Mapping):
                origin.weights(step)
        return cls(origin, tuple(sources))

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps whose weights are there, increasing."""
        return self._steps

    @property
    def spec(self) -> AnySpec:
        """The model that the weights belong to."""
        return self._origin.spec

    @property
    def task(self) -> Task:
        """What the model was trained on; a run's own task is built again on first use.

        Raises:
            StorageError: If the run's rule is not registered, or does not behave as it did.
        """
        return self._origin.task

    @property
    def config(self) -> RunConfig | None:
        """The config of the run; None for checkpoints of your own."""
        return self._origin.config

    @property
    def path(self) -> Path | None:
        """The run folder; None for checkpoints of your own."""
        return self._origin.path

    @property
    def run_id(self) -> str:
        """16 hex digits: the run's id, or, for checkpoints of your own, a hash of all of them."""
        return self._origin.identity()

    def weights(self, step: int) -> dict[str, Tensor]:
        """The verified weights at a step, on the CPU.

        Raises:
            StorageError: If the step was not kept, or its file is damaged.
        """
        return self._origin.weights(self._known(step))

    def model(self, step: int) -> AnyModel:
        """A fresh model with the weights at a step."""
        weights = self.weights(step)
        model = build_any(self.spec)
        load_any(model, weights)
        return model

    def hash(self, step: int) -> str:
        """The content hash of the weights at a step (64 hex digits)."""
        return self._origin.hash(self._known(step))

    def stacked(self, steps: Sequence[int] | None = None) -> Weights:
        """The weights of several steps as stacked float64 tensors; None: of all steps.

        Raises:
            StorageError: If the model is no transformer, whose weights alone are stacked.
        """
        if not isinstance(self.spec, ModelSpec):
            raise StorageError(
                "`stacked` needs the trajectory of a transformer; the spec of this one is a "
                f"{type(self.spec).__name__}. Ask `weights(step)` for one step at a time."
            )
        chosen = self._steps if steps is None else steps
        return Weights.stack([self.weights(step) for step in chosen], self.spec)

    def nearest(self, step: int) -> int:
        """The kept step nearest to `step`; of two equally near ones, the earlier."""
        return min(self._steps, key=lambda kept: (abs(kept - step), kept))

    def __len__(self) -> int:
        return len(self._steps)

    def __contains__(self, step: object) -> bool:
        return step in self._steps

    def __iter__(self) -> Iterator[tuple[int, AnyModel]]:
        model = build_any(self.spec)
        for step in self._steps:
            load_any(model, self.weights(step))
            yield step, model

    @overload
    def __getitem__(self, key: int) -> AnyModel: ...

    @overload
    def __getitem__(self, key: slice) -> Trajectory: ...

    def __getitem__(self, key: int | slice) -> AnyModel | Trajectory:
        """The model at a step, or the trajectory of the kept steps in a range of steps."""
        if not isinstance(key, slice):
            return self.model(key)
        start = 0 if key.start is None else key.start
        stop = self._steps[-1] + 1 if key.stop is None else key.stop
        stride = 1 if key.step is None else key.step
        if stride < 1 or start < 0 or stop < 0:
            raise StorageError(
                f"A slice is in steps: start and stop must be 0 or more and the stride at least "
                f"1; got [{key.start}:{key.stop}:{key.step}]."
            )
        kept = tuple(step for step in self._steps if step in range(start, stop, stride))
        if not kept:
            raise StorageError(
                f"No checkpoint was kept in the steps [{start}:{stop}:{stride}]; "
                f"{self._describe_steps()}."
            )
        return Trajectory(self._origin, kept)

    def __repr__(self) -> str:
        where = f", path='{self.path}'" if self.path is not None else ""
        return (
            f"Trajectory({len(self)} checkpoints, steps {self._steps[0]}-{self._steps[-1]}, "
            f"{self.spec.sizes}{where})"
        )

    def _known(self, step: int) -> int:
        if step not in self._steps:
            raise StorageError(
                f"No checkpoint was kept at step {step}; {self._describe_steps()}, the nearest is "
                f"{self.nearest(step)}."
            )
        return step

    def _describe_steps(self) -> str:
        return f"there are {len(self)} from {self._steps[0]} to {self._steps[-1]}"


def _pairs(
    checkpoints: Iterable[tuple[int, str | Path | Mapping[str, Any]]],
) -> list[tuple[int, str | Path | Mapping[str, Any]]]:
    """The entries, each of them a step with a file or a state dict."""
    if isinstance(checkpoints, Mapping | str) or not isinstance(checkpoints, Iterable):
        raise StorageError(
            "`checkpoints` must be a list, and each entry must be (step, file or state dict); got "
            f"{reprlib.repr(checkpoints)}."
        )
    pairs = list(checkpoints)
    for entry in pairs:
        match entry:
            case (Integral(), str() | os.PathLike() | Mapping()):
                continue
        raise StorageError(
            "`checkpoints`: each entry must be (step, file or state dict); got "
            f"{reprlib.repr(entry)}."
        )
    return pairs
