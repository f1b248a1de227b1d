"""What a measure is: a pure function of a model and a task's splits, giving a labelled array.

This module knows how measures are keyed, described and taken along a trajectory. What they
compute is one file each; which there are is in `registry`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import xarray as xr
from torch import nn

from interp_shortcuts.canonical import short_hash
from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.along import along_steps, located, over_weights, progress_bar
from interp_shortcuts.measures.feature_field import feature_identity
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.models.weights import Weights
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.tasks.base import AnswerTask, Task, is_answered
from interp_shortcuts.tasks.features import Feature
from interp_shortcuts.tasks.noisy_task import NoisyTask, is_noisy_task
from interp_shortcuts.tasks.target_task import TargetTask, is_target_task

PAPER = "arXiv:2607.10116"
DIRECT_PATH = "exact for layer 0; for deeper layers the direct path from the embeddings"
BOUNDS = ("low", "high")

_KINDS: dict[type, str] = {
    AnswerTask: "a task whose answer is one class, read at one position (an AnswerTask)",
    TargetTask: "a task whose answer is a sequence of tokens (a TargetTask)",
    NoisyTask: "a task with wrong training labels (a NoisyTask)",
}
_MODELS: dict[type, str] = {
    ModelSpec: "a transformer (a HookedTransformer)",
    TwoLayerSpec: "a two-layer network (a TwoLayerNet)",
}


@dataclass(frozen=True)
class Measure(ABC):
    """Base of all measures: a frozen dataclass whose fields are its parameters.

    A measure can be asked about one model (`measure(model, task)`), about a trajectory
    (`measure.over(trajectory)`), or by the tracker (`measure.measure(observation)`); the numbers
    are the same. Bump `version` whenever a change alters them.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    reads: ClassVar[Literal["weights", "activations"]]
    constant: ClassVar[frozenset[str]] = frozenset()
    """Variables that depend on the task alone and so get no `step` dimension."""
    asks: ClassVar[type] = AnswerTask
    """The kind of task: `AnswerTask`, `TargetTask`, `NoisyTask`, a class of tasks, or `Task` for a
    measure that asks any."""
    of_model: ClassVar[type] = ModelSpec
    """The kind of model, by the class of its spec; `object` for a measure that reads any."""
    by_default: ClassVar[bool] = True
    """Whether a tracker that is not told what to measure takes it, on a task that fits."""

    def __post_init__(self) -> None:
        # parameters are hashed, so a list becomes a tuple; one split needs no brackets
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, list):
                object.__setattr__(self, item.name, tuple(value))
            elif item.name == "splits" and isinstance(value, str):
                object.__setattr__(self, item.name, (value,))

    @abstractmethod
    def measure(self, observation: Observation) -> xr.Dataset:
        """The measure of one observation: labelled float32 arrays without a `step` dimension."""

    def __call__(self, model: nn.Module, task: Task) -> xr.Dataset:
        """The measure of one model on a task.

        Raises:
            MeasureError: If the task or the model is not of the kind that the measure asks.
        """
        self.require_kind(task)
        observation = Observation(model, task)
        self.require_kind(task, observation.any_spec)
        return self.measure(observation)

    @classmethod
    def fits(cls, task: Task, spec: AnySpec | None = None) -> bool:
        """Whether a task, and the model if its spec is given, are of the kinds that it asks."""
        known = {AnswerTask: is_answered, TargetTask: is_target_task, NoisyTask: is_noisy_task}
        asked = known[cls.asks](task) if cls.asks in known else isinstance(task, cls.asks)
        return asked and (spec is None or isinstance(spec, cls.of_model))

    def require_kind(self, task: Task, spec: AnySpec | None = None) -> None:
        """Refuses a task or a model of another kind than the measure asks.

        Raises:
            MeasureError: Names the measure, the kind, and the task or the model's spec.
        """
        if not self.fits(task):
            raise MeasureError(
                f"`{type(self).__name__}` asks {_KINDS.get(self.asks, self.asks.__name__)}; "
                f"{task.name!r} is a {type(task).__name__}. `default_measures(task)` gives "
                "measures that fit a task."
            )
        if not self.fits(task, spec):
            raise MeasureError(
                f"`{type(self).__name__}` reads "
                f"{_MODELS.get(self.of_model, self.of_model.__name__)}; the spec of the model is a "
                f"{type(spec).__name__}. `default_measures(task, spec)` gives measures that fit a "
                "model."
            )

    def settled(self, source: Trajectory | Task) -> Measure:
        """The measure with what it leaves open settled, so that it is the same at every step.

        Args:
            source: The trajectory that it is taken along; the task if models are only observed.

        Returns:
            By default the measure itself.
        """
        del source
        return self

    def over(self, trajectory: Trajectory, *, progress: bool = True) -> xr.Dataset:
        """The measure at every checkpoint of a trajectory.

        Args:
            trajectory: Checkpoints in order, with their task.
            progress: Show a bar if it takes more than two seconds.

        Returns:
            The variables of `measure` with `step` as their first dimension.

        Raises:
            MeasureError: Names the measure and the step that failed.
        """
        self.require_kind(trajectory.task, trajectory.spec)
        settled = self.settled(trajectory)
        found = []
        bar = progress_bar(trajectory, self.name, total=len(trajectory), progress=progress)
        for step, model in bar:
            with located(self.name, step):
                found.append(settled.measure(Observation(model, trajectory.task, step)))
        return along_steps(found, trajectory.steps, constant=self.constant)

    @cached_property
    def key(self) -> str:
        """Identity of what is computed: class, version and parameters, 16 hex digits.

        A user's function in a feature counts by its values, so a changed function is a changed
        measure.
        """
        parameters = {item.name: _identity(getattr(self, item.name)) for item in fields(self)}
        return short_hash(
            {"class": type(self).__name__, "version": self.version, "parameters": parameters}
        )

    def described(
        self,
        dims: Sequence[str],
        values: np.ndarray,
        *,
        long_name: str,
        units: str,
        definition: str,
        range: str,
        nan_means: str = "never NaN",
    ) -> xr.Variable:
        """A variable with the attributes that every measure gives; floats become float32."""
        values = np.asarray(values)
        if values.dtype.kind == "f":
            values = values.astype(np.float32)
        attrs = {
            "long_name": long_name,
            "units": units,
            "definition": definition,
            "range": range,
            "nan_means": nan_means,
            "measure": type(self).__name__,
            "measure_key": self.key,
        }
        return xr.Variable(tuple(dims), values, attrs)


class WeightsMeasure(Measure):
    """A measure that reads weights alone (a fingerprint), taken over many checkpoints at once."""

    reads: ClassVar[Literal["weights", "activations"]] = "weights"

    @abstractmethod
    def of_weights(self, weights: Weights, task: Task) -> xr.Dataset:
        """The measure of stacked weights, with `checkpoint` as the leading dimension."""

    def measure(self, observation: Observation) -> xr.Dataset:
        found = self.of_weights(observation.weights, observation.task)
        return found.isel(checkpoint=0) if "checkpoint" in found.dims else found

    def over(self, trajectory: Trajectory, *, progress: bool = True) -> xr.Dataset:
        self.require_kind(trajectory.task, trajectory.spec)
        return over_weights(self, trajectory, progress=progress)


@lru_cache(maxsize=256)
def axis_labels(**axes: int | tuple[str, ...]) -> xr.Coordinates:
    """Coordinates by dimension: 0..n-1 for a number, the names for a tuple of names.

    Made once for each set of axes, since making an index costs more than most measures.
    """
    return xr.Coordinates(
        {
            name: np.arange(labels) if isinstance(labels, int) else np.array(labels, dtype=str)
            for name, labels in axes.items()
        }
    )


def require_finite(values: torch.Tensor, what: str) -> np.ndarray:
    """The tensor as an array.

    Raises:
        MeasureError: If it holds NaN or infinity, which come from weights that do.
    """
    array = values.numpy()
    if not np.isfinite(array).all():
        raise MeasureError(f"weights must be finite; {what} hold NaN or infinity.")
    return array


def _identity(value: Any) -> Any:
    """A parameter as JSON that is equal exactly for what computes the same."""
    if isinstance(value, tuple | list):
        return [_identity(item) for item in value]
    if isinstance(value, Feature) or callable(value):
        return feature_identity(value)
    return value
