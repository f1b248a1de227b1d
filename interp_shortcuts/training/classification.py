"""Training on a fixed split of examples whose answer is one class, to the adversarial goal.

The order of the examples is in `batches.py`, the gradient in `gradient.py`.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.tasks.base import AnswerTask
from interp_shortcuts.training.batches import BatchOrder
from interp_shortcuts.training.evaluation import Scores, chunked_splits, evaluate
from interp_shortcuts.training.gradient import MeanLoss


class Classification:
    """The mean loss over batches of the split "train", and the early stop; see `Objective`."""

    def __init__(self, config: RunConfig, task: AnswerTask, model: HookedTransformer) -> None:
        self.task = task
        self.batches = BatchOrder(
            task.split("train").n, batch_size=config.optim.batch_size, seed=config.seed
        )
        self._model = model
        self._early_stop = config.early_stop
        self._chunked = chunked_splits(model, task)
        self._loss = MeanLoss(model, task, self._chunked["train"], precision=config.optim.precision)

    @staticmethod
    def check(config: RunConfig, task: AnswerTask) -> None:
        """Refuse a task that cannot be trained so.

        Raises:
            ConfigError: If it has no training examples, or none for the early stop.
        """
        if config.early_stop is not None and "adversarial" not in task.splits:
            raise ConfigError(
                f"`early_stop` (={config.early_stop}) needs a split 'adversarial'; the task has "
                f"{', '.join(map(repr, task.splits))}."
            )
        if task.split("train").n == 0:
            raise ConfigError("`n_train` must be at least 1; the split 'train' is empty.")

    def backward(self) -> float:
        """Take the next batch and add the gradient of its mean loss to the parameters' `grad`."""
        return self._loss.backward(self.batches.next())

    def evaluate(self) -> Scores:
        """The scores on every split."""
        return evaluate(self._model, self.task, self._chunked)

    @property
    def patience(self) -> int | None:
        """The config's `early_stop`."""
        return self._early_stop

    def is_reached(self, scores: Scores) -> bool:
        """Whether every adversarial example is right."""
        return scores.get("adversarial", {}).get("accuracy") == 1.0

    def shown(self, scores: Scores) -> dict[str, float]:
        """The accuracies on validation and adversarial, of those that there are."""
        found = {name: scores.get(name, {}).get("accuracy") for name in _SHOWN}
        return {name: value for name, value in found.items() if value is not None}

    def outcome(self, scores: Scores) -> dict[str, Any]:  # noqa: ARG002 - another kind needs them
        """Nothing: outcomes are found on timelines."""
        return {}

    def state(self) -> dict[str, Tensor]:
        """The random state of the batches and what is left of the epoch."""
        return self.batches.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state()`."""
        self.batches.restore(state)


_SHOWN = ("validation", "adversarial")
