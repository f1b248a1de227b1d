"""The parameters of a HookedTransformer as the plain forward wants them: one layer, one object.

The arithmetic over them is in `staged`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from interp_shortcuts.models.lens import HookedTransformer


@dataclass(frozen=True, eq=False)
class Norm:
    """What stands before a layer: nothing, LayerNorm or RMSNorm, each with or without gain."""

    kind: str | None
    gain: Float[Tensor, " d_model"] | None
    bias: Float[Tensor, " d_model"] | None
    eps: float

    def __call__(
        self, resid: Float[Tensor, "*batch position d_model"]
    ) -> Float[Tensor, "*batch position d_model"]:
        """The normalised residual stream; in half precision the statistics are float32."""
        if self.kind is None:
            return resid
        width = resid.shape[-1:]
        half = resid.dtype not in (torch.float32, torch.float64)
        x = resid.float() if half else resid
        gain, bias = (None, None) if half else (self.gain, self.bias)
        if self.kind.startswith("LN"):
            x = F.layer_norm(x, width, gain, bias, self.eps)
        else:
            x = F.rms_norm(x, width, gain, self.eps)
        if not half:
            return x
        x = x.to(resid.dtype)
        x = x if self.gain is None else x * self.gain
        return x if self.bias is None else x + self.bias


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer's parameters, with the heads of each matrix side by side."""

    norm1: Norm
    norm2: Norm
    W_Q: Float[Tensor, "head_d_head d_model"]
    b_Q: Float[Tensor, " head_d_head"]
    W_K: Float[Tensor, "head_d_head d_model"]
    b_K: Float[Tensor, " head_d_head"]
    W_V: Float[Tensor, "head_d_head d_model"]
    b_V: Float[Tensor, " head_d_head"]
    W_O: Float[Tensor, "d_model head_d_head"]
    b_O: Float[Tensor, " d_model"]
    W_in: Float[Tensor, "d_mlp d_model"]
    b_in: Float[Tensor, " d_mlp"]
    W_out: Float[Tensor, "d_model d_mlp"]
    b_out: Float[Tensor, " d_model"]
    activation: Callable[[Tensor], Tensor]


def norm_of(model: HookedTransformer, module: nn.Module | None, *, dtype: torch.dtype) -> Norm:
    """The normalisation that a module of the model is."""
    gain, bias = getattr(module, "w", None), getattr(module, "b", None)
    return Norm(
        kind=model.cfg.normalization_type,
        gain=None if gain is None else gain.to(dtype),
        bias=None if bias is None else bias.to(dtype),
        eps=model.cfg.eps,
    )


def layer_of(model: HookedTransformer, layer: int, *, dtype: torch.dtype) -> Layer:
    """A layer's parameters; gradients flow back to the model's."""
    block = model.blocks[layer]
    attn, mlp = block.attn, block.mlp

    def side_by_side(weights: Float[Tensor, "head d_model d_head"]) -> Float[Tensor, "..."]:
        return weights.to(dtype).mT.flatten(0, 1)

    return Layer(
        norm1=norm_of(model, block.ln1, dtype=dtype),
        norm2=norm_of(model, block.ln2, dtype=dtype),
        W_Q=side_by_side(attn.W_Q),
        b_Q=attn.b_Q.to(dtype).flatten(),
        W_K=side_by_side(attn.W_K),
        b_K=attn.b_K.to(dtype).flatten(),
        W_V=side_by_side(attn.W_V),
        b_V=attn.b_V.to(dtype).flatten(),
        W_O=attn.W_O.to(dtype).flatten(0, 1).mT,
        b_O=attn.b_O.to(dtype),
        W_in=mlp.W_in.to(dtype).mT,
        b_in=cast(Tensor, mlp.b_in).to(dtype),
        W_out=mlp.W_out.to(dtype).mT,
        b_out=cast(Tensor, mlp.b_out).to(dtype),
        activation=mlp.act_fn,
    )
