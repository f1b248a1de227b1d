"""A fixed set of sequences, cut into chunks that stay in the cache, and the logits of each.

Made once for sequences that are read again and again, as a training split is at every step. Where
sequences share what the first layer computes (`shared_rows`), it is computed once; otherwise all
but the last layer is computed at every position (`staged`). Either way the logits are the model's
own, differentiable, and hooks do not act.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp_shortcuts.models.build import eager
from interp_shortcuts.models.shared_rows import SharedRows, read_logits_shared, sharing_order
from interp_shortcuts.models.staged import StagedModel, read_logits_pruned

POSITIONS_AT_ONCE = 2**15
"""Positions of the sequences in a chunk: large enough to keep the operations few, small enough
for a chunk's activations to stay in the cache. It is fixed, since sums depend on it by rounding.
"""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some of the sequences."""

    index: Int[Tensor, " sequence"]
    """Which ones."""
    tokens: Int[Tensor, "sequence position"]
    shared: SharedRows | None
    """What they share; None where looking it up would not pay."""


@dataclass(frozen=True, eq=False)
class ChunkedSequences:
    """The sequences in chunks. Make it with `ChunkedSequences.of`."""

    chunks: tuple[Chunk, ...]
    position: int
    n: int

    @classmethod
    def of(
        cls,
        tokens: Int[Tensor, "sequence position"],
        model: nn.Module,
        *,
        position: int = -1,
        share: bool = True,
    ) -> ChunkedSequences:
        """Sort and cut the sequences, for any model of this one's size.

        Args:
            tokens: The sequences, on the model's device.
            model: A HookedTransformer, compiled or not; its weights do not matter.
            position: Where the logits are read; negative counts from the end.
            share: Look for what sequences share. It takes a few steps' time, so it is not worth
                it for sequences that are read once.
        """
        cfg = eager(model).cfg
        at_once = max(1, POSITIONS_AT_ONCE // max(tokens.shape[-1], 1))
        order = sharing_order(tokens) if share else torch.arange(len(tokens), device=tokens.device)

        def chunk(index: Int[Tensor, " sequence"]) -> Chunk:
            part = tokens[index]
            if not share:
                return Chunk(index, part, None)
            shared = SharedRows.of(
                part,
                causal=cfg.attention_dir == "causal",
                n_layers=cfg.n_layers,
                position=position,
            )
            return Chunk(index, part, shared if shared.pays else None)

        cut = order.split(at_once) if len(tokens) else ()
        return cls(tuple(chunk(index) for index in cut), position, len(tokens))

    def logits(
        self, model: nn.Module
    ) -> Iterator[tuple[Int[Tensor, " sequence"], Float[Tensor, "sequence class"]]]:
        """The sequences of each chunk, as indices, and their logits at the read position.

        Each chunk has a graph of its own: go backward through it before asking for the next, and
        its memory is free again.
        """
        for chunk in self.chunks:
            staged = StagedModel.of(model)
            if chunk.shared is None:
                yield chunk.index, read_logits_pruned(staged, chunk.tokens, position=self.position)
            else:
                yield chunk.index, read_logits_shared(staged, chunk.shared)
