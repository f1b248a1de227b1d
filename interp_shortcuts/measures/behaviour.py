"""What the model answers: loss, accuracy and shortcut rate of every split, with intervals.

Loss and correctness belong to the task; how they move over steps is left to the timelines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import xarray as xr

from interp_shortcuts.measures.base import BOUNDS, Measure, axis_labels
from interp_shortcuts.measures.intervals import mean_with_interval, proportion_interval
from interp_shortcuts.measures.observation import Observation

EMPTY = "the split has no example"


@dataclass(frozen=True)
class Behaviour(Measure):
    """Loss, accuracy and shortcut rate at the read position.

    Attributes:
        splits: Names of splits; None means all of the task's.
    """

    name: ClassVar[str] = "behaviour"
    reads: ClassVar[Literal["weights", "activations"]] = "activations"

    splits: Sequence[str] | None = None

    def measure(self, observation: Observation) -> xr.Dataset:
        task = observation.answering
        names = tuple(task.splits) if self.splits is None else self.splits
        losses, counts = [], []
        for name in names:
            split, logits = task.split(name), observation.logits(name)
            losses.append(mean_with_interval(task.loss(logits, split.labels).double().numpy()))
            correct = int(task.correct(logits, split.labels).sum())
            shortcut = int((task.predictions(logits) == split.shortcut_labels).sum())
            counts.append((split.n, correct, shortcut))
        n, correct, shortcut = np.array(counts, dtype=np.int64).reshape(-1, 3).T
        some = np.where(n > 0, n, np.nan)
        at_read = "argmax of the logits at '=' (ties to the lowest class)"
        exact = "Clopper-Pearson 95% interval over the examples of the split"
        return xr.Dataset(
            {
                "loss": self.described(
                    ["split"],
                    np.array([loss.value for loss in losses]),
                    long_name="loss",
                    units="nats",
                    definition="mean over examples of the cross-entropy at '='",
                    range="[0, inf)",
                    nan_means=EMPTY,
                ),
                "loss_interval": self.described(
                    ["split", "bound"],
                    np.array([loss.interval for loss in losses]),
                    long_name="loss, 95% interval",
                    units="nats",
                    definition="mean -+ 1.96 standard errors over the examples of the split",
                    range="(-inf, inf)",
                    nan_means="the split has fewer than two examples",
                ),
                "accuracy": self.described(
                    ["split"],
                    correct / some,
                    long_name="accuracy",
                    units="fraction",
                    definition=f"fraction of examples whose true label is the {at_read}",
                    range="[0, 1]",
                    nan_means=EMPTY,
                ),
                "accuracy_interval": self.described(
                    ["split", "bound"],
                    proportion_interval(correct, n),
                    long_name="accuracy, 95% interval",
                    units="fraction",
                    definition=exact,
                    range="[0, 1]",
                    nan_means=EMPTY,
                ),
                "shortcut_rate": self.described(
                    ["split"],
                    shortcut / some,
                    long_name="shortcut rate",
                    units="fraction",
                    definition=f"fraction of examples whose shortcut label is the {at_read}",
                    range="[0, 1]",
                    nan_means=EMPTY,
                ),
                "shortcut_rate_interval": self.described(
                    ["split", "bound"],
                    proportion_interval(shortcut, n),
                    long_name="shortcut rate, 95% interval",
                    units="fraction",
                    definition=exact,
                    range="[0, 1]",
                    nan_means=EMPTY,
                ),
                "n_examples": self.described(
                    ["split"],
                    n,
                    long_name="examples",
                    units="examples",
                    definition="number of examples of the split",
                    range="[0, inf)",
                ),
            },
            coords=axis_labels(split=tuple(names), bound=BOUNDS),
        )
