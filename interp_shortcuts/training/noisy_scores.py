"""How a model does on a task with wrong training labels: on each split, one forward pass for both
the training examples and their parts."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from interp_shortcuts.models.any_model import answer_logits
from interp_shortcuts.tasks.noisy_task import NoisyTask, rows_of_train


def noisy_scores(model: nn.Module, task: NoisyTask) -> dict[str, dict[str, Any]]:
    """Loss and accuracy on every split; the model is left as it was.

    Args:
        model: The model, of any kind; hooks that are attached act.
        task: The task.

    Returns:
        For each split: `loss` (mean, nats), `accuracy` and `n` (examples). An empty split, such as
        `noisy` without noise, has None and n = 0.
    """
    found: dict[str, Float[Tensor, "example class"]] = {}
    scores: dict[str, dict[str, Any]] = {}
    for name, split in task.splits.items():
        if split.n == 0:
            scores[name] = {"loss": None, "accuracy": None, "n": 0}
            continue
        rows = rows_of_train(task, name) if "train" in found else None
        found[name] = answer_logits(model, split.inputs) if rows is None else found["train"][rows]
        scores[name] = {
            "loss": task.loss(found[name], split.labels).double().mean().item(),
            "accuracy": task.correct(found[name], split.labels).double().mean().item(),
            "n": split.n,
        }
    return scores
