"""How well sequences are answered under many interventions: exact match and loss of each example.

The runs are those of `interventions.batched`: the clean pass is made once for each chunk of
examples, a run leaves it at its first edited layer, runs that begin alike are one until they part,
and the last layer and the logits are computed at the scored positions alone. Every number equals
that of the model under `applied` (1e-5 in float32). **Hooks that are attached to the model do not
act.**
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import nn

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.interventions.base import Intervention
from interp_shortcuts.interventions.batched import read_logits_under
from interp_shortcuts.interventions.references import References
from interp_shortcuts.models.build import eager
from interp_shortcuts.models.staged import StagedModel
from interp_shortcuts.tasks.target_scores import exact_match, token_loss
from interp_shortcuts.tasks.target_split import TargetSplit

Run = Intervention | Sequence[Intervention]
"""One pass: an intervention, several that act together, or none for the unablated pass."""

CHUNK = 64
"""Examples in one pass."""
RUNS_AT_ONCE = 64
"""Runs whose activations are held at once."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of each example in each run.

    Attributes:
        exact_match: Whether every target token is predicted, under teacher forcing; that is whether
            greedy decoding gives the answer (see `tasks.target_scores`).
        loss: Mean cross-entropy over the example's target tokens, in nats.
    """

    exact_match: Bool[np.ndarray, "run example"]
    loss: Float[np.ndarray, "run example"]

    def drops(self) -> Float[np.ndarray, "run example"]:
        """Exact match of the first run minus that of each other, on the same example."""
        matched = self.exact_match.astype(np.float64)
        return matched[0] - matched[1:]

    def rises(self) -> Float[np.ndarray, "run example"]:
        """Loss of each other run minus that of the first, on the same example, in nats."""
        return self.loss[1:] - self.loss[0]


def ablated_scores(
    model: nn.Module,
    split: TargetSplit,
    runs: Sequence[Run],
    *,
    references: References | None = None,
    chunk: int = CHUNK,
    at_once: int = RUNS_AT_ONCE,
) -> Scores:
    """The scores of a split under each of some interventions.

    Args:
        model: A `HookedTransformer`; it is only read.
        split: The examples, at least one.
        runs: What is changed in each pass. Interventions that share a reference should hold the
            same object, so that its activations are read once.
        references: Those of this model, if the same references are needed again.
        chunk: Examples in one pass; bounds the memory.
        at_once: Runs in one pass; bounds the memory.

    Raises:
        MeasureError: If there is no example.
        TaskError: If an example has no target.
    """
    if not split.n:
        raise MeasureError(f"`split` must hold at least one example; {split!r} holds none.")
    scored = split.scored
    first = int(scored.any(0).int().argmax())
    if references is None:
        references = References(StagedModel.of(eager(model)))
    targets = split.targets[:, first:]
    matched, losses = [], []
    for start in range(0, len(runs), at_once):
        logits = read_logits_under(
            model,
            split.tokens,
            runs[start : start + at_once],
            position=slice(first, None),
            chunk=chunk,
            references=references,
        ).cpu()
        for each in logits:
            matched.append(exact_match(each, targets))
            losses.append(token_loss(each, targets).double())
    return Scores(torch.stack(matched).numpy(), torch.stack(losses).numpy())
