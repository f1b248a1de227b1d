"""The attention of a layer read at one position, with the matrices of each head multiplied out.

With one query, W_Q W_K of each head is one matrix and W_V W_O another: fewer and larger products
than head by head. That pays where heads are few, see `Folded.pays`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor

from interp_shortcuts.models.staged import StagedModel


@dataclass(frozen=True, eq=False)
class Folded:
    """One layer's heads, side by side. Make it with `Folded.of`.

    The scores lack what is the same for all keys (the query's product with b_K), which the softmax
    takes out.
    """

    W_QK: Float[Tensor, "head_d_model d_model"]
    b_QK: Float[Tensor, " head_d_model"]
    W_VO: Float[Tensor, "d_model head_d_model"]
    b_VO: Float[Tensor, " d_model"]
    row: int
    causal: bool

    @classmethod
    def of(cls, staged: StagedModel, layer: int, *, row: int) -> Folded:
        """A layer that is read at one row, counted from the start."""
        at, n_heads = staged.layers[layer], staged.n_heads
        q, k, v = (weight.unflatten(0, (n_heads, -1)) for weight in (at.W_Q, at.W_K, at.W_V))
        o = at.W_O.unflatten(1, (n_heads, -1))
        b_q = at.b_Q.unflatten(0, (n_heads, -1))
        return cls(
            W_QK=torch.einsum("hdi,hdj->hji", q, k).flatten(0, 1) / staged.scale,
            b_QK=torch.einsum("hd,hdj->hj", b_q, k).flatten() / staged.scale,
            W_VO=torch.einsum("mhd,hdj->mhj", o, v).flatten(1),
            b_VO=F.linear(at.b_V, at.W_O, at.b_O),
            row=row,
            causal=staged.causal,
        )

    @staticmethod
    def pays(staged: StagedModel) -> bool:
        """Whether the folded matrices have no more numbers than the four they are made of."""
        d_model, width = staged.layers[0].W_Q.shape[1], staged.layers[0].W_Q.shape[0]
        return staged.n_heads * d_model <= 2 * width

    def attend(
        self, x: Float[Tensor, "*batch position d_model"]
    ) -> Float[Tensor, "*batch d_model"]:
        """What the heads add at the row, b_O included, from their normalised input."""
        back = F.linear(x[..., self.row, :], self.W_QK, self.b_QK)
        seen = x[..., : self.row + 1, :] if self.causal else x
        scores = back.unflatten(-1, (-1, x.shape[-1])) @ seen.mT
        weights = (scores - scores.amax(-1, keepdim=True)).exp()
        weights = weights / weights.sum(-1, keepdim=True)
        return F.linear((weights @ seen).flatten(-2), self.W_VO, self.b_VO)
