"""The base of the measures of this package: one held-out length, and how results are labelled.

What is read of the model is one file each; which sequences are drawn is in `ood_examples`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import xarray as xr

from interp_shortcuts.measures.attribution.ood_examples import (
    NO_SPLIT,
    ChosenSplit,
    fresh_examples,
    length_of,
    ood_split,
)
from interp_shortcuts.measures.base import BOUNDS, Measure, axis_labels
from interp_shortcuts.measures.effects import require_positive
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.sites import components
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.tasks.target_split import TargetSplit
from interp_shortcuts.tasks.target_task import TargetTask, is_target_task, split_name

PAPER = "arXiv:2602.01442"
Labels = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Quantity:
    """What a variable is, before its values are known; the fields are those of `described`."""

    dims: tuple[str, ...]
    long_name: str
    units: str
    definition: str
    range: str
    nan_means: str = "never NaN"

    @property
    def counts(self) -> bool:
        """Whether it is a number of examples, batches or permutations: an integer."""
        return not self.dims and self.units in ("examples", "batches", "permutations")


@dataclass(frozen=True)
class TargetMeasure(Measure):
    """A measure of every component on sequences of one length, usually one that is held out.

    **Hooks that are attached to the model do not act.**

    Attributes:
        split: The split whose length is asked, `length_<n>`. None: the first held-out length at
            which the model's exact match is in [0.2, 0.75], the paper's rule; if there is none,
            all is NaN, with the reason in `nan_means`. Along a trajectory None means the length
            that its last checkpoint decides on, the same at all steps; in a tracker that
            observes, which does not know the end, the shortest held-out length. `"none"`: nothing
            is measured, and all is NaN.
        seed: Of the sequences, see `ood_examples`; the same at all checkpoints.
        reference_examples: Fresh sequences of the length over which means are taken.
    """

    reads: ClassVar[Literal["weights", "activations"]] = "activations"
    asks: ClassVar[type] = TargetTask

    split: str | None = None
    seed: int = 0
    reference_examples: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(reference_examples=self.reference_examples)

    def labels(self, spec: ModelSpec) -> Labels:
        """The labels of the dims other than `component` and `bound`."""
        del spec
        return {}

    @abstractmethod
    def quantities(self) -> Mapping[str, Quantity]:
        """The variables, before their values are known."""

    @abstractmethod
    def values(self, observation: Observation, split: str) -> Mapping[str, Any]:
        """The value of each variable, on sequences of this split's length."""

    def settled(self, source: Trajectory | Task) -> TargetMeasure:
        """With the length fixed: see `split`."""
        task = source.task if isinstance(source, Trajectory) else source
        if self.split is not None or not is_target_task(task):
            return self
        if isinstance(source, Trajectory):
            last = source.steps[-1]
            name = ood_split(Observation(source.model(last), task, last)).name
        else:
            name = split_name(task.heldout_lengths[0]) if task.heldout_lengths else NO_SPLIT
        return replace(self, split=name)

    def measure(self, observation: Observation) -> xr.Dataset:
        self.require_kind(observation.task)
        chosen = self._chosen(observation)
        labels = {
            **self.labels(observation.spec),
            "component": tuple(map(str, components(observation.spec))),
            "bound": BOUNDS,
        }
        quantities = self.quantities()
        if chosen.name == NO_SPLIT:
            found: Mapping[str, Any] = {
                name: 0 if of.counts else np.full([len(labels[dim]) for dim in of.dims], np.nan)
                for name, of in quantities.items()
            }
        else:
            found = self.values(observation, chosen.name)
        variables = {
            name: self.described(
                of.dims,
                np.asarray(found[name], dtype=np.int64 if of.counts else np.float64),
                long_name=of.long_name,
                units=of.units,
                definition=of.definition,
                range=of.range,
                nan_means=(chosen.reason if not of.counts else "") or of.nan_means,
            )
            for name, of in quantities.items()
        }
        for variable in variables.values():
            variable.attrs["split"] = chosen.name
        used = {dim for of in quantities.values() for dim in of.dims}
        known = {dim: names for dim, names in labels.items() if dim in used}
        return xr.Dataset(variables, coords=axis_labels(**known))

    def reference(self, observation: Observation, split: str) -> TargetSplit:
        """The sequences over which means are taken."""
        return fresh_examples(
            observation, split, "reference", n=self.reference_examples, seed=self.seed
        )

    def _chosen(self, observation: Observation) -> ChosenSplit:
        if self.split is None:
            return ood_split(observation)
        if self.split == NO_SPLIT:
            return ChosenSplit(
                NO_SPLIT,
                "no length is asked: none qualified at the last checkpoint, or `split` says so",
            )
        length_of(observation.targeting, self.split)
        return ChosenSplit(self.split)
