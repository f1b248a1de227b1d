"""Accuracy and loss by group of examples: rightly labelled, wrongly labelled, unseen.

Which of the groups is fitted first is left to the timelines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import xarray as xr

from interp_shortcuts.measures.base import BOUNDS, Measure, axis_labels
from interp_shortcuts.measures.intervals import mean_with_interval, proportion_interval
from interp_shortcuts.measures.modular.noise_rows import AGAINST, EMPTY, PAPER
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.tasks.noisy_task import NOISE_GROUPS, NoisyTask


@dataclass(frozen=True)
class NoiseGroups(Measure):
    """Accuracy and loss on train, its clean and its noisy part, and test; any model.

    `noisy` is scored against the wrong labels that are trained, `noisy_true` the same examples
    against what is right.
    """

    name: ClassVar[str] = "noise_groups"
    reads: ClassVar[Literal["weights", "activations"]] = "activations"
    constant: ClassVar[frozenset[str]] = frozenset({"group_n"})
    asks: ClassVar[type] = NoisyTask
    of_model: ClassVar[type] = object

    def measure(self, observation: Observation) -> xr.Dataset:
        task, losses, right, n = observation.noisy, [], [], []
        for group in NOISE_GROUPS:
            split, logits = task.split(group), observation.answers(group)
            losses.append(mean_with_interval(task.loss(logits, split.labels).double().numpy()))
            right.append(int(task.correct(logits, split.labels).sum()))
            n.append(split.n)
        counts, successes = np.array(n, dtype=np.int64), np.array(right, dtype=np.int64)
        return xr.Dataset(
            {
                "group_accuracy": self.described(
                    ["group"],
                    successes / np.where(counts > 0, counts, np.nan),
                    long_name="accuracy of the group",
                    units="fraction",
                    definition="fraction of the group's examples whose largest logit (ties to the "
                    f"lowest class) is their label, {AGAINST}; {PAPER}",
                    range="[0, 1]",
                    nan_means=EMPTY,
                ),
                "group_accuracy_interval": self.described(
                    ["group", "bound"],
                    proportion_interval(successes, counts),
                    long_name="accuracy of the group, 95% interval",
                    units="fraction",
                    definition="Clopper-Pearson 95% interval over the examples of the group (ours)",
                    range="[0, 1]",
                    nan_means=EMPTY,
                ),
                "group_loss": self.described(
                    ["group"],
                    np.array([loss.value for loss in losses]),
                    long_name="loss of the group",
                    units="nats",
                    definition=f"mean over the group's examples of the cross-entropy {AGAINST}; "
                    f"{PAPER}",
                    range="[0, inf)",
                    nan_means=EMPTY,
                ),
                "group_loss_interval": self.described(
                    ["group", "bound"],
                    np.array([loss.interval for loss in losses]),
                    long_name="loss of the group, 95% interval",
                    units="nats",
                    definition="mean -+ 1.96 standard errors over the examples of the group (ours)",
                    range="(-inf, inf)",
                    nan_means="the group has fewer than two examples",
                ),
                "group_n": self.described(
                    ["group"],
                    counts,
                    long_name="examples of the group",
                    units="examples",
                    definition="number of the group's examples",
                    range="[0, inf)",
                ),
            },
            coords=axis_labels(group=NOISE_GROUPS, bound=BOUNDS),
        )
