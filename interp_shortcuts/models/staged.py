"""A plain-torch forward over a HookedTransformer's own parameters, taken layer by layer.

It gives the logits of the model itself (1e-6 in float32) for every norm, activation, attention
direction and size that a `ModelSpec` describes, and it is differentiable in the parameters. It
is there for speed, and to be started and stopped at any layer: the last layer is computed at the
read position alone, and `variants` continues from a layer whose activations were replaced.

**Hooks do not act in it**: neither the user's nor an intervention's. Whoever wants hooks runs the
model. Replacing activations is left to `variants`; describing what is replaced, to interventions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.models.build import eager
from interp_shortcuts.models.layout import Layer, Norm, layer_of, norm_of

Rows: TypeAlias = int | slice | None
"""The query positions that are computed: one, a run of them counted from the start, or all."""


@dataclass(frozen=True, eq=False)
class Stage:
    """The activations of one layer; `row` is every query position, or the read position alone.

    `x` is the normalised `resid_pre` that the heads read; `scores` are q . k / sqrt(d_head) before
    mask and softmax; `z` is per head and before W_O; `resid_mid` lies between attention and MLP;
    `mlp_out` is what the MLP adds, bias included.
    """

    resid_pre: Float[Tensor, "*batch position d_model"]
    x: Float[Tensor, "*batch position d_model"]
    scores: Float[Tensor, "*batch head row position"]
    pattern: Float[Tensor, "*batch head row position"]
    z: Float[Tensor, "*batch row head d_head"]
    resid_mid: Float[Tensor, "*batch row d_model"]
    mlp_out: Float[Tensor, "*batch row d_model"]

    @property
    def resid_post(self) -> Float[Tensor, "*batch row d_model"]:
        """The residual stream after the layer."""
        return self.resid_mid + self.mlp_out


@dataclass(frozen=True, eq=False)
class StagedModel:
    """The parameters of a model, laid out for the plain forward. Make it with `StagedModel.of`."""

    W_E: Float[Tensor, "token d_model"]
    W_pos: Float[Tensor, "position d_model"]
    layers: tuple[Layer, ...]
    norm_final: Norm
    W_U: Float[Tensor, "class d_model"]
    b_U: Float[Tensor, " class"]
    n_heads: int
    scale: float
    causal: bool

    @classmethod
    def of(cls, model: nn.Module, *, dtype: torch.dtype | None = None) -> StagedModel:
        """Lay out the parameters of a model; gradients flow back to them.

        Args:
            model: A HookedTransformer, compiled or not.
            dtype: The precision of the forward; by default the model's own, but at least float32.
        """
        module = eager(model)
        cfg = module.cfg
        dtype = dtype or torch.promote_types(module.W_E.dtype, torch.float32)
        return cls(
            W_E=module.W_E.to(dtype),
            W_pos=module.W_pos.to(dtype),
            layers=tuple(layer_of(module, i, dtype=dtype) for i in range(cfg.n_layers)),
            norm_final=norm_of(module, getattr(module, "ln_final", None), dtype=dtype),
            W_U=module.W_U.to(dtype).mT,
            b_U=module.b_U.to(dtype),
            n_heads=cfg.n_heads,
            scale=cfg.d_head**0.5,
            causal=cfg.attention_dir == "causal",
        )

    @property
    def n_layers(self) -> int:
        """The number of layers."""
        return len(self.layers)

    def check(self, tokens: Int[Tensor, "*batch position"]) -> None:
        """Refuse tokens that do not fit the model.

        Raises:
            InterventionError: If they are too long, or outside the vocabulary.
        """
        n_ctx, d_vocab = len(self.W_pos), len(self.W_E)
        if tokens.shape[-1] > n_ctx:
            raise InterventionError(
                f"The length of `tokens` (={tokens.shape[-1]}) must be at most `n_ctx` (={n_ctx})."
            )
        if tokens.numel() and (int(tokens.min()) < 0 or int(tokens.max()) >= d_vocab):
            raise InterventionError(
                f"`tokens` must be from 0 to `d_vocab` - 1 (={d_vocab - 1}); "
                f"got {int(tokens.min())} to {int(tokens.max())}."
            )

    def embed(
        self, tokens: Int[Tensor, "*batch position"]
    ) -> Float[Tensor, "*batch position d_model"]:
        """The residual stream before the first layer."""
        return F.embedding(tokens, self.W_E) + self.W_pos[: tokens.shape[-1]]

    def score(
        self,
        layer: int,
        x: Float[Tensor, "*batch position d_model"],
        *,
        row: Rows = None,
    ) -> Float[Tensor, "*batch head row position"]:
        """q . k / sqrt(d_head) of a layer on its normalised input; `row` asks for some queries."""
        at = self.layers[layer]
        if not isinstance(row, int):
            asked = x if row is None else x[..., row, :]
            q = self._heads(F.linear(asked, at.W_Q, at.b_Q))
            k = self._heads(F.linear(x, at.W_K, at.b_K))
            return torch.einsum("...qhd,...khd->...hqk", q, k) / self.scale
        # One query: carry it back through W_K rather than computing every key.
        q = self._heads(F.linear(x[..., row, :], at.W_Q, at.b_Q))
        back = self._per_head(q, self._heads(at.W_K, 0))
        constant = (q * self._heads(at.b_K)).sum(-1, keepdim=True)
        return ((back @ x.mT + constant) / self.scale).unsqueeze(-2)

    def weigh(
        self, scores: Float[Tensor, "*batch head row position"], *, row: Rows = None
    ) -> Float[Tensor, "*batch head row position"]:
        """The attention pattern that scores make; `row` says which queries, if not all."""
        n_positions = scores.shape[-1]
        if self.causal and not (isinstance(row, int) and row + 1 == n_positions):
            positions = torch.arange(n_positions, device=scores.device)
            later = positions > positions[run_of(row)][:, None]
            scores = scores.masked_fill(later, -torch.inf)
        return scores.softmax(-1)

    def attend(
        self,
        layer: int,
        x: Float[Tensor, "*batch position d_model"],
        *,
        row: Rows = None,
    ) -> Float[Tensor, "*batch head row position"]:
        """The attention pattern of a layer on its normalised input; `row` asks for some queries."""
        return self.weigh(self.score(layer, x, row=row), row=row)

    def values(
        self, layer: int, x: Float[Tensor, "*batch position d_model"]
    ) -> Float[Tensor, "*batch position head d_head"]:
        """v, what each head moves from each position, before W_O."""
        at = self.layers[layer]
        return self._heads(F.linear(x, at.W_V, at.b_V))

    def mix(
        self,
        layer: int,
        pattern: Float[Tensor, "*batch head row position"],
        x: Float[Tensor, "*batch position d_model"],
    ) -> Float[Tensor, "*batch row head d_head"]:
        """z, each head's values weighted by its pattern, before W_O."""
        if pattern.shape[-2] > 1:
            return self.mix_values(pattern, self.values(layer, x))
        # One query: weigh the inputs first, so that W_V acts once and not at every position.
        at, weights = self.layers[layer], pattern.squeeze(-2)
        z = self._per_head(weights @ x, self._heads(at.W_V, 0).mT)
        return (z + weights.sum(-1, keepdim=True) * self._heads(at.b_V)).unsqueeze(-3)

    @staticmethod
    def mix_values(
        pattern: Float[Tensor, "*batch head row position"],
        v: Float[Tensor, "*batch position head d_head"],
    ) -> Float[Tensor, "*batch row head d_head"]:
        """z from values that are given."""
        return torch.einsum("...hqk,...khd->...qhd", pattern, v)

    def _heads(self, tensor: Float[Tensor, "..."], axis: int = -1) -> Float[Tensor, "..."]:
        return tensor.unflatten(axis, (self.n_heads, -1))

    @staticmethod
    def _per_head(
        tensor: Float[Tensor, "*batch head inner"], matrices: Float[Tensor, "head inner outer"]
    ) -> Float[Tensor, "*batch head outer"]:
        """Each head times its own matrix."""
        heads = zip(tensor.unbind(-2), matrices, strict=True)
        return torch.stack([part @ matrix for part, matrix in heads], dim=-2)

    def write(
        self, layer: int, z: Float[Tensor, "*batch row head d_head"]
    ) -> Float[Tensor, "*batch row d_model"]:
        """What the heads of a layer add to the residual stream, b_O included."""
        at = self.layers[layer]
        return F.linear(z.flatten(-2), at.W_O, at.b_O)

    def mlp(
        self, layer: int, resid_mid: Float[Tensor, "*batch row d_model"]
    ) -> Float[Tensor, "*batch row d_model"]:
        """What the MLP of a layer adds to the residual stream, its bias included."""
        at = self.layers[layer]
        hidden = at.activation(F.linear(at.norm2(resid_mid), at.W_in, at.b_in))
        return F.linear(hidden, at.W_out, at.b_out)

    def logits(
        self, resid: Float[Tensor, "*batch row d_model"]
    ) -> Float[Tensor, "*batch row class"]:
        """The logits from the residual stream after the last layer."""
        return F.linear(self.norm_final(resid), self.W_U, self.b_U)

    def stages(
        self, tokens: Int[Tensor, "*batch position"], *, row: Rows = None
    ) -> Iterator[Stage]:
        """The activations of every layer in turn.

        Args:
            tokens: The sequences.
            row: The position or positions for which alone the last layer is computed; None for all.
        """
        return self.stages_from(self.embed(tokens), 0, row=row)

    def stages_from(
        self,
        resid: Float[Tensor, "*batch position d_model"],
        first: int,
        *,
        row: Rows = None,
    ) -> Iterator[Stage]:
        """As `stages`, going on from the residual stream before the layer `first`."""
        for layer in range(first, self.n_layers):
            asked = row if layer == self.n_layers - 1 else None
            x = self.layers[layer].norm1(resid)
            scores = self.score(layer, x, row=asked)
            pattern = self.weigh(scores, row=asked)
            z = self.mix(layer, pattern, x)
            kept = resid if asked is None else resid[..., run_of(asked), :]
            mid = kept + self.write(layer, z)
            stage = Stage(resid, x, scores, pattern, z, mid, self.mlp(layer, mid))
            resid = stage.resid_post
            yield stage


def run_of(row: Rows) -> slice:
    """The computed positions as a slice."""
    if row is None:
        return slice(None)
    return slice(row, row + 1) if isinstance(row, int) else row


def rows_of(position: int | slice, length: int) -> int | slice:
    """As `row_of`, also for a run of positions, whose ends are counted from the start.

    Raises:
        InterventionError: If the sequence has no such position, or the run leaves some out.
    """
    if isinstance(position, int):
        return row_of(position, length)
    start, stop, step = position.indices(length)
    if step != 1 or stop <= start:
        raise InterventionError(
            f"`position` must be a run of the {length} positions, with at least one and none left "
            f"out; got {position}."
        )
    return slice(start, stop)


def row_of(position: int, length: int) -> int:
    """The index of a read position that may count from the end.

    Raises:
        InterventionError: If the sequence has no such position.
    """
    if not -length <= position < length:
        raise InterventionError(f"`position` must be in [-{length}, {length - 1}]; got {position}.")
    return position % length


def read_logits_pruned(
    model: nn.Module | StagedModel, tokens: Int[Tensor, "example position"], *, position: int = -1
) -> Float[Tensor, "example class"]:
    """The model's logits at one position, with the last layer computed there alone.

    Differentiable, so that a training step can use it in the model's place. Hooks do not act.

    Args:
        model: The model, or its layout when it is read more than once.
        tokens: The sequences.
        position: Where the logits are read; negative counts from the end.
    """
    staged = model if isinstance(model, StagedModel) else StagedModel.of(model)
    *_, last = staged.stages(tokens, row=row_of(position, tokens.shape[-1]))
    return staged.logits(last.resid_post)[..., 0, :]


class ReadPosition(nn.Module):
    """`read_logits_pruned` as a module, so that `functional_call` can give it weights."""

    def __init__(self, model: nn.Module, position: int) -> None:
        super().__init__()
        self.model = model
        self.position = position

    def forward(self, tokens: Int[Tensor, "example position"]) -> Float[Tensor, "example class"]:
        """The logits at the read position, from whatever weights the model holds when called."""
        return read_logits_pruned(self.model, tokens, position=self.position)
