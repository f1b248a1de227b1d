"""How a model does on each split of a sequence task: mean loss and exact match."""

from __future__ import annotations

from typing import Any

from torch import nn

from interp_shortcuts.models.hooks import reading
from interp_shortcuts.models.staged import StagedModel
from interp_shortcuts.models.tail import tail_logits
from interp_shortcuts.tasks.sequences import SequenceTask
from interp_shortcuts.tasks.target_scores import exact_match, token_loss


def sequence_scores(model: nn.Module, task: SequenceTask) -> dict[str, dict[str, Any]]:
    """Loss and exact match on every split, under teacher forcing; the model is left as it was.

    Args:
        model: The model; hooks do not act.
        task: The task.

    Returns:
        For each split: `loss` (mean over examples of the mean over their target tokens, nats),
        `accuracy` (the fraction of examples whose whole answer is right, equal to that by greedy
        decoding) and `n` (examples).
    """
    scores: dict[str, dict[str, Any]] = {}
    with reading(model) as eager_model:
        staged = StagedModel.of(eager_model)
        for name, split in task.splits.items():
            first = split.first_scored
            logits = tail_logits(staged, split.tokens.to(staged.W_E.device), first=first).cpu()
            targets = split.targets[:, first:]
            scores[name] = {
                "loss": token_loss(logits, targets).double().mean().item(),
                "accuracy": exact_match(logits, targets).double().mean().item(),
                "n": split.n,
            }
    return scores
