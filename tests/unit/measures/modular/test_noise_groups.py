"""Accuracy and loss by group: handwired networks, a slow reference, and other kinds of model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from handwired_modular import memorising_network, rule_under_noise

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.interventions.swap_activation import SwapActivation, swapped
from interp_shortcuts.measures.modular.frequency_filter import FrequencyFilterAccuracy
from interp_shortcuts.measures.modular.noise_groups import NoiseGroups
from interp_shortcuts.models.build import build
from interp_shortcuts.models.forward import read_logits
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.two_layer import build_two_layer, read_pair_logits
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.tasks.noisy_task import NOISE_GROUPS
from interp_shortcuts.tasks.task import ShortcutTask

TASK = ModularArithmetic(modulus=13, noise=0.3)


def test_a_network_that_only_memorises():
    found = NoiseGroups()(memorising_network(TASK), TASK)
    guessed = float((TASK.split("test").labels == 0).double().mean())  # all logits are equal
    np.testing.assert_allclose(found.group_accuracy, [1, 1, 1, 0, guessed], rtol=1e-6)
    known = -np.log(np.exp(2) / (np.exp(2) + 12))  # the label's logit is 2, twelve others are 0
    expected = [known, known, known, known + 2, np.log(13)]
    np.testing.assert_allclose(found.group_loss, expected, rtol=1e-5)
    assert found.group_n.values.tolist() == [TASK.split(group).n for group in NOISE_GROUPS]


def test_a_network_with_the_rule_and_the_noise():
    task = ModularArithmetic(modulus=31, noise=0.1)
    found = NoiseGroups()(rule_under_noise(task), task)
    assert found.group_accuracy.values.tolist() == [1, 1, 1, 0, 1]


def test_a_slow_reference():
    net = build_two_layer(TwoLayerSpec(n_tokens=13, n_classes=13, width=20), seed=0)
    found = NoiseGroups()(net, TASK)
    for group in NOISE_GROUPS:
        split = TASK.split(group)
        logits = read_pair_logits(net, split.tokens).double()
        right = [
            int(row.argmax()) == int(label) for row, label in zip(logits, split.labels, strict=True)
        ]
        loss = [
            float(torch.logsumexp(row, 0) - row[label])
            for row, label in zip(logits, split.labels, strict=True)
        ]
        assert float(found.group_accuracy.sel(group=group)) == pytest.approx(np.mean(right))
        assert float(found.group_loss.sel(group=group)) == pytest.approx(np.mean(loss), rel=1e-5)
        low, high = found.group_accuracy_interval.sel(group=group).values
        assert low <= np.mean(right) <= high
        low, high = found.group_loss_interval.sel(group=group).values
        assert high - low == pytest.approx(2 * 1.96 * np.std(loss, ddof=1) / split.n**0.5, rel=1e-3)


def test_it_agrees_with_the_whole_network_of_the_filter():
    net = build_two_layer(TwoLayerSpec(n_tokens=13, n_classes=13, width=20), seed=0)
    whole = FrequencyFilterAccuracy()(net, TASK).sel(network="full", acting="trained")
    found = NoiseGroups()(net, TASK)
    np.testing.assert_allclose(found.group_accuracy, whole.filtered_accuracy)
    np.testing.assert_allclose(found.group_loss, whole.filtered_loss, rtol=1e-5)


def test_hooks_and_a_swapped_activation_act():
    net = build_two_layer(TwoLayerSpec(n_tokens=13, n_classes=13, width=20), seed=0)
    quadratic = net.spec.model_copy(update={"activation": "quadratic"})
    with swapped(net, SwapActivation("quadratic")):
        acted = NoiseGroups()(net, TASK)
    assert acted.equals(NoiseGroups()(build_two_layer(quadratic, seed=0), TASK))
    assert not acted.equals(NoiseGroups()(net, TASK))
    net.hook_post.add_hook(lambda value, hook: 0 * value)  # then all logits are mu, which is zero
    np.testing.assert_allclose(NoiseGroups()(net, TASK).group_loss, np.log(13), rtol=1e-6)


@pytest.mark.parametrize(("noise", "empty"), [(0.0, {"noisy", "noisy_true"}), (1.0, {"clean"})])
def test_a_group_without_examples_is_nan(noise, empty):
    net = build_two_layer(TwoLayerSpec(n_tokens=13, n_classes=13, width=20), seed=0)
    found = NoiseGroups()(net, ModularArithmetic(modulus=13, noise=noise))
    for group in NOISE_GROUPS:
        for name in ("group_accuracy", "group_loss", "group_loss_interval"):
            assert np.isnan(found[name].sel(group=group)).all() == (group in empty)


def test_a_transformer_on_the_same_pairs():
    spec = ModelSpec(
        n_layers=1, n_heads=2, d_model=8, d_mlp=16, d_vocab=13, d_vocab_out=13, n_ctx=2
    )
    model = build(spec, seed=0)
    found = NoiseGroups()(model, TASK)
    for group in NOISE_GROUPS:
        split = TASK.split(group)
        logits = read_logits(model, split.tokens)
        right = TASK.correct(logits, split.labels).double().mean()
        assert float(found.group_accuracy.sel(group=group)) == pytest.approx(float(right))
        loss = TASK.loss(logits, split.labels).double().mean()
        assert float(found.group_loss.sel(group=group)) == pytest.approx(float(loss), rel=1e-5)


def test_a_task_without_noisy_labels_is_refused():
    task = ShortcutTask.named("max_parity", n_train=20, n_validation=9, n_adversarial=9)
    model = build(ModelSpec(d_model=8, d_mlp=8, d_vocab=11, d_vocab_out=2, n_ctx=5), seed=0)
    with pytest.raises(MeasureError, match="`NoiseGroups` asks "):
        NoiseGroups()(model, task)
