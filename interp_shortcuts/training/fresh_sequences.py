"""Training on sequences that are drawn anew at each step, until whole answers are right.

Each step is a batch of one length, so that nothing is padded. The gradient comes from the plain
forward of `models.tail`, which equals the model's own up to rounding.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from interp_shortcuts.errors import ConfigError, StorageError
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.models.tail import tail_logits
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.streams import torch_stream
from interp_shortcuts.tasks.ood_length import choose_ood_length
from interp_shortcuts.tasks.sequence_config import SequenceConfig
from interp_shortcuts.tasks.sequences import SequenceTask
from interp_shortcuts.tasks.target_scores import token_loss
from interp_shortcuts.training.evaluation import Scores
from interp_shortcuts.training.sequence_scores import sequence_scores

_ROUNDING = 1e-9


class FreshSequences:
    """The mean loss of fresh batches, and exact match as the goal; see `Objective`.

    Batches come from the stream `("batches",)` of the run's seed: first the length, uniformly from
    the training lengths, then the integers. Evaluations draw nothing.
    """

    def __init__(self, config: RunConfig, task: SequenceTask, model: HookedTransformer) -> None:
        if not isinstance(config.task, SequenceConfig) or config.optim.batch_size is None:
            raise ConfigError("`config` must be that of a sequence task, with a `batch_size`.")
        self.task = task
        self._model = model
        self._size = config.optim.batch_size
        self._goal = config.task.stop_at
        self._autocast = config.optim.precision == "bfloat16"
        self._generator = torch_stream(config.seed, "batches")

    def backward(self) -> float:
        """Draw a batch and add the gradient of its mean loss to the parameters' `grad`."""
        batch = self.task.batch(self._size, self._generator)
        device, first = self._model.W_E.device, batch.first_scored
        tokens, targets = batch.tokens.to(device), batch.targets[:, first:].to(device)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=self._autocast):
            logits = tail_logits(self._model, tokens, first=first)
            loss = token_loss(logits.float(), targets).mean()
            loss.backward()
        return loss.item()

    def evaluate(self) -> Scores:
        """The scores on every split."""
        return sequence_scores(self._model, self.task)

    @property
    def patience(self) -> int | None:
        """One evaluation at the goal is enough; None without a goal."""
        return None if self._goal is None else 1

    def is_reached(self, scores: Scores) -> bool:
        """Whether the exact match, averaged over the training lengths, is at least `stop_at`."""
        return self._goal is not None and self._trained(scores) >= self._goal - _ROUNDING

    def shown(self, scores: Scores) -> dict[str, float]:
        """Exact match over the training lengths, and at the first held-out one."""
        heldout = [f"length_{length}" for length in self.task.heldout_lengths[:1]]
        return {"trained": self._trained(scores)} | {
            name: scores[name]["accuracy"] for name in heldout
        }

    def outcome(self, scores: Scores) -> dict[str, Any]:
        """The exact match at every held-out length, and the length chosen by it; None: none is."""
        accuracies = {n: scores[f"length_{n}"]["accuracy"] for n in self.task.heldout_lengths}
        return {
            "ood_length": choose_ood_length(accuracies),
            "ood_accuracies": {str(n): accuracy for n, accuracy in accuracies.items()},
        }

    def state(self) -> dict[str, Tensor]:
        """The random state of the batches."""
        return {"generator": self._generator.get_state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state()`.

        Raises:
            StorageError: If the random state is missing.
        """
        if not isinstance(state.get("generator"), Tensor):
            raise StorageError("the random state of the batches (`generator`) is missing")
        self._generator.set_state(state["generator"])

    def _trained(self, scores: Scores) -> float:
        """The exact match averaged over the training lengths, whose splits are equally large."""
        trained = [scores[f"length_{n}"]["accuracy"] for n in self.task.train_lengths]
        return sum(trained) / len(trained)
