"""How a model does on each split of a task: the numbers of a learning curve.

Here for tasks whose answer is one class; `evaluate` hands a sequence task to `sequence_scores`,
and one with wrong training labels to `noisy_scores`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.chunks import ChunkedSequences
from interp_shortcuts.models.hooks import reading
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.tasks.base import AnswerTask, Task, is_answered
from interp_shortcuts.tasks.noisy_task import is_noisy_task
from interp_shortcuts.tasks.sequences import SequenceTask
from interp_shortcuts.tasks.split import Split, rows_in_train
from interp_shortcuts.training.noisy_scores import noisy_scores
from interp_shortcuts.training.sequence_scores import sequence_scores

Scores = dict[str, dict[str, Any]]
"""What an evaluation gives: numbers by split and name."""


def chunked_splits(model: HookedTransformer, task: AnswerTask) -> dict[str, ChunkedSequences]:
    """The splits as `evaluate` reads them, without those that are part of train.

    Worth making once for a run, which evaluates the same splits again and again.
    """
    return {
        name: ChunkedSequences.of(
            split.tokens.to(model.W_E.device), model, position=task.read_position
        )
        for name, split in task.splits.items()
        if name == "train" or rows_in_train(task.splits, name) is None
    }


def evaluate(
    model: nn.Module,
    task: Task,
    chunked: Mapping[str, ChunkedSequences] | None = None,
) -> Scores:
    """Loss, accuracy and shortcut rate on every split; the model is left as it was.

    Args:
        model: The model; hooks do not act, unless the task has wrong training labels.
        task: The task.
        chunked: What `chunked_splits` gave for a model of this size and this task, if its answer
            is one class.

    Returns:
        For each split: `loss` (mean, nats), `accuracy` and `shortcut_rate` (the fraction whose
        prediction is the shortcut's label), `n` (examples). An empty split has None and n = 0.
        For a sequence task, `accuracy` is the exact match and there is no `shortcut_rate`; nor is
        there one for a task with wrong training labels.

    Raises:
        ConfigError: If the task is of no known kind.
    """
    if isinstance(task, SequenceTask):
        return sequence_scores(model, task)
    if is_noisy_task(task):
        return noisy_scores(model, task)
    if not is_answered(task):
        raise ConfigError(
            "`task` must be a SequenceTask, or have the members of an AnswerTask or a NoisyTask; "
            f"got {type(task).__name__}."
        )
    found: dict[str, Float[Tensor, "example class"]] = {}
    with reading(model) as eager_model:
        chunked = chunked_splits(eager_model, task) if chunked is None else chunked
        for name in task.splits:
            rows = rows_in_train(task.splits, name)
            known = found.get("train") if rows is not None else None
            found[name] = (
                _logits(eager_model, chunked[name], task) if known is None else known[rows]
            )
    return {name: _scores(found[name], task, split) for name, split in task.splits.items()}


def _logits(
    model: HookedTransformer, sequences: ChunkedSequences, task: AnswerTask
) -> Float[Tensor, "example class"]:
    """The logits at the read position, on the CPU."""
    found = torch.empty(sequences.n, task.n_classes, dtype=model.W_E.dtype)
    for index, logits in sequences.logits(model):
        found[index.cpu()] = logits.cpu()
    return found


def _scores(
    logits: Float[Tensor, "example class"], task: AnswerTask, split: Split
) -> dict[str, Any]:
    if split.n == 0:
        return {"loss": None, "accuracy": None, "shortcut_rate": None, "n": 0}
    hits = task.predictions(logits) == split.shortcut_labels
    return {
        "loss": task.loss(logits, split.labels).double().mean().item(),
        "accuracy": task.correct(logits, split.labels).double().mean().item(),
        "shortcut_rate": hits.double().mean().item(),
        "n": split.n,
    }
