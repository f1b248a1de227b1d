"""The gradient of a batch: the mean loss at the read position, by the fast forward of `models`.

The parameters are those of the HookedTransformer, so that hooks work on it between steps; the step
itself runs the forward of `models.chunks`, chunk by chunk, and the gradients add up in the
parameters. It equals the model's own forward up to rounding. Updating is left to the optimiser.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from interp_shortcuts.models.chunks import ChunkedSequences
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.tasks.base import AnswerTask
from interp_shortcuts.tasks.noisy_task import NoisyTask


class MeanLoss:
    """The mean loss over training examples, and its gradient."""

    def __init__(
        self,
        model: HookedTransformer,
        task: AnswerTask | NoisyTask,
        train: ChunkedSequences,
        *,
        precision: Literal["float32", "bfloat16"] = "float32",
    ) -> None:
        """Lay out the training examples.

        Args:
            model: The model in training; its parameters receive the gradients.
            task: The task, whose loss it is.
            train: The task's split `"train"`, in chunks, and where it is read.
            precision: Of the matrix products; see `OptimConfig`.
        """
        self.model = model
        self.task = task
        self._autocast = precision == "bfloat16"
        self._train = train
        split, device = task.split("train"), model.W_E.device
        self._tokens, self._labels = split.inputs.to(device), split.labels.to(device)

    def backward(self, batch: Int[Tensor, " example"] | None = None) -> float:
        """Add the gradient of the mean loss to the parameters' `grad`.

        Args:
            batch: Which training examples; None for all of them.

        Returns:
            The mean loss, in nats.
        """
        sequences, labels = self._train, self._labels
        if batch is not None:
            batch = batch.to(labels.device)
            labels = labels[batch]
            sequences = ChunkedSequences.of(
                self._tokens[batch], self.model, position=self._train.position, share=False
            )
        total = 0.0
        with torch.autocast(labels.device.type, dtype=torch.bfloat16, enabled=self._autocast):
            for index, logits in sequences.logits(self.model):
                loss = self.task.loss(logits.float(), labels[index]).sum() / sequences.n
                loss.backward()
                total += loss.item()
        return total
