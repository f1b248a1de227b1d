"""Greedy decoding: a model writes an answer token by token, each the one with the largest logit.

Under teacher forcing one forward pass says the same about whether an answer is right in full; see
`tasks/target_scores`. Decoding is for the answers themselves, and to check that identity.
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor, nn

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.hooks import reading


def greedy_decode(
    model: nn.Module,
    prompts: Int[Tensor, "example position"],
    *,
    max_new: int,
    end_token: int,
) -> Int[Tensor, "example new_position"]:
    """What the model writes behind each prompt; the model is left as it was, and hooks act.

    Examples do not influence each other: many at once give what each gives alone.

    Args:
        model: A causal HookedTransformer, compiled or not.
        prompts: The sequences to go on from, all of one length.
        max_new: The most tokens that are written.
        end_token: The token that ends an answer.

    Returns:
        The new tokens, `end_token` included, and `end_token` again at every position behind it. As
        long as the longest answer, at most `max_new`.

    Raises:
        ConfigError: If `max_new` is below 1, the prompts are empty, or the model has too few
            positions.
    """
    if max_new < 1:
        raise ConfigError(f"`max_new` must be at least 1; got {max_new}.")
    n_examples, n_positions = prompts.shape
    if n_positions == 0:
        raise ConfigError("`prompts` must have at least one position; got 0.")
    with reading(model) as eager_model:
        n_ctx, needed = eager_model.cfg.n_ctx, n_positions + max_new - 1
        if needed > n_ctx:
            raise ConfigError(
                f"`prompts` of length {n_positions} and `max_new` (={max_new}) need {needed} "
                f"positions; the model's `n_ctx` is {n_ctx}."
            )
        tokens = prompts.to(eager_model.W_E.device)
        ended = torch.zeros(n_examples, dtype=torch.bool, device=tokens.device)
        while tokens.shape[1] < n_positions + max_new and not bool(ended.all()):
            chosen = eager_model(tokens)[:, -1].argmax(-1)
            chosen = chosen.masked_fill(ended, end_token)
            ended = ended | (chosen == end_token)
            tokens = torch.cat([tokens, chosen[:, None]], dim=1)
    return tokens[:, n_positions:].to(prompts.device)
