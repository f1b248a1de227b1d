"""All pairs of a task as rows of one table, and which of them are in each group.

The groups are `NOISE_GROUPS`, the splits of the task. A network that is read on the whole table
once is scored on all of them. Loss and correctness belong to the task.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.intervals import Mean, mean_with_interval
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.tasks.modular import ModularArithmetic

PAPER = "arXiv:2605.18022"
EMPTY = "the group has no example"
AGAINST = (
    "against the labels of the group: observed ones in train, clean and noisy, true ones in "
    "noisy_true and test"
)


@dataclass(frozen=True, eq=False)
class NoiseRows:
    """The labels of pairs, and from them the groups.

    Attributes:
        observed: The labels that are trained; of a test pair, the true one.
        true: What the operation gives.
        trained: Whether the pair is trained.
    """

    observed: Int[Tensor, " pair"]
    true: Int[Tensor, " pair"]
    trained: Bool[Tensor, " pair"]

    @classmethod
    def of(cls, task: ModularArithmetic) -> NoiseRows:
        """All pairs, in the order of `task.pairs`."""
        train = task.split("train")
        places = train.tokens - int(task.residues[0])
        rows = places[:, 0] * len(task.residues) + places[:, 1]
        observed = task.pairs.true_labels.clone()
        observed[rows] = train.labels
        trained = torch.zeros(task.pairs.n, dtype=torch.bool)
        trained[rows] = True
        return cls(observed, task.pairs.true_labels, trained)

    @cached_property
    def members(self) -> Bool[Tensor, "group pair"]:
        """Whether a pair is in the group."""
        noisy = self.trained & (self.observed != self.true)
        return torch.stack([self.trained, self.trained & ~noisy, noisy, noisy, ~self.trained])

    @property
    def n(self) -> Int[np.ndarray, " group"]:
        """Number of pairs in each group."""
        return self.members.sum(1).numpy()

    def right(self, predictions: Int[Tensor, "*batch pair"]) -> Int[np.ndarray, "*batch group"]:
        """How many pairs of each group are predicted as their label."""
        as_observed, as_true = predictions == self.observed, predictions == self.true
        against = (as_observed, as_observed, as_observed, as_true, as_true)
        counts = [(found & rows).sum(-1) for found, rows in zip(against, self.members, strict=True)]
        return torch.stack(counts, dim=-1).numpy()

    def fraction(self, right: Int[np.ndarray, "*batch group"]) -> Float[np.ndarray, "*batch group"]:
        """That number as a fraction of the group; NaN for an empty group."""
        return right / np.where(self.n > 0, self.n, np.nan)

    def losses(
        self, task: ModularArithmetic, logits: Float[Tensor, "pair class"]
    ) -> Float[np.ndarray, "label pair"]:
        """The loss of each pair in nats, against its observed and against its true label."""
        both = [task.loss(logits, labels) for labels in (self.observed, self.true)]
        return torch.stack(both).double().numpy()

    def mean_loss(self, losses: Float[np.ndarray, "label pair *batch"]) -> Mean:
        """The mean of such losses over each group, with its interval: [*batch group]."""
        as_observed, as_true = losses
        against = (as_observed, as_observed, as_observed, as_true, as_true)
        means = [
            mean_with_interval(found[rows])
            for found, rows in zip(against, self.members.numpy(), strict=True)
        ]
        axis = as_true.ndim - 1  # where the group goes: after the batch
        return Mean(*(np.stack(part, axis=axis) for part in zip(*means, strict=True)))


def require_modular(task: Task) -> ModularArithmetic:
    """The task, once it is known to be modular arithmetic.

    Raises:
        MeasureError: If it is another kind of task.
    """
    if not isinstance(task, ModularArithmetic):
        raise MeasureError(
            f"the measure needs a task of modular arithmetic (a ModularArithmetic); {task.name!r} "
            f"is a {type(task).__name__}."
        )
    return task
