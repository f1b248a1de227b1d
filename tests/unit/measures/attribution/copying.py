"""A task that copies one token, models wired for it by hand, and small random models for sequences.

The copy task has two lengths, both of one integer x: `length_1` is trained, `length_2` held out.
The model reads `x, query` and is scored at the query, where x is due. In the wired models every
token has a coordinate of its own, all heads look at position 0 alone, there is no normalisation,
and what is not mentioned is zero; the bias of the output prefers token 0, which is never due, over
anything weaker than 1.6.
"""

from __future__ import annotations

from types import MappingProxyType

import torch

from interp_shortcuts.models.build import build
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.tasks.sequences import SequenceReversal, SequenceSorting
from interp_shortcuts.tasks.target_split import IGNORED, TargetSplit

N = 4
QUERY = N + 1
N_TOKENS = N + 2


class CopyTask:
    name = "copying"
    n_tokens = n_classes = N_TOKENS
    context = 2
    chance = 1 / N_TOKENS
    fingerprint = "copying"
    train_lengths = (1,)
    heldout_lengths = (2,)

    @property
    def record(self):
        return {"name": self.name}

    @property
    def splits(self):
        return MappingProxyType({name: self.split(name) for name in ("length_1", "length_2")})

    def split(self, name):
        return copies(torch.arange(1, N + 1).repeat(3), name)

    def batch(self, size, generator, length=None):
        return copies(torch.randint(1, N + 1, (size,), generator=generator), "batch")


def copies(integers, name="copies"):
    query = torch.full_like(integers, QUERY)
    due = torch.stack([torch.full_like(integers, IGNORED), integers], 1)
    return TargetSplit(name, torch.stack([integers, query], 1), due)


def wired_model(heads, *, n_layers=1) -> HookedTransformer:
    """Heads that copy, as (gain of W_V, gain of W_O) each, in the first layer."""
    spec = ModelSpec(
        n_layers=n_layers,
        n_heads=len(heads),
        d_model=len(heads) * (N_TOKENS + 2) * 2,
        d_mlp=2,
        d_vocab=N_TOKENS,
        d_vocab_out=N_TOKENS,
        n_ctx=2,
    )
    model = build(spec)
    d_model, d_head = spec.d_model, spec.d_head
    assert d_head >= N_TOKENS + 2
    place = N_TOKENS  # the coordinate that says "position 0"
    out = d_model - N_TOKENS
    with torch.no_grad():
        model.embed.W_E[:] = torch.eye(N_TOKENS, d_model)
        model.pos_embed.W_pos[0, place] = 1.0
        attn = model.blocks[0].attn
        for head, (value, output) in enumerate(heads):
            attn.W_Q[head, QUERY, 0] = 50.0 * d_head**0.5
            attn.W_K[head, place, 0] = 1.0
            attn.W_V[head, :N_TOKENS, :N_TOKENS] = value * torch.eye(N_TOKENS)
            attn.W_O[head, :N_TOKENS, out:] = output * torch.eye(N_TOKENS)
        model.unembed.W_U[out:] = torch.eye(N_TOKENS)
        model.unembed.b_U[0] = 1.6
    return model


SEQUENCES = SequenceReversal(n_integers=6, train_max=4, heldout_max=6, n_per_length=12)
SORTING = SequenceSorting(n_integers=6, train_max=4, heldout_max=6, n_per_length=12)


def random_model(task=SEQUENCES, *, seed=0, size=0.8, dtype=torch.float32, **changes):
    """Every parameter random, so that biases and gains count too."""
    sizes = {"n_heads": 2, "d_model": 8, "d_mlp": 10, "normalization": "LN", "activation": "gelu"}
    spec = ModelSpec(
        **sizes | changes, d_vocab=task.n_tokens, d_vocab_out=task.n_classes, n_ctx=task.context
    )
    model = build(spec)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(size * torch.randn(weight.shape, generator=generator))
    return model.to(dtype, print_details=False)
