"""Logits at the read position of many sequences, without computing the same activation twice.

What the first layer computes at a position depends on the tokens up to it (all tokens, where
attention is bidirectional). Sequences over a small vocabulary share most of their beginnings, so
each distinct beginning, a *row*, is computed once; and since the first layer reads token and
position alone, its queries, keys and values are computed once for each distinct pair of them and
looked up. The layers above are those of `staged`. Logits and gradients are the model's own up to
rounding; hooks do not act.

Which sequences share what is the same at every step of a run on its full batch, and is worked out
once (`SharedRows.of`). Cutting a batch into chunks and adding up gradients is left to training.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from einops import einsum, rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp_shortcuts.models.staged import StagedModel, row_of

PAIR_SCORES_PER_WEIGHT = 4
"""Scores of every pair with every pair are worth it up to so many for each weight looked up."""
WIDEST_PRODUCT = 256
"""Up to so many (pair, head) columns, weighted values are one matrix product; beyond, look-ups."""


@dataclass(frozen=True, eq=False)
class SharedRows:
    """Which activations of the first layer some sequences need, and which of them they share.

    `pair` is a token at a position that occurs; `row` a distinct beginning of a sequence with the
    position that it ends at; `key` the positions that a row attends to.
    """

    pair_token: Int[Tensor, " pair"]
    pair_position: Int[Tensor, " pair"]
    row_pair: Int[Tensor, " row"]
    """The pair that stands at the row's own position."""
    key_pair: Int[Tensor, "row key"]
    """The pair at each position that the row attends to; 0 where `later`."""
    later: Bool[Tensor, "row key"] | None
    """The positions that the causal mask hides from the row; None if there are none."""
    sequence_row: Int[Tensor, "sequence position"]
    """The row of each position of each sequence; of the read position alone, in one layer."""
    read: int
    """The read position, an index into the positions of `sequence_row`."""

    @classmethod
    def of(
        cls,
        tokens: Int[Tensor, "sequence position"],
        *,
        causal: bool,
        n_layers: int,
        position: int = -1,
    ) -> SharedRows:
        """Work out what sequences share; sort them (`sharing_order`) before cutting them up.

        Args:
            tokens: The sequences, at least one.
            causal: Whether a position sees only itself and earlier ones.
            n_layers: Layers of the model; where there is only one, it is needed at the read
                position alone.
            position: Where the logits are read; negative counts from the end.

        Raises:
            InterventionError: If the sequences have no such position.
        """
        read = row_of(position, tokens.shape[-1])
        if causal:
            tokens = tokens[:, : read + 1]  # what comes later is seen by nobody who is asked
        n_positions = tokens.shape[-1]
        positions = torch.arange(n_positions, device=tokens.device)
        n_tokens = int(tokens.max()) + 1
        coded = tokens + positions * n_tokens
        codes, pair = torch.unique(coded, return_inverse=True)
        asked = [read] if n_layers == 1 else range(n_positions)
        sequence, ends, sequence_row = _distinct(pair, asked, causal=causal)
        key_pair = pair[sequence]
        later = positions > ends[:, None] if causal else None
        if later is not None:
            key_pair = key_pair.masked_fill(later, 0)
        return cls(
            pair_token=codes % n_tokens,
            pair_position=codes // n_tokens,
            row_pair=pair[sequence, ends],
            key_pair=key_pair,
            later=later if later is not None and bool(later.any()) else None,
            sequence_row=sequence_row,
            read=0 if n_layers == 1 else read,
        )

    @property
    def n_pairs(self) -> int:
        """Distinct tokens at positions."""
        return len(self.pair_token)

    @property
    def n_rows(self) -> int:
        """Rows that the first layer computes."""
        return len(self.row_pair)

    @property
    def pays(self) -> bool:
        """Whether looking up is worth it, rather than computing every position of every sequence.

        The scores of all pairs with all pairs are a table; it must not outgrow what is looked up.
        """
        return self.n_pairs**2 <= PAIR_SCORES_PER_WEIGHT * self.key_pair.numel()


def sharing_order(tokens: Int[Tensor, "sequence position"]) -> Int[Tensor, " sequence"]:
    """The order in which sequences with the same beginning are neighbours (lexicographic)."""
    order = torch.arange(len(tokens), device=tokens.device)
    for column in reversed(tokens.unbind(-1)):
        order = order[torch.argsort(column[order], stable=True)]
    return order


def read_logits_shared(staged: StagedModel, shared: SharedRows) -> Float[Tensor, "sequence class"]:
    """The logits at the read position; differentiable in the model's parameters.

    Args:
        staged: The model's layout.
        shared: What the sequences share, worked out for this kind of model.
    """
    first = _first_layer(staged, shared)
    if staged.n_layers == 1:
        return staged.logits(F.embedding(shared.sequence_row[:, 0], first))
    resid = F.embedding(shared.sequence_row, first)
    *_, last = staged.stages_from(resid, 1, row=shared.read)
    return staged.logits(last.resid_post)[..., 0, :]


def _first_layer(staged: StagedModel, shared: SharedRows) -> Float[Tensor, "row d_model"]:
    """The residual stream after the first layer, at every row."""
    at = staged.layers[0]
    embedded = F.embedding(shared.pair_token, staged.W_E) + F.embedding(
        shared.pair_position, staged.W_pos
    )
    x = at.norm1(embedded)
    q, k, v = (
        rearrange(F.linear(x, W, b), "pair (head d_head) -> pair head d_head", head=staged.n_heads)
        for W, b in ((at.W_Q, at.b_Q), (at.W_K, at.b_K), (at.W_V, at.b_V))
    )
    written = einsum(
        v,
        rearrange(at.W_O, "d_model (head d_head) -> head d_head d_model", head=staged.n_heads),
        "pair head d_head, head d_head d_model -> pair head d_model",
    )
    attended = _attended(_weights(q, k, staged.scale, shared), written, shared)
    mid = F.embedding(shared.row_pair, embedded + at.b_O) + attended
    return mid + staged.mlp(0, mid)


def _weights(
    q: Float[Tensor, "pair head d_head"],
    k: Float[Tensor, "pair head d_head"],
    scale: float,
    shared: SharedRows,
) -> Float[Tensor, "row key head"]:
    """The attention weights of every row."""
    table = einsum(q, k, "query head d_head, key head d_head -> query key head") / scale
    looked_up = shared.row_pair[:, None] * shared.n_pairs + shared.key_pair
    scores = F.embedding(looked_up, table.flatten(0, 1))
    if shared.later is not None:
        scores = scores.masked_fill(shared.later[:, :, None], -torch.inf)
    return scores.softmax(1)


def _attended(
    weights: Float[Tensor, "row key head"],
    written: Float[Tensor, "pair head d_model"],
    shared: SharedRows,
) -> Float[Tensor, "row d_model"]:
    """What the heads write at every row, b_O apart: the weighted sum of what each pair writes."""
    n_heads = written.shape[1]
    heads = torch.arange(n_heads, device=weights.device)
    column = (shared.key_pair[:, :, None] * n_heads + heads).flatten(1)
    values = rearrange(written, "pair head d_model -> (pair head) d_model")
    if len(values) <= WIDEST_PRODUCT:
        spread = weights.new_zeros(len(column), len(values))
        return spread.scatter_add(1, column, weights.flatten(1)) @ values
    return F.embedding_bag(column, values, mode="sum", per_sample_weights=weights.flatten(1))


def _distinct(
    pair: Int[Tensor, "sequence position"], asked: list[int] | range, *, causal: bool
) -> tuple[Int[Tensor, " row"], Int[Tensor, " row"], Int[Tensor, "sequence asked"]]:
    """A sequence and the position of each row, and the row of each asked position.

    Where attention is causal, positions are the same row if all pairs up to them are; otherwise if
    they are the same position of the same whole sequence.
    """
    code = torch.zeros(len(pair), dtype=torch.int64, device=pair.device)
    n_pairs = int(pair.max()) + 1
    beginnings = []
    for column in pair.unbind(-1):
        _, code = torch.unique(code * n_pairs + column, return_inverse=True)
        beginnings.append(code)
    sequences, ends, rows = [], [], []
    n_rows = 0
    for position in asked:
        code = beginnings[position if causal else -1]
        n_codes = int(code.max()) + 1
        example = code.new_zeros(n_codes)  # any sequence of those that are the same up to here
        example[code] = torch.arange(len(code), device=code.device)
        sequences.append(example)
        ends.append(torch.full_like(example, position))
        rows.append(code + n_rows)
        n_rows += n_codes
    return torch.cat(sequences), torch.cat(ends), torch.stack(rows, dim=1)
