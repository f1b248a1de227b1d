"""A transformer in NumPy loops whose activations are edited by hand, and small models for it.

Slow and independent of the library: each example is run alone in float64, and `edit(site, layer,
array)` may return another array. Shapes: z and v [head position d_head], pattern [head query key],
mlp_out, resid_pre and resid_post [position d_model]. Only ReLU and no normalisation or LayerNorm.
"""

from __future__ import annotations

import numpy as np
import torch

from interp_shortcuts.models.build import build, load_weights, parameter_shapes, weights_of
from interp_shortcuts.models.spec import ModelSpec

N_INTEGERS, LENGTH = 6, 4


def small_model(*, dtype=torch.float32, **changes):
    """Two layers, three heads, every parameter random."""
    sizes = {"n_heads": 3, "d_model": 12, "d_mlp": 10, "d_vocab": N_INTEGERS + 1}
    spec = ModelSpec(**(sizes | {"d_vocab_out": 3, "n_ctx": LENGTH + 1} | changes))
    generator = torch.Generator().manual_seed(0)
    model = build(spec)
    weights = {
        name: 0.35 * torch.randn(shape, generator=generator)
        for name, shape in parameter_shapes(spec).items()
    }
    load_weights(model, weights)
    return model.to(dtype, print_details=False)


def small_tokens(n=7, seed=0):
    generator = torch.Generator().manual_seed(seed)
    integers = torch.randint(N_INTEGERS, (n, LENGTH), generator=generator)
    return torch.cat([integers, torch.full((n, 1), N_INTEGERS)], dim=1)


def edited_logits(model, tokens, edit=lambda site, layer, array: array):
    """Logits [example position class]."""
    spec = ModelSpec.from_model(model)
    w = {name: value.double().numpy() for name, value in weights_of(model).items()}
    return torch.tensor(np.stack([_forward(w, spec, row.tolist(), edit) for row in tokens]))


def recorded(model, tokens):
    """The unedited activations by (site, layer), each with the examples first."""
    found: dict[tuple[str, int], list] = {}

    def keep(site, layer, array):
        found.setdefault((site, layer), []).append(array.copy())
        return array

    edited_logits(model, tokens, keep)
    return {place: np.stack(arrays) for place, arrays in found.items()}


def _norm(x, spec, w, name):
    if spec.normalization == "none":
        return x
    assert spec.normalization == "LN"
    x = x - x.mean()
    return x / np.sqrt((x * x).mean() + spec.eps) * w[f"{name}.w"] + w[f"{name}.b"]


def _forward(w, spec, tokens, edit):
    n = len(tokens)
    resid = np.stack([w["embed.W_E"][t] + w["pos_embed.W_pos"][p] for p, t in enumerate(tokens)])
    for layer in range(spec.n_layers):
        block, attn = f"blocks.{layer}", f"blocks.{layer}.attn"
        resid = edit("resid_pre", layer, resid.copy())
        x = [_norm(row, spec, w, f"{block}.ln1") for row in resid]
        v = np.zeros((spec.n_heads, n, spec.d_head))
        pattern = np.zeros((spec.n_heads, n, n))
        for h in range(spec.n_heads):
            for i in range(n):
                v[h, i] = x[i] @ w[f"{attn}.W_V"][h] + w[f"{attn}.b_V"][h]
                q = x[i] @ w[f"{attn}.W_Q"][h] + w[f"{attn}.b_Q"][h]
                allowed = range(i + 1) if spec.attention == "causal" else range(n)
                keys = [x[j] @ w[f"{attn}.W_K"][h] + w[f"{attn}.b_K"][h] for j in allowed]
                weights = np.exp([q @ k / np.sqrt(spec.d_head) for k in keys])
                pattern[h, i, : len(weights)] = weights / weights.sum()
        v, pattern = edit("v", layer, v), edit("pattern", layer, pattern)
        z = np.zeros((spec.n_heads, n, spec.d_head))
        for h in range(spec.n_heads):
            for i in range(n):
                z[h, i] = sum(pattern[h, i, j] * v[h, j] for j in range(n))
        z = edit("z", layer, z)
        mid, out = np.zeros_like(resid), np.zeros_like(resid)
        for i in range(n):
            heads = [z[h, i] @ w[f"{attn}.W_O"][h] for h in range(spec.n_heads)]
            mid[i] = resid[i] + sum(heads) + w[f"{attn}.b_O"]
            hidden = _norm(mid[i], spec, w, f"{block}.ln2") @ w[f"{block}.mlp.W_in"]
            hidden = np.maximum(hidden + w[f"{block}.mlp.b_in"], 0)
            out[i] = hidden @ w[f"{block}.mlp.W_out"] + w[f"{block}.mlp.b_out"]
        resid = edit("resid_post", layer, mid + edit("mlp_out", layer, out))
    final = [_norm(row, spec, w, "ln_final") for row in resid]
    return np.stack([row @ w["unembed.W_U"] + w["unembed.b_U"] for row in final])
