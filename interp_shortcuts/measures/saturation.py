"""Whether the consistent examples of train are learned, and which examples still pull.

Loss and gradient at the logits, by group. What reaches the weights is in `gradients`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import xarray as xr

from interp_shortcuts.measures.base import BOUNDS, PAPER, Measure, axis_labels
from interp_shortcuts.measures.groups import EMPTY, GROUPS
from interp_shortcuts.measures.intervals import mean_with_interval
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.differentiate import logit_gradients


@dataclass(frozen=True)
class Saturation(Measure):
    """Loss of the consistent and the anti training examples, and their share of the gradient.

    Read from the logits at "=", in float64, since a saturated loss is lost in float32.
    """

    name: ClassVar[str] = "saturation"
    reads: ClassVar[Literal["weights", "activations"]] = "activations"
    constant: ClassVar[frozenset[str]] = frozenset({"group_loss_n"})

    def measure(self, observation: Observation) -> xr.Dataset:
        task = observation.answering
        losses, pulls = [], []
        for group in GROUPS:
            labels, logits = task.split(group).labels, observation.logits(group).double()
            losses.append(mean_with_interval(task.loss(logits, labels).double().numpy()))
            slopes = logit_gradients(logits, labels, task.loss)
            pulls.append(float(slopes.norm(dim=1).sum()))
        n = np.array([int(loss.n) for loss in losses], dtype=np.int64)
        total = sum(pulls)
        share = np.where(n > 0, np.array(pulls) / (total if total > 0 else np.nan), np.nan)
        return xr.Dataset(
            {
                "group_loss": self.described(
                    ["group"],
                    np.array([loss.value for loss in losses]),
                    long_name="loss of the group",
                    units="nats",
                    definition="mean over the group's training examples of the cross-entropy at "
                    f"'='; {PAPER}",
                    range="[0, inf)",
                    nan_means=EMPTY,
                ),
                "group_loss_interval": self.described(
                    ["group", "bound"],
                    np.array([loss.interval for loss in losses]),
                    long_name="loss of the group, 95% interval",
                    units="nats",
                    definition="mean -+ 1.96 standard errors over the group's training examples",
                    range="(-inf, inf)",
                    nan_means="the group has fewer than two examples",
                ),
                "group_loss_n": self.described(
                    ["group"],
                    n,
                    long_name="examples of the group",
                    units="examples",
                    definition="number of the group's training examples",
                    range="[0, inf)",
                ),
                "group_gradient_share": self.described(
                    ["group"],
                    share,
                    long_name="share of the gradient at the logits",
                    units="fraction",
                    definition="sum over the group's training examples of the Euclidean norm of "
                    "the gradient of the example's loss with respect to its logits at '=', over "
                    "the same sum over all training examples",
                    range="[0, 1]",
                    nan_means=f"{EMPTY}, or the gradient of every example is exactly zero",
                ),
            },
            coords=axis_labels(group=GROUPS, bound=BOUNDS),
        )
