"""The logits of a model from some position on, by the plain forward of `staged`.

For tasks whose answer is written behind a prompt: nothing is scored within the prompt, so the last
layer is computed from the first scored position on alone, with keys and values from all positions.
Hooks do not act.
"""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor, nn

from interp_shortcuts.models.staged import StagedModel, row_of


def tail_logits(
    model: nn.Module | StagedModel, tokens: Int[Tensor, "example position"], *, first: int
) -> Float[Tensor, "example tail class"]:
    """The model's logits at the positions from `first` to the last; differentiable.

    Args:
        model: A HookedTransformer, or its layout when it is read more than once.
        tokens: The sequences.
        first: The first position asked; negative counts from the end.

    Raises:
        InterventionError: If the sequences have no such position.
    """
    staged = model if isinstance(model, StagedModel) else StagedModel.of(model)
    first = row_of(first, tokens.shape[-1])
    *_, last = staged.stages(tokens, row=slice(first, None))
    return staged.logits(last.resid_post)
