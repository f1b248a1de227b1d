"""Gradients of the loss against plain autograd through the model's own forward."""

from __future__ import annotations

import copy

import pytest
import torch
from small_models import NORMALIZATIONS, random_model, random_tokens, small_spec

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.models import differentiate
from interp_shortcuts.models.differentiate import (
    example_gradient_norms,
    logit_gradients,
    mean_gradient,
)

TOKENS = random_tokens(9)
LABELS = torch.arange(9) % 3


def cross_entropy(logits, labels):
    return torch.nn.functional.cross_entropy(logits, labels, reduction="none")


def plain_gradient(model, tokens, labels, position=-1):
    """By name, through the model itself; the loss from logits in float64."""
    values = cross_entropy(model(tokens)[:, position].double(), labels)
    weights = dict(model.named_parameters())
    found = torch.autograd.grad(values.mean(), list(weights.values()), materialize_grads=True)
    return dict(zip(weights, found, strict=True))


def assert_close(found, expected, size=1e-6):
    assert list(found) == list(expected)
    scale = max(float(value.abs().max()) for value in expected.values())
    for name, value in expected.items():
        torch.testing.assert_close(
            found[name].to(value.dtype), value, rtol=size, atol=size * scale, msg=name
        )


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("attention", ["causal", "bidirectional"])
def test_mean_gradient_is_autograds(normalization, attention):
    model = random_model(small_spec(normalization=normalization, attention=attention)).double()
    model.cfg.dtype = torch.float64  # else its normalisations round to float32
    expected = plain_gradient(model, TOKENS, LABELS)
    assert_close(mean_gradient(model, TOKENS, LABELS, cross_entropy), expected)
    in_chunks = mean_gradient(model, TOKENS, LABELS, cross_entropy, chunk=4)
    assert_close(in_chunks, expected, 1e-9)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_example_norms_are_a_loops(normalization, monkeypatch):
    monkeypatch.setattr(differentiate, "NUMBERS_AT_ONCE", 5000)  # several examples, several chunks
    model = random_model(small_spec(normalization=normalization))
    found = example_gradient_norms(model, TOKENS, LABELS, cross_entropy, position=3)
    for i, norm in enumerate(found):
        one = plain_gradient(model, TOKENS[i : i + 1], LABELS[i : i + 1], position=3)
        expected = sum(float(value.double().square().sum()) for value in one.values()) ** 0.5
        assert float(norm) == pytest.approx(expected, rel=1e-5)


def test_the_gradient_of_a_learned_example_keeps_its_digits():
    """p - y is about 1e-9 here, which a softmax in float32 rounds to zero or to 1e-7."""
    model = random_model(small_spec(normalization="none"))
    tokens = TOKENS[:1]
    with torch.no_grad():
        learned = model(tokens)[:, -1].argmax(1)
        model.unembed.b_U[learned] += 20
    exact = plain_gradient(copy.deepcopy(model).double(), tokens, learned)
    found = mean_gradient(model, tokens, learned, cross_entropy)
    assert float(exact["unembed.W_U"].norm()) > 0
    assert_close(found, exact, 1e-4)
    norm = sum(float(value.square().sum()) for value in exact.values()) ** 0.5
    assert float(example_gradient_norms(model, tokens, learned, cross_entropy)) == pytest.approx(
        norm, rel=1e-4
    )


def test_hooks_of_the_user_act():
    model = random_model(small_spec()).double()
    gate = torch.linspace(0, 2, 8, dtype=torch.float64)
    seen = []

    def halve(value, hook):
        seen.append(float(value.detach().sum()))  # looks at a value, which vmap would forbid
        return value * gate

    without = mean_gradient(model, TOKENS, LABELS, cross_entropy)
    model.blocks[0].hook_resid_post.add_hook(halve)
    expected = plain_gradient(model, TOKENS, LABELS)
    found = mean_gradient(model, TOKENS, LABELS, cross_entropy)
    assert_close(found, expected)
    assert not torch.allclose(found["embed.W_E"], without["embed.W_E"])
    norms = example_gradient_norms(model, TOKENS[:2], LABELS[:2], cross_entropy)
    one = plain_gradient(model, TOKENS[1:2], LABELS[1:2])
    assert float(norms[1]) == pytest.approx(
        sum(float(value.square().sum()) for value in one.values()) ** 0.5
    )
    assert seen


def test_frozen_parameters_and_no_grad_and_gradients_that_are_there():
    model = random_model(small_spec())
    expected = mean_gradient(model, TOKENS, LABELS, cross_entropy)
    kept = torch.ones_like(model.unembed.b_U)
    model.unembed.b_U.grad = kept
    model.requires_grad_(False)
    with torch.no_grad():
        assert_close(mean_gradient(model, TOKENS, LABELS, cross_entropy), expected, 0)
    with torch.inference_mode():
        tokens, labels = TOKENS.clone(), LABELS.clone()
        assert_close(mean_gradient(model, tokens, labels, cross_entropy), expected, 0)
        norms = example_gradient_norms(model, tokens, labels, cross_entropy)
        logit_gradients(torch.zeros(9, 3), labels, cross_entropy)
    assert torch.equal(norms, example_gradient_norms(model, TOKENS, LABELS, cross_entropy))
    assert model.unembed.b_U.grad is kept
    assert torch.equal(kept, torch.ones_like(kept))
    assert not any(weight.requires_grad for weight in model.parameters())


def test_logit_gradients_are_probabilities_less_the_label():
    logits = torch.tensor([[0.0, 40.0, 0.0], [1.0, 2.0, 3.0]], dtype=torch.float64)
    labels = torch.tensor([1, 0])
    expected = logits.softmax(1) - torch.eye(3, dtype=torch.float64)[labels]
    found = logit_gradients(logits, labels, cross_entropy)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-15)
    assert not found.requires_grad


def test_no_example():
    model = random_model(small_spec())
    with pytest.raises(MeasureError, match="`tokens` must hold at least one example; got 0"):
        mean_gradient(model, TOKENS[:0], LABELS[:0], cross_entropy)
    assert example_gradient_norms(model, TOKENS[:0], LABELS[:0], cross_entropy).shape == (0,)
