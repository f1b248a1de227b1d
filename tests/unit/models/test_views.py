"""Weight views against the model's own activations and against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from plain_transformer import normalize
from small_models import (
    LENGTH,
    N_INTEGERS,
    NORMALIZATIONS,
    random_model,
    random_tokens,
    random_weights,
    small_spec,
)

from interp_shortcuts.errors import MeasureError, StorageError
from interp_shortcuts.models.build import load_weights
from interp_shortcuts.models.forward import read_attention, read_site
from interp_shortcuts.models.views import ov_logits, ov_outputs, qk_scores
from interp_shortcuts.models.weights import Weights

AT = {"n_integers": N_INTEGERS, "read_position": LENGTH}


def model_with_one_position(spec, seed=0):
    """All integers stand at the same place: the mean position is then each one's position."""
    model, weights = random_model(spec), random_weights(spec, seed)
    weights["pos_embed.W_pos"][:LENGTH] = weights["pos_embed.W_pos"][0]
    load_weights(model, weights)
    return model


def plain_inputs(w, spec, layer):
    mean = sum(w["pos_embed.W_pos"][p] for p in range(LENGTH)) / LENGTH
    name = f"blocks.{layer}.ln1"
    integers = [
        normalize(w["embed.W_E"][v] + mean, spec.normalization, w, name) for v in range(N_INTEGERS)
    ]
    equals = w["embed.W_E"][N_INTEGERS] + w["pos_embed.W_pos"][LENGTH]
    return integers, normalize(equals, spec.normalization, w, name)


def plain_weights(spec, seed=0):
    return {name: t.double().numpy() for name, t in random_weights(spec, seed).items()}


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_layer_0_scores_are_the_models_own(normalization):
    spec = small_spec(normalization=normalization)
    model = model_with_one_position(spec)
    tokens = random_tokens(20)
    found = qk_scores(Weights.of(model), **AT)[0, 0] / math.sqrt(spec.d_head)
    scores = read_attention(model, tokens).scores[:, 0, :, :LENGTH]
    for head in range(spec.n_heads):
        expected = found[head][tokens[:, :LENGTH]].float()
        torch.testing.assert_close(scores[:, head], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_layer_0_outputs_are_the_models_own(normalization):
    """A sequence of one integer: the attention over it sums to one, apart from "=" itself."""
    spec = small_spec(normalization=normalization, attention="bidirectional")
    model = model_with_one_position(spec)
    tokens = torch.arange(N_INTEGERS)[:, None].expand(-1, LENGTH)  # without "="
    out = read_site(model, tokens, "attn_out", 0)[:, -1]
    found = ov_outputs(Weights.of(model), **AT)[0, 0].sum(0)
    expected = found.float() + model.blocks[0].attn.b_O.detach()
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_views_are_the_plain_loops(normalization):
    spec = small_spec(normalization=normalization)
    w = plain_weights(spec)
    weights = Weights.of(random_model(spec))
    scores, outputs, logits = (
        view(weights, **AT)[0] for view in (qk_scores, ov_outputs, ov_logits)
    )
    for layer in range(spec.n_layers):
        integers, equals = plain_inputs(w, spec, layer)
        W = {
            name: w[f"blocks.{layer}.attn.{name}"]
            for name in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V")
        }
        for head in range(spec.n_heads):
            query = equals @ W["W_Q"][head] + W["b_Q"][head]
            for v, x in enumerate(integers):
                score = query @ (x @ W["W_K"][head] + W["b_K"][head])
                output = (x @ W["W_V"][head] + W["b_V"][head]) @ W["W_O"][head]
                read = output - output.mean() if normalization in ("LN", "LNPre") else output
                read = read * w["ln_final.w"] if normalization in ("LN", "RMS") else read
                assert scores[layer, head, v].item() == pytest.approx(score, rel=1e-6, abs=1e-9)
                np.testing.assert_allclose(outputs[layer, head, v], output, rtol=1e-6, atol=1e-9)
                np.testing.assert_allclose(
                    logits[layer, head, v], read @ w["unembed.W_U"], rtol=1e-6, atol=1e-9
                )


def test_checkpoints_stack_in_order():
    spec = small_spec(normalization="LN")
    states = [random_weights(spec, seed) for seed in range(3)]
    stacked = Weights.stack(states, spec)
    assert stacked.n_checkpoints == 3
    for view in (qk_scores, ov_outputs, ov_logits):
        together = view(stacked, **AT)
        assert together.dtype == torch.float64
        for index, state in enumerate(states):
            alone = view(Weights.stack([state], spec), **AT)[0]
            torch.testing.assert_close(together[index], alone)


def test_the_three_ways_to_weights_agree():
    spec = small_spec(normalization="RMS")
    model = random_model(spec)
    of, stacked = Weights.of(model), Weights.stack([model.state_dict()], spec)
    assert torch.equal(qk_scores(of, **AT), qk_scores(stacked, **AT))


def test_a_larger_vocabulary_with_its_own_equals_token():
    spec = small_spec(d_vocab=12)
    weights = Weights.of(random_model(spec))
    given = qk_scores(weights, **AT, equals_token=9)
    assert given.shape == (1, 2, 2, N_INTEGERS)
    assert not torch.allclose(given, qk_scores(weights, **AT))


def test_gains_are_there_only_where_the_model_has_them():
    assert Weights.of(random_model(small_spec())).attention_gain is None
    rms = Weights.of(random_model(small_spec(normalization="RMS")))
    assert rms.attention_gain is not None
    assert rms.attention_bias is None


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"n_integers": 0}, "`n_integers` (=0) must be at least 1."),
        ({"n_integers": 8}, "`n_integers` (=8) must be at most `d_vocab` (=7)."),
        ({"n_integers": 7}, "`equals_token` (=7) must be below `d_vocab` (=7)."),
        ({"read_position": 5}, "`read_position` (=5) must be below `n_ctx` (=5)."),
        (
            {"read_position": 0},
            "`read_position` (=0) must leave at least one position before it.",
        ),
    ],
)
def test_sizes_that_do_not_fit(changes, text):
    with pytest.raises(MeasureError) as caught:
        qk_scores(Weights.of(random_model(small_spec())), **(AT | changes))
    assert str(caught.value) == text


def test_stacking_refuses_what_is_not_of_the_spec():
    with pytest.raises(MeasureError, match="at least one checkpoint"):
        Weights.stack([], small_spec())
    with pytest.raises(StorageError, match=r"`embed.W_E` must have shape \[7, 8\]; got \[9, 8\]"):
        Weights.stack([random_weights(small_spec(d_vocab=9))], small_spec())
