"""What each head does to a single integer, read from the weights alone.

Write E for the embedding, P for the positions, n for the read position and q for the "=" token
there. An integer v stands for x_v = E_v + mean of P over 0..n-1, the query for x_q = E_q + P_n,
each passed through the layer's own normalisation. In layer 0 this is what the head sees, except
that an integer's position is averaged; in a deeper layer it is the direct path alone, without
what earlier layers wrote. Ranks and variances of these views are left to the measures.
"""

from __future__ import annotations

import torch
from jaxtyping import Float64
from torch import Tensor

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.weights import Weights


def qk_scores(
    weights: Weights, *, n_integers: int, read_position: int, equals_token: int | None = None
) -> Float64[Tensor, "checkpoint layer head integer"]:
    """How strongly the query at "=" matches each integer (arXiv 2607.10116, our definition).

    s_v = (x_q W_Q + b_Q) . (x_v W_K + b_K), not divided by sqrt(d_head): divide to compare with
    attention scores.

    Args:
        weights: One or more checkpoints.
        n_integers: The integers are the tokens 0 .. n_integers - 1.
        read_position: Position of "="; the integers stand before it.
        equals_token: The token "="; `n_integers` if not given.
    """
    integers = _integers(weights, n_integers=n_integers, read_position=read_position)
    token = n_integers if equals_token is None else equals_token
    _check_below("equals_token", token, "d_vocab", weights.spec.d_vocab)
    equals = weights.embed[:, token] + weights.position[:, read_position]
    query = (
        torch.einsum("clvm,clhmd->clhvd", _attention_input(weights, equals[:, None]), weights.W_Q)
        + weights.b_Q[..., None, :]
    )
    keys = (
        torch.einsum("clvm,clhmd->clhvd", _attention_input(weights, integers), weights.W_K)
        + weights.b_K[..., None, :]
    )
    return (query * keys).sum(-1)


def ov_outputs(
    weights: Weights, *, n_integers: int, read_position: int
) -> Float64[Tensor, "checkpoint layer head integer d_model"]:
    """What each head writes to the residual stream when it attends to an integer alone.

    o_v = (x_v W_V + b_V) W_O, without b_O, which no head owns.
    """
    integers = _integers(weights, n_integers=n_integers, read_position=read_position)
    values = (
        torch.einsum("clvm,clhmd->clhvd", _attention_input(weights, integers), weights.W_V)
        + weights.b_V[..., None, :]
    )
    return torch.einsum("clhvd,clhdm->clhvm", values, weights.W_O)


def ov_logits(
    weights: Weights, *, n_integers: int, read_position: int
) -> Float64[Tensor, "checkpoint layer head integer class"]:
    """The direct effect of `ov_outputs` on each class's logit: u_v = o_v W_U, without b_U.

    Of the final normalisation only the linear part is applied (centring and gain). Its scale is
    positive and belongs to the example, not to the head, so it is dropped: the order of the
    integers stays, the size is up to that factor.
    """
    outputs = ov_outputs(weights, n_integers=n_integers, read_position=read_position)
    if weights.spec.centres:
        outputs = outputs - outputs.mean(-1, keepdim=True)
    if weights.final_gain is not None:
        outputs = outputs * weights.final_gain[:, None, None, None]
    return torch.einsum("clhvm,cmk->clhvk", outputs, weights.W_U)


def _integers(
    weights: Weights, *, n_integers: int, read_position: int
) -> Float64[Tensor, "checkpoint integer d_model"]:
    """x_v: the embedding of each integer at the mean of the integers' positions."""
    if n_integers < 1:
        raise MeasureError(f"`n_integers` (={n_integers}) must be at least 1.")
    if read_position < 1:
        raise MeasureError(
            f"`read_position` (={read_position}) must leave at least one position before it."
        )
    _check_below("n_integers", n_integers - 1, "d_vocab", weights.spec.d_vocab, shown=n_integers)
    _check_below("read_position", read_position, "n_ctx", weights.spec.n_ctx)
    mean_position = weights.position[:, :read_position].mean(1, keepdim=True)
    return weights.embed[:, :n_integers] + mean_position


def _attention_input(
    weights: Weights, residual: Float64[Tensor, "checkpoint integer d_model"]
) -> Float64[Tensor, "checkpoint layer integer d_model"]:
    """What each layer's attention reads when the residual stream is `residual`."""
    spec = weights.spec
    normalized = _normalized(residual, spec)[:, None].expand(-1, spec.n_layers, -1, -1)
    if weights.attention_gain is not None:
        normalized = normalized * weights.attention_gain[:, :, None]
    if weights.attention_bias is not None:
        normalized = normalized + weights.attention_bias[:, :, None]
    return normalized


def _normalized(
    residual: Float64[Tensor, "checkpoint integer d_model"], spec: ModelSpec
) -> Float64[Tensor, "checkpoint integer d_model"]:
    """The normalisation of the spec before its gain and bias."""
    if spec.normalization == "none":
        return residual
    if spec.centres:
        residual = residual - residual.mean(-1, keepdim=True)
    return residual / (residual.square().mean(-1, keepdim=True) + spec.eps).sqrt()


def _check_below(
    name: str, value: int, limit_name: str, limit: int, *, shown: int | None = None
) -> None:
    if not 0 <= value < limit:
        relation = "below" if shown is None else "at most"
        raise MeasureError(
            f"`{name}` (={value if shown is None else shown}) must be {relation} "
            f"`{limit_name}` (={limit})."
        )
