"""What measures of memorising ask of a task: one class an example, some training labels wrong.

`ModularArithmetic` and `Digits` are such tasks; one of your own needs these members and no common
parent. How labels become wrong is in `label_noise.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeGuard, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp_shortcuts.tasks.any_config import NOISE_GROUPS as NOISE_GROUPS
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.tasks.image_split import ImageSplit
from interp_shortcuts.tasks.pair_split import PairSplit

_MEMBERS = ("noise", "loss", "predictions", "correct")


@runtime_checkable
class NoisyTask(Task, Protocol):
    """A task whose model gives one row of logits an example, and that has wrong training labels.

    Its splits are those in `NOISE_GROUPS`.
    """

    @property
    def noise(self) -> float | int:
        """Label noise alpha: the fraction of training labels that are wrong."""
        ...

    @property
    def splits(self) -> Mapping[str, PairSplit] | Mapping[str, ImageSplit]:
        """The fixed splits by name."""
        ...

    def split(self, name: str) -> PairSplit | ImageSplit:
        """The split of that name.

        Raises:
            TaskError: If there is none; the message lists the names.
        """
        ...

    def loss(
        self, logits: Float[Tensor, "example class"], labels: Int[Tensor, " example"]
    ) -> Float[Tensor, " example"]:
        """Loss of each example, in nats, in float32 at least."""
        ...

    def predictions(self, logits: Float[Tensor, "example class"]) -> Int[Tensor, " example"]:
        """The predicted class of each example."""
        ...

    def correct(
        self, logits: Float[Tensor, "example class"], labels: Int[Tensor, " example"]
    ) -> Bool[Tensor, " example"]:
        """Whether each example is predicted right."""
        ...


def is_noisy_task(task: object) -> TypeGuard[NoisyTask]:
    """Whether a task is a `NoisyTask`, told by its members; no split is drawn."""
    own = getattr(task, "__dict__", {})
    return all(hasattr(type(task), name) or name in own for name in _MEMBERS)


def rows_of_train(task: NoisyTask, name: str) -> Int[Tensor, " row"] | None:
    """Which rows of the split "train" a part of it is, so that both need one forward pass.

    Args:
        task: The task.
        name: Name of a split.

    Returns:
        The indices in order; None for a split that is not a part of "train".
    """
    if name not in ("clean", "noisy", "noisy_true"):
        return None
    train, part = task.split("train"), task.split(name)
    rows = torch.nonzero(train.noisy if name != "clean" else ~train.noisy)[:, 0]
    return rows if torch.equal(train.inputs[rows], part.inputs) else None
