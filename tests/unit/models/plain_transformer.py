"""A transformer in loops over NumPy float64 vectors: slow, plain, and independent of the library.

It takes TransformerLens's parameter names, and returns the logits and the attention scores of
every position, so that the package's forward pass and views have something to be compared with.
"""

from __future__ import annotations

import math

import numpy as np

EPS = 1e-5


def activate(x, kind):
    erf = np.vectorize(math.erf)
    if kind == "relu":
        return np.maximum(x, 0)
    if kind == "gelu":
        return 0.5 * x * (1 + erf(x / math.sqrt(2)))
    if kind == "gelu_new":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    if kind == "silu":
        return x / (1 + np.exp(-x))
    raise AssertionError(kind)


def normalize(x, kind, weights, name):
    if kind == "none":
        return x
    if kind in ("LN", "LNPre"):
        x = x - x.sum() / len(x)
    x = x / math.sqrt((x * x).sum() / len(x) + EPS)
    if kind in ("LN", "RMS"):
        x = x * weights[f"{name}.w"]
    if kind == "LN":
        x = x + weights[f"{name}.b"]
    return x


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def plain_forward(weights, spec, tokens):
    """Logits [position class] and scores [layer head query key] of one example."""
    w = {name: np.asarray(value, dtype=np.float64) for name, value in weights.items()}
    n = len(tokens)
    resid = [w["embed.W_E"][t] + w["pos_embed.W_pos"][p] for p, t in enumerate(tokens)]
    scores = np.full((spec.n_layers, spec.n_heads, n, n), np.nan)
    for layer in range(spec.n_layers):
        b = f"blocks.{layer}"
        x = [normalize(r, spec.normalization, w, f"{b}.ln1") for r in resid]
        written = [w[f"{b}.attn.b_O"].copy() for _ in range(n)]
        for head in range(spec.n_heads):
            q, k, v = (
                [xi @ w[f"{b}.attn.W_{m}"][head] + w[f"{b}.attn.b_{m}"][head] for xi in x]
                for m in "QKV"
            )
            for i in range(n):
                allowed = range(i + 1) if spec.attention == "causal" else range(n)
                row = np.array([q[i] @ k[j] / math.sqrt(spec.d_head) for j in allowed])
                scores[layer, head, i, : len(row)] = row
                z = sum(a * v[j] for j, a in zip(allowed, softmax(row), strict=True))
                written[i] = written[i] + z @ w[f"{b}.attn.W_O"][head]
        resid = [r + out for r, out in zip(resid, written, strict=True)]
        for i in range(n):
            hidden = normalize(resid[i], spec.normalization, w, f"{b}.ln2")
            hidden = activate(hidden @ w[f"{b}.mlp.W_in"] + w[f"{b}.mlp.b_in"], spec.activation)
            resid[i] = resid[i] + hidden @ w[f"{b}.mlp.W_out"] + w[f"{b}.mlp.b_out"]
    final = [normalize(r, spec.normalization, w, "ln_final") for r in resid]
    logits = np.stack([f @ w["unembed.W_U"] + w["unembed.b_U"] for f in final])
    return logits, scores
