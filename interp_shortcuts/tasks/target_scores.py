"""What counts as loss and as correct where the answer is a sequence of tokens.

Both are taken under teacher forcing: the model reads the true answer, and at each position is
asked for the next token of it. For correctness that is no shortcut, but an identity: an answer
decoded greedily, token by token, is right in full exactly if every token is predicted under
teacher forcing, since as long as every token so far was right, the decoded beginning *is* the
teacher-forced one. It holds for any model whose positions do not see later ones, with
interventions as without, as long as an intervention at a position does not depend on what comes
after it. One forward pass thus replaces a pass for each token; decoding is in `models/decoding`.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp_shortcuts.errors import TaskError
from interp_shortcuts.tasks.target_split import IGNORED


def token_loss(
    logits: Float[Tensor, "example position class"],
    targets: Int[Tensor, "example position"],
) -> Float[Tensor, " example"]:
    """The mean cross-entropy over the target tokens of each example, in nats.

    Args:
        logits: The model's logits.
        targets: The tokens due; positions that hold `IGNORED` are not scored.

    Returns:
        In float32 at least; 0 or more. Every example counts alike, however long its answer is.

    Raises:
        TaskError: If an example has no target.
    """
    scored = _scored(targets)
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    each = torch.nn.functional.cross_entropy(
        wide.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return each.unflatten(0, targets.shape).sum(1) / scored.sum(1)


def exact_match(
    logits: Float[Tensor, "example position class"],
    targets: Int[Tensor, "example position"],
) -> Bool[Tensor, " example"]:
    """Whether every target token of an example has the largest logit; among equals the lowest.

    Equal to whether greedy decoding gives the answer, its end included; see the module.

    Args:
        logits: The model's logits.
        targets: The tokens due; positions that hold `IGNORED` are not scored.

    Raises:
        TaskError: If an example has no target.
    """
    scored = _scored(targets)
    return ((logits.argmax(-1) == targets) | ~scored).all(1)


def _scored(targets: Int[Tensor, "example position"]) -> Bool[Tensor, "example position"]:
    scored = targets != IGNORED
    empty = torch.nonzero(~scored.any(1)).flatten()
    if len(empty):
        raise TaskError(
            f"every example must have a target; example {int(empty[0])} of `targets` has none."
        )
    return scored
