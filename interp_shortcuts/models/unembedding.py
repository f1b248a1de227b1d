"""The unembedding of a transformer taken out, and another one put into a copy of the model."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from interp_shortcuts.models.build import build, eager, load_weights, weights_of
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.models.spec import ModelSpec


class Unembedding(NamedTuple):
    """From the residual stream to the logits, after the final normalisation.

    Attributes:
        matrix: W_U.
        bias: b_U.
    """

    matrix: Float[Tensor, "d_model class"]
    bias: Float[Tensor, " class"]


def unembedding_of(model: nn.Module) -> Unembedding:
    """A copy of W_U and b_U, on the CPU, in float64."""
    unembed = eager(model).unembed
    return Unembedding(
        unembed.W_U.detach().cpu().double().clone(), unembed.b_U.detach().cpu().double().clone()
    )


def with_unembedding(model: nn.Module, unembedding: Unembedding) -> HookedTransformer:
    """A new model, equal to this one but for its unembedding; the given one is left as it is.

    It has the model's dtype and device and is in eval mode. Hooks are not copied.

    Args:
        model: A `HookedTransformer`, also a compiled one.
        unembedding: Of the same shape as the model's.
    """
    module = eager(model)
    device, dtype = module.unembed.W_U.device, module.unembed.W_U.dtype
    copy = build(ModelSpec.from_model(module), device=device)
    for parameter in copy.parameters():
        parameter.data = parameter.data.to(dtype)
    copy.cfg.dtype = module.cfg.dtype
    changed = {"unembed.W_U": unembedding.matrix, "unembed.b_U": unembedding.bias}
    load_weights(copy, {**weights_of(module), **changed})
    return copy.eval()
