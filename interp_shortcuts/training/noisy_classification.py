"""Training on a fixed split of examples of which some have wrong labels, for all its steps.

There is no goal: what is watched is how the noise is memorised beside the rule. How the gradient
comes about depends on the model: `pair_gradient.py` for a two-layer network, `gradient.py` for a
transformer, the model's own forward for all others.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.any_model import AnyModel, misfit
from interp_shortcuts.models.chunks import ChunkedSequences
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.models.two_layer import TwoLayerNet
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.tasks.noisy_task import NoisyTask
from interp_shortcuts.tasks.pair_split import PairSplit
from interp_shortcuts.training.batches import BatchOrder
from interp_shortcuts.training.evaluation import Scores
from interp_shortcuts.training.gradient import MeanLoss
from interp_shortcuts.training.noisy_scores import noisy_scores
from interp_shortcuts.training.pair_gradient import PairLoss

_SHOWN = ("clean", "noisy", "test")


class NoisyClassification:
    """The mean loss over batches of the split "train", labels as observed; see `Objective`."""

    def __init__(self, config: RunConfig, task: NoisyTask, model: AnyModel) -> None:
        self.task = task
        self.batches = BatchOrder(
            task.split("train").n, batch_size=config.optim.batch_size, seed=config.seed
        )
        self._model = model
        self._loss = gradient_of(model, task)

    @staticmethod
    def check(config: RunConfig, task: NoisyTask) -> None:
        """Refuse a task that cannot be trained so.

        Raises:
            ConfigError: If it has no training examples or its sizes are not the model's, if there
                is an early stop or a precision other than float32, or the optimiser is Muon and
                the model a transformer.
        """
        if config.early_stop is not None:
            raise ConfigError(
                f"`early_stop` (={config.early_stop}) is about adversarial examples, which a task "
                "with wrong labels does not have; leave it out."
            )
        if config.optim.precision != "float32":
            raise ConfigError(
                f"`precision` (={config.optim.precision!r}) must be 'float32' for a task with "
                "wrong labels."
            )
        if task.split("train").n == 0:
            raise ConfigError("`task` must have training examples; the split 'train' is empty.")
        if problem := misfit(config.spec, task):
            raise ConfigError(problem)

    def backward(self) -> float:
        """Take the next batch and add the gradient of its mean loss to the parameters' `grad`."""
        return self._loss.backward(self.batches.next())

    def evaluate(self) -> Scores:
        """Loss, accuracy and n on every split."""
        return noisy_scores(self._model, self.task)

    @property
    def patience(self) -> int | None:
        """None: it never stops early."""
        return None

    def is_reached(self, scores: Scores) -> bool:  # noqa: ARG002 - another kind needs them
        """There is no goal."""
        return False

    def shown(self, scores: Scores) -> dict[str, float]:
        """The accuracies on clean, noisy and test, of those that there are."""
        found = {name: scores.get(name, {}).get("accuracy") for name in _SHOWN}
        return {name: value for name, value in found.items() if value is not None}

    def outcome(self, scores: Scores) -> dict[str, Any]:  # noqa: ARG002 - another kind needs them
        """Nothing: the last line of the learning curves says it."""
        return {}

    def state(self) -> dict[str, Tensor]:
        """The random state of the batches and what is left of the epoch."""
        return self.batches.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state()`."""
        self.batches.restore(state)


class ForwardLoss:
    """The mean loss by a model's own forward; hooks that are attached act."""

    def __init__(self, model: torch.nn.Module, task: NoisyTask) -> None:
        self.model = model
        self.task = task
        train, device = task.split("train"), next(model.parameters()).device
        self._inputs, self._labels = train.inputs.to(device), train.labels.to(device)

    def backward(self, batch: Int[Tensor, " example"] | None = None) -> float:
        """Add the gradient of the mean loss to the parameters' `grad`.

        Args:
            batch: Which training examples; None for all of them.

        Returns:
            The mean loss, in nats.
        """
        inputs, labels = self._inputs, self._labels
        if batch is not None:
            batch = batch.to(labels.device)
            inputs, labels = inputs[batch], labels[batch]
        loss = self.task.loss(self.model(inputs), labels).mean()
        loss.backward()
        return loss.item()


def gradient_of(model: AnyModel, task: NoisyTask) -> PairLoss | MeanLoss | ForwardLoss:
    """The fastest way to a model's gradient on the training examples of a task."""
    train = task.split("train")
    if isinstance(model, TwoLayerNet) and isinstance(train, PairSplit):
        return PairLoss(model, task, train.tokens, train.labels)
    if isinstance(model, HookedTransformer):
        tokens = train.inputs.to(model.W_E.device)
        return MeanLoss(model, task, ChunkedSequences.of(tokens, model))
    return ForwardLoss(model, task)
