"""How a model does on each split of a task: the numbers of a learning curve."""

from __future__ import annotations

from typing import Any

from interp_shortcuts.models.forward import read_logits
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.tasks.split import Split


def evaluate(model: HookedTransformer, task: Task) -> dict[str, dict[str, Any]]:
    """Loss, accuracy and shortcut rate on every split; the model is left as it was.

    Returns:
        For each split: `loss` (mean, nats), `accuracy` and `shortcut_rate` (the fraction whose
        prediction is the shortcut's label), `n` (examples). An empty split has None and n = 0.
    """
    return {name: _evaluate_split(model, task, split) for name, split in task.splits.items()}


def _evaluate_split(model: HookedTransformer, task: Task, split: Split) -> dict[str, Any]:
    if split.n == 0:
        return {"loss": None, "accuracy": None, "shortcut_rate": None, "n": 0}
    logits = read_logits(model, split.tokens, position=task.read_position)
    hits = task.predictions(logits) == split.shortcut_labels
    return {
        "loss": task.loss(logits, split.labels).double().mean().item(),
        "accuracy": task.correct(logits, split.labels).double().mean().item(),
        "shortcut_rate": hits.double().mean().item(),
        "n": split.n,
    }
