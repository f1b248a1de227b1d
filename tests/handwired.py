"""Models whose weights are set by hand, so that every measure of them is known beforehand.

Encoding. Token v has a pair of coordinates of its own, (+a, -a), and 0 elsewhere, so that any
function of the token can be read off exactly; class c has a pair of its own which only heads write
to and only the unembedding reads. Positions, MLPs and all heads but one are zero. Every embedding
has mean 0 and the same norm, chosen so that LayerNorm and RMSNorm (variance + eps = 1) leave it as
it is, up to rounding: an answer holds with every normalisation, and in layer 0 as in layer 1,
where nothing was written before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from interp_shortcuts.models.build import build
from interp_shortcuts.models.spec import ModelSpec

N_HEADS = 2
BIAS = 0.5


def hand_spec(
    *,
    n_integers: int = 10,
    length: int = 4,
    n_classes: int = 2,
    normalization: str = "none",
    attention: str = "causal",
    n_layers: int = 2,
) -> ModelSpec:
    """The spec that the hand-wired models share: 2 layers, 2 heads, a pair for each token."""
    return ModelSpec(
        n_layers=n_layers,
        n_heads=N_HEADS,
        d_model=2 * N_HEADS * -(-(n_integers + 1 + n_classes) // N_HEADS),
        d_mlp=4,
        normalization=normalization,  # pyright: ignore[reportArgumentType]
        attention=attention,  # pyright: ignore[reportArgumentType]
        d_vocab=n_integers + 1,
        d_vocab_out=n_classes,
        n_ctx=length + 1,
    )


def one_head(
    *,
    scores: Sequence[float] | np.ndarray,
    writes: np.ndarray,
    spec: ModelSpec,
    layer: int = 0,
    head: int = 0,
) -> nn.Module:
    """A model in which a single head does anything.

    Args:
        scores: Attention score from "=" to each token, after division by sqrt(d_head);
            [token], "=" last.
        writes: What attending to a token adds to each logit, [token class], before the final
            normalisation; b_U is 0.
        spec: From `hand_spec`.
        layer: The head's layer.
        head: The head.
    """
    model = build(spec)
    size = embedding_size(spec)
    weights = dict(model.named_parameters())
    with torch.no_grad():
        for token in range(spec.d_vocab):
            weights["embed.W_E"][token, 2 * token] = size
            weights["embed.W_E"][token, 2 * token + 1] = -size
        attention = f"blocks.{layer}.attn"
        equals = spec.d_vocab - 1
        weights[f"{attention}.W_Q"][head, 2 * equals, 0] = spec.d_head**0.5 / size
        for token in range(spec.d_vocab):
            weights[f"{attention}.W_K"][head, 2 * token, 0] = float(scores[token]) / size
            for label in range(spec.d_vocab_out):
                value = float(writes[token, label]) / size
                weights[f"{attention}.W_V"][head, 2 * token, label] = value
        for label in range(spec.d_vocab_out):
            plus = 2 * (spec.d_vocab + label)
            weights[f"{attention}.W_O"][head, label, plus] = 1.0
            weights[f"{attention}.W_O"][head, label, plus + 1] = -1.0
            weights["unembed.W_U"][plus, label] = 0.5
            weights["unembed.W_U"][plus + 1, label] = -0.5
    return model


def embedding_size(spec: ModelSpec) -> float:
    """a, with 2 a**2 / d_model + eps = 1."""
    return float(np.sqrt(spec.d_model * (1 - spec.eps) / 2))


def class_writes(spec: ModelSpec, *, strength: float = 1.0) -> np.ndarray:
    """`strength` on the logit of v mod C, nothing for "="; [token class]."""
    n_integers = spec.d_vocab - 1
    writes = np.zeros((spec.d_vocab, spec.d_vocab_out))
    writes[np.arange(n_integers), np.arange(n_integers) % spec.d_vocab_out] = strength
    return writes


def max_head_model(gain: float = 100.0, *, layer: int = 0, **sizes) -> nn.Module:
    """Head 0 of `layer` attends to the maximum and writes its class: the shortcut max mod C.

    The score of v is gain * v / (V - 1), that of "=" is -gain. Known answers for head 0:
        QK Spearman with magnitude: exactly 1, in weights and in every example whose integers
            are not all equal; undefined in those.
        Attention to the maximum: above 0.99 at the default gain; entropy log k where k
            positions hold the maximum.
        OV: as `parity_writer`.
    The model predicts the shortcut label of max_parity and max_mod3: validation accuracy 1,
    adversarial accuracy 0, shortcut rate 1 on every split.
    """
    spec = hand_spec(**sizes)
    n_integers = spec.d_vocab - 1
    scores = [*(gain * np.arange(n_integers) / (n_integers - 1)), -gain]
    return one_head(scores=scores, writes=class_writes(spec), spec=spec, layer=layer)


def non_monotone_head(gain: float = 1.0, *, layer: int = 0, **sizes) -> nn.Module:
    """Head 0 of `layer` scores v by (v + V/2) mod V, for even V: large v are looked at least.

    Every integer's rank is off by V/2, so the sum of squared rank differences is V**3 / 4 and
    the QK Spearman with magnitude 1 - 6 (V**3 / 4) / (V (V**2 - 1)) = 1 - 1.5 V**2 / (V**2 - 1):
    -0.515 for V = 10. The score itself is gain * ((v + V/2) mod V). It writes nothing.
    """
    spec = hand_spec(**sizes)
    n_integers = spec.d_vocab - 1
    if n_integers % 2:
        raise ValueError(f"`n_integers` (={n_integers}) must be even.")
    scores = [*(gain * ((np.arange(n_integers) + n_integers // 2) % n_integers)), 0.0]
    return one_head(scores=scores, writes=0 * class_writes(spec), spec=spec, layer=layer)


def parity_writer(*, layer: int = 0, leak: float = 0.0, **sizes) -> nn.Module:
    """Head 0 of `layer` looks everywhere alike and writes the class v mod C.

    Known answers for head 0:
        OV class fraction 1. QK Spearman undefined; attention uniform over the keys.
        OV Spearman with parity (C = 2) or residue C: 1, with ceiling 1, since what is written
            has the same ties as the feature.
        With a `leak` in (0, 1), two classes and even V, leak * v / V is added to the logit of
            class 1 and breaks the ties without mixing the classes: rho equals the ceiling
            sqrt(3)/2 * sqrt(V**2 / (V**2 - 1)), 0.870 for V = 10, and rho / ceiling stays 1.
    The logits at "=" are the counts of the classes over n + 1 (before a final norm).
    """
    spec = hand_spec(**sizes)
    n_integers = spec.d_vocab - 1
    writes = class_writes(spec)
    writes[:n_integers, 1] += leak * np.arange(n_integers) / n_integers
    return one_head(scores=np.zeros(spec.d_vocab), writes=writes, spec=spec, layer=layer)


def magnitude_writer(*, layer: int = 0, **sizes) -> nn.Module:
    """Head 0 of `layer` looks everywhere alike and writes v / V to the logit of class 1.

    Known answers for head 0, two classes, even V, against parity:
        OV class fraction 3 / (V**2 - 1): the class means differ by 1, the variance of v is
            (V**2 - 1) / 12. 0.030 for V = 10, below the chance level 1 / (V - 1) = 0.111.
        OV Spearman its square root, 0.174, and rho / ceiling 2 / V.
    """
    spec = hand_spec(**sizes)
    n_integers = spec.d_vocab - 1
    writes = np.zeros((spec.d_vocab, spec.d_vocab_out))
    writes[:n_integers, 1] = np.arange(n_integers) / n_integers
    return one_head(scores=np.zeros(spec.d_vocab), writes=writes, spec=spec, layer=layer)


def constant_head(*, layer: int = 0, **sizes) -> nn.Module:
    """Head 0 of `layer` looks everywhere alike and writes the same vector whatever it sees.

    Its biases b_Q, b_K, b_V are 0.5, so that scores and outputs are constant but not zero: QK
    Spearman, OV Spearman and OV class fraction are undefined, in weights and in every example.
    Attention is uniform over the n + 1 keys, its entropy log(n + 1). The other heads, which do
    nothing at all, have the same answers.
    """
    spec = hand_spec(**sizes)
    silent = np.zeros(spec.d_vocab)
    model = one_head(scores=silent, writes=0 * class_writes(spec), spec=spec, layer=layer)
    weights = dict(model.named_parameters())
    with torch.no_grad():
        weights[f"blocks.{layer}.attn.W_Q"][0] = 0.0
        for name in "QKV":
            weights[f"blocks.{layer}.attn.b_{name}"][0] = BIAS
    return model
