"""How a model does on each split of a task: the numbers of a learning curve."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from interp_shortcuts.models.hooks import reading
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.models.staged import StagedModel, read_logits_pruned
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.tasks.split import Split, rows_in_train

CHUNK = 4096


def evaluate(model: HookedTransformer, task: Task) -> dict[str, dict[str, Any]]:
    """Loss, accuracy and shortcut rate on every split; the model is left as it was.

    Returns:
        For each split: `loss` (mean, nats), `accuracy` and `shortcut_rate` (the fraction whose
        prediction is the shortcut's label), `n` (examples). An empty split has None and n = 0.
    """
    found: dict[str, Float[Tensor, "example class"]] = {}
    with reading(model) as eager_model:
        staged = StagedModel.of(eager_model)
        for name, split in task.splits.items():
            rows = rows_in_train(task.splits, name)
            known = found.get("train") if rows is not None else None
            found[name] = _logits(staged, task, split) if known is None else known[rows]
    return {name: _scores(found[name], task, split) for name, split in task.splits.items()}


def _logits(staged: StagedModel, task: Task, split: Split) -> Float[Tensor, "example class"]:
    """The logits at the read position, on the CPU, a bounded number of examples at a time."""
    device = staged.W_E.device
    parts = [
        read_logits_pruned(staged, tokens.to(device), position=task.read_position).cpu()
        for tokens in split.tokens.split(CHUNK)
        if len(tokens)
    ]
    return torch.cat(parts) if parts else torch.empty(0, task.n_classes)


def _scores(logits: Float[Tensor, "example class"], task: Task, split: Split) -> dict[str, Any]:
    if split.n == 0:
        return {"loss": None, "accuracy": None, "shortcut_rate": None, "n": 0}
    hits = task.predictions(logits) == split.shortcut_labels
    return {
        "loss": task.loss(logits, split.labels).double().mean().item(),
        "accuracy": task.correct(logits, split.labels).double().mean().item(),
        "shortcut_rate": hits.double().mean().item(),
        "n": split.n,
    }
