"""Loss and correctness of one class an example, for tasks whose model gives one row of logits."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp_shortcuts.errors import TaskError


class ClassScores:
    """What a task inherits to score logits [example class]; it needs `n_classes`."""

    @property
    def n_classes(self) -> int:
        """Number of classes, and of logits."""
        raise NotImplementedError

    @property
    def chance(self) -> float:
        """Accuracy of guessing a class uniformly, 1 / C."""
        return 1 / self.n_classes

    def loss(
        self, logits: Float[Tensor, "example class"], labels: Int[Tensor, " example"]
    ) -> Float[Tensor, " example"]:
        """Cross-entropy of each example, in nats, in float32 at least."""
        self._check_classes(logits)
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return torch.nn.functional.cross_entropy(wide, labels, reduction="none")

    def predictions(self, logits: Float[Tensor, "example class"]) -> Int[Tensor, " example"]:
        """The class with the largest logit; among equals, the lowest class."""
        self._check_classes(logits)
        return logits.argmax(dim=-1)

    def correct(
        self, logits: Float[Tensor, "example class"], labels: Int[Tensor, " example"]
    ) -> Bool[Tensor, " example"]:
        """Whether the prediction of each example is its label."""
        return self.predictions(logits) == labels

    def _check_classes(self, logits: Tensor) -> None:
        if logits.ndim != 2 or logits.shape[-1] != self.n_classes:
            raise TaskError(
                f"`logits` must have shape [example class] with {self.n_classes} classes; got "
                f"{tuple(logits.shape)}."
            )
