"""Reading a model: the right numbers, in any precision, and the model as it was afterwards."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from plain_transformer import plain_forward
from small_models import (
    LENGTH,
    NORMALIZATIONS,
    random_model,
    random_tokens,
    random_weights,
    small_spec,
)

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.models.build import load_weights
from interp_shortcuts.models.forward import (
    read_attention,
    read_logits,
    read_logits_from,
    read_site,
)
from interp_shortcuts.models.hooks import reading


def state_of(model):
    return {
        "training": {name: part.training for name, part in model.named_modules()},
        "parameters": {name: id(p) for name, p in model.named_parameters()},
        "values": {name: p.detach().clone() for name, p in model.named_parameters()},
        "requires_grad": {name: p.requires_grad for name, p in model.named_parameters()},
        "hooks": {
            name: (list(point._forward_hooks), len(point.fwd_hooks))
            for name, point in model.hook_dict.items()
        },
        "dtype": model.cfg.dtype,
        "rng": torch.get_rng_state(),
        "grad": torch.is_grad_enabled(),
    }


def assert_unchanged(model, before):
    after = state_of(model)
    for key in before:
        if key == "values":
            assert all(torch.equal(after[key][n], before[key][n]) for n in before[key])
        elif key == "rng":
            assert torch.equal(after[key], before[key])
        else:
            assert after[key] == before[key], key


@pytest.mark.parametrize("attention", ["causal", "bidirectional"])
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_a_reading_is_the_models_own_cache(normalization, attention):
    model = random_model(small_spec(normalization=normalization, attention=attention))
    tokens = random_tokens(9)
    logits, cache = model.run_with_cache(tokens)
    found = read_attention(model, tokens, chunk=4)
    torch.testing.assert_close(found.logits, logits[:, -1].detach())
    torch.testing.assert_close(read_logits(model, tokens, chunk=2), logits[:, -1].detach())
    for layer in range(2):
        pattern = cache[f"blocks.{layer}.attn.hook_pattern"][:, :, -1].detach()
        scores = cache[f"blocks.{layer}.attn.hook_attn_scores"][:, :, -1].detach()
        torch.testing.assert_close(found.attention[:, layer], pattern)
        torch.testing.assert_close(found.scores[:, layer], scores)


@pytest.mark.parametrize("attention", ["causal", "bidirectional"])
def test_scores_are_the_plain_ones_at_any_position(attention):
    spec = small_spec(normalization="LN", attention=attention)
    model, tokens = random_model(spec), random_tokens(3)
    for position in (1, -1):
        found = read_attention(model, tokens, position=position)
        for index, example in enumerate(tokens.tolist()):
            logits, scores = plain_forward(random_weights(spec), spec, example)
            np.testing.assert_allclose(found.logits[index], logits[position], atol=1e-5)
            np.testing.assert_allclose(
                found.scores[index], scores[:, :, position], atol=1e-5, equal_nan=True
            )


def test_keys_that_the_mask_hides_are_nan():
    found = read_attention(random_model(small_spec()), random_tokens(), position=1)
    assert found.scores[..., :2].isfinite().all()
    assert found.scores[..., 2:].isnan().all()
    assert (found.attention[..., 2:] == 0).all()


def test_the_pass_goes_on_from_any_layer():
    model, tokens = random_model(small_spec(normalization="LN")), random_tokens(9)
    expected = read_logits(model, tokens)
    for layer in range(2):
        residual = read_site(model, tokens, "resid_pre", layer, chunk=4)
        assert residual.shape == (9, LENGTH + 1, 8)
        torch.testing.assert_close(read_logits_from(model, residual, layer=layer), expected)
    final = read_site(model, tokens, "resid_post", 1)
    torch.testing.assert_close(read_logits_from(model, final, layer=2, chunk=2), expected)


def test_no_examples_give_empty_readings():
    model, none = random_model(small_spec()), random_tokens(0)
    found = read_attention(model, none)
    assert found.logits.shape == (0, 3)
    assert found.attention.shape == found.scores.shape == (0, 2, 2, 5)
    assert read_logits(model, none).shape == (0, 3)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_read_in_float32(dtype, normalization):
    """The same numbers as of a float32 model that holds the rounded weights."""
    spec = small_spec(normalization=normalization)
    rounded = {name: t.to(dtype) for name, t in random_weights(spec).items()}
    reference, half = random_model(spec), random_model(spec)
    load_weights(reference, rounded)
    half.to(dtype)
    half.cfg.dtype = dtype
    before = state_of(half)
    found, expected = (read_attention(model, random_tokens()) for model in (half, reference))
    for name in ("logits", "attention", "scores"):
        assert getattr(found, name).dtype == torch.float32
        assert torch.equal(getattr(found, name), getattr(expected, name))
    residual = read_site(half, random_tokens(), "resid_pre", 1)
    assert torch.equal(read_logits_from(half, residual, layer=1), expected.logits)
    assert_unchanged(half, before)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_double_precision_stays(normalization):
    spec = small_spec(normalization=normalization)
    model = random_model(spec).double()
    found = read_attention(model, random_tokens(2))
    assert found.logits.dtype == found.scores.dtype == torch.float64
    logits, _ = plain_forward(random_weights(spec), spec, random_tokens(2)[0].tolist())
    np.testing.assert_allclose(found.logits[0], logits[-1], rtol=1e-10)


def test_autocast_around_a_reading_has_no_effect():
    model, tokens = random_model(small_spec()), random_tokens()
    expected = read_attention(model, tokens)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = read_attention(model, tokens)
        assert torch.is_autocast_enabled("cpu")
    assert torch.equal(found.logits, expected.logits)
    assert torch.equal(found.scores, expected.scores)


def test_the_users_hooks_act_and_stay():
    model, tokens = random_model(small_spec()), random_tokens()
    plain = read_attention(model, tokens)
    seen = []

    def halve(activation, hook):
        seen.append(hook.name)
        return activation / 2

    model.blocks[0].attn.hook_q.add_hook(halve)
    before = state_of(model)
    found = read_attention(model, tokens)
    assert seen == ["blocks.0.attn.hook_q"]
    torch.testing.assert_close(found.scores[:, 0], plain.scores[:, 0] / 2)
    assert not torch.allclose(found.logits, plain.logits)
    assert_unchanged(model, before)


def test_a_hook_that_edits_in_place_does_not_reach_what_was_read():
    model, tokens = random_model(small_spec()), random_tokens()
    expected = read_attention(model, tokens).scores[:, 0]
    kept = []

    def spoil(activation, hook):
        kept.pop().zero_()

    model.blocks[0].attn.hook_k.add_hook(lambda activation, hook: kept.append(activation))
    model.blocks[0].attn.hook_z.add_hook(spoil)
    torch.testing.assert_close(read_attention(model, tokens).scores[:, 0], expected)


def mixed_model():
    """A mode and a `requires_grad` that differ from part to part."""
    model = random_model(small_spec())
    model.train()
    model.blocks[0].eval()
    model.embed.W_E.requires_grad_(False)
    model.blocks[1].attn.hook_z.add_hook(lambda activation, hook: None)
    return model


def test_the_model_is_as_it_was():
    model = mixed_model()
    before = state_of(model)
    read_attention(model, random_tokens())
    read_logits(model, random_tokens())
    read_site(model, random_tokens(), "z", 0)
    assert_unchanged(model, before)
    assert before["training"][""]


def test_the_model_is_as_it_was_after_an_exception():
    model = mixed_model()

    def fail(activation, hook):
        torch.rand(3)
        raise RuntimeError("stop")

    model.blocks[1].attn.hook_pattern.add_hook(fail)
    before = state_of(model)
    for read in (read_attention, read_logits):
        with pytest.raises(RuntimeError, match="stop"):
            read(model, random_tokens())
        assert_unchanged(model, before)


def test_inside_a_reading():
    model = mixed_model()
    before = state_of(model)
    with reading(model) as module:
        assert module is model
        assert not any(part.training for part in module.modules())
        assert not torch.is_grad_enabled()
    assert_unchanged(model, before)


def test_random_hooks_leave_the_global_stream():
    model = random_model(small_spec())
    model.hook_embed.add_hook(lambda activation, hook: activation + torch.randn_like(activation))
    before = torch.get_rng_state()
    read_logits(model, random_tokens())
    assert torch.equal(torch.get_rng_state(), before)


def test_readings_carry_no_graph():
    found = read_attention(random_model(small_spec()), random_tokens())
    assert not found.logits.requires_grad
    assert not found.attention.requires_grad


@pytest.mark.parametrize("in_place", [False, True])
def test_compiled_models_are_read_eagerly(in_place):
    model, tokens = random_model(small_spec()), random_tokens()
    expected = read_attention(model, tokens)
    if in_place:
        model.compile(backend="eager")
        compiled = model
    else:
        compiled = torch.compile(model, backend="eager")
    before = model._compiled_call_impl
    found = read_attention(compiled, tokens)
    assert torch.equal(found.attention, expected.attention)
    assert torch.equal(read_logits(compiled, tokens), expected.logits)
    assert model._compiled_call_impl is before


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda model: read_logits(model, random_tokens(length=5)),
            "The length of `tokens` (=6) must be at most `n_ctx` (=5).",
        ),
        (
            lambda model: read_logits(model, random_tokens() + 1),
            "`tokens` must be from 0 to `d_vocab` - 1 (=6); got 1 to 7.",
        ),
        (
            lambda model: read_attention(model, random_tokens(), position=5),
            "`position` (=5) must be within the length of `tokens` (=5).",
        ),
        (
            lambda model: read_attention(model, random_tokens(), chunk=0),
            "`chunk` (=0) must be at least 1.",
        ),
        (
            lambda model: read_logits_from(model, torch.zeros(1, 5, 8), layer=3),
            "`layer` (=3) must be from 0 to `n_layers` (=2).",
        ),
    ],
)
def test_errors(call, text):
    with pytest.raises(MeasureError) as caught:
        call(random_model(small_spec()))
    assert str(caught.value) == text
