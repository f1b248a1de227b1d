"""Measures that count how often they are asked, and can be interrupted at a step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import xarray as xr

from interp_shortcuts.measures.base import Measure, Observation, WeightsMeasure
from interp_shortcuts.models.weights import Weights
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.timelines.timeline import Timeline
from interp_shortcuts.timelines.tracker import CircuitTracker

CALLS: Counter[tuple[str, int]] = Counter()
INTERRUPT_AT: dict[str, int] = {}


def values_of(weights: Weights) -> np.ndarray:
    return weights.embed.sum(dim=(1, 2)).numpy().astype(np.float32)


@dataclass(frozen=True)
class Sums(WeightsMeasure):
    """A measure of weights that counts how often it is asked."""

    name: ClassVar[str] = "sums"
    scale: float = 1.0

    def of_weights(self, weights: Weights, task: Task) -> xr.Dataset:
        values = values_of(weights) * np.float32(self.scale)
        CALLS["sums", len(values)] += 1
        return xr.Dataset({"sums": ("checkpoint", values)})


@dataclass(frozen=True)
class Answers(Measure):
    """A measure of activations that counts which steps it is asked about."""

    name: ClassVar[str] = "answers"
    reads: ClassVar[Literal["weights", "activations"]] = "activations"
    constant: ClassVar[frozenset[str]] = frozenset({"answers_n"})
    split: str = "validation"
    variable: str = "answers"

    def measure(self, observation: Observation) -> xr.Dataset:
        assert observation.step is not None
        if INTERRUPT_AT.get(self.variable) == observation.step:
            raise KeyboardInterrupt
        CALLS[self.variable, observation.step] += 1
        value = observation.logits(self.split).mean().numpy()
        n = observation.task.split(self.split).n
        return xr.Dataset({self.variable: ((), value), f"{self.variable}_n": ((), n)})


def track(folder: Path, *measures: Measure, **options: Any) -> Timeline:
    return CircuitTracker(Trajectory.open(folder), measures=measures, **options).track()


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("timeline*")}
