"""The filtered unembedding of a transformer, against models with another unembedding."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.interventions.spectral import filter_unembedding
from interp_shortcuts.measures.modular.noise_groups import NoiseGroups
from interp_shortcuts.measures.modular.unembedding_filter import UnembeddingFilter, filtered_logits
from interp_shortcuts.models.build import build
from interp_shortcuts.models.forward import read_logits
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.tasks.noisy_task import NOISE_GROUPS


def transformer(n, *, seed=0, **changes):
    sizes = {"n_layers": 1, "n_heads": 2, "d_model": 8, "d_mlp": 16}
    model = build(ModelSpec(**{**sizes, **changes}, d_vocab=n, d_vocab_out=n, n_ctx=2), seed=seed)
    with torch.no_grad():
        model.unembed.b_U.copy_(torch.randn(n, generator=torch.Generator().manual_seed(seed)))
    return model


@pytest.mark.parametrize("normalization", ["none", "LN"])
@pytest.mark.parametrize(("arithmetic", "n"), [("add", 11), ("subtract", 12), ("multiply", 13)])
def test_a_slow_reference(arithmetic, n, normalization):
    task = ModularArithmetic(arithmetic=arithmetic, modulus=n, noise=0.3)
    model = transformer(n, normalization=normalization)
    found = UnembeddingFilter((1, 2, 5))(model, task)
    for keep in ("dominant", "rest"):
        for k in (1, 2, 5):
            other = filter_unembedding(model, k, keep=keep, arithmetic=arithmetic)
            kept = filtered_logits(
                model, read_logits(model, task.pairs.tokens), k, arithmetic=arithmetic
            )
            expected = read_logits(other, task.pairs.tokens).double()
            if keep == "dominant":
                torch.testing.assert_close(kept, expected, rtol=1e-4, atol=1e-5)
            for group in NOISE_GROUPS:
                split = task.split(group)
                right = task.correct(read_logits(other, split.tokens), split.labels)
                got = float(found.unembedding_accuracy.sel(keep=keep, k=k, group=group))
                assert got == pytest.approx(float(right.double().mean()))


def test_an_unembedding_of_two_frequencies():
    """W_U holds 3 and 5 alone, 5 the more of it: with both it is the model, less b_U."""
    n, task = 11, ModularArithmetic(modulus=11)
    model = transformer(n)
    places = 2 * torch.pi * torch.arange(n) / n
    with torch.no_grad():
        model.unembed.W_U.copy_(
            torch.stack(
                [(3 * places + row).cos() + 2 * (5 * places - row).cos() for row in range(8)]
            )
        )
        model.unembed.b_U.zero_()
    found = UnembeddingFilter((1, 2))(model, task)
    whole = NoiseGroups()(model, task).group_accuracy
    np.testing.assert_array_equal(found.unembedding_accuracy.sel(keep="dominant", k=2), whole)
    logits = read_logits(model, task.pairs.tokens)
    torch.testing.assert_close(
        filtered_logits(model, logits, 2, arithmetic="add"), logits.double(), atol=1e-5, rtol=1e-5
    )
    five = torch.stack([(5 * places).cos(), (5 * places).sin()]).double()
    alone = filtered_logits(model, logits, 1, arithmetic="add")
    torch.testing.assert_close(alone @ five.T @ five * 2 / n, alone, atol=1e-5, rtol=1e-5)


def test_hooks_act():
    task, model = ModularArithmetic(modulus=11), transformer(11)
    before = UnembeddingFilter()(model, task)
    model.blocks[0].hook_resid_post.add_hook(lambda value, hook: 0 * value)
    after = UnembeddingFilter()(model, task)
    at = {"keep": "rest", "group": "test"}  # the same answer for every pair, that of b_U
    rest = float((task.split("test").labels == int(model.unembed.b_U.argmax())).double().mean())
    np.testing.assert_allclose(after.unembedding_accuracy.sel(at), rest, rtol=1e-6)
    assert not before.equals(after)


def test_numbers_that_the_circle_does_not_have_are_left_out():
    found = UnembeddingFilter()(transformer(7), ModularArithmetic(modulus=7))
    assert found.k.values.tolist() == [1, 2, 3]
    with pytest.raises(
        MeasureError,
        match=r"`frequencies` \(=\[4, 5\]\) must have one of at most 3, .* add modulo 7",
    ):
        UnembeddingFilter((4, 5))(transformer(7), ModularArithmetic(modulus=7))


@pytest.mark.parametrize("numbers", [[], [0, 1], [2, 2], [3, 1]])
def test_numbers_that_do_not_ascend_are_refused(numbers):
    with pytest.raises(MeasureError, match="`frequencies` must be ascending from at least 1; got"):
        UnembeddingFilter(numbers)


def test_a_group_without_examples_is_nan():
    found = UnembeddingFilter()(transformer(7), ModularArithmetic(modulus=7, noise=0.0))
    empty = np.isnan(found.unembedding_accuracy).all(["keep", "k"])
    assert empty.values.tolist() == [False, False, True, True, False]
    assert found.unembedding_n.values.tolist() == [39, 39, 0, 0, 10]
