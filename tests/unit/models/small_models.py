"""Small specs, models whose every parameter matters, and tokens, for the tests of `models`."""

from __future__ import annotations

import torch

from interp_shortcuts.models.build import build, load_weights, parameter_shapes
from interp_shortcuts.models.spec import ModelSpec

NORMALIZATIONS = ("none", "LN", "LNPre", "RMS", "RMSPre")
ACTIVATIONS = ("relu", "gelu", "gelu_new", "silu")
N_INTEGERS, LENGTH = 6, 4


def small_spec(**changes) -> ModelSpec:
    sizes = {"d_model": 8, "d_mlp": 12, "d_vocab": N_INTEGERS + 1, "d_vocab_out": 3, "n_ctx": 5}
    return ModelSpec(**(sizes | changes))


def random_weights(spec, seed=0, size=0.5):
    """Nothing is zero or one: biases and gains count as much as matrices."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: size * torch.randn(shape, generator=generator)
        for name, shape in parameter_shapes(spec).items()
    }


def random_model(spec, seed=0, size=0.5):
    model = build(spec)
    load_weights(model, random_weights(spec, seed, size))
    return model


def random_tokens(n=7, seed=0, length=LENGTH):
    generator = torch.Generator().manual_seed(seed)
    integers = torch.randint(N_INTEGERS, (n, length), generator=generator)
    return torch.cat([integers, torch.full((n, 1), N_INTEGERS)], dim=1)
