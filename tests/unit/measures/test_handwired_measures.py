"""The measures on models whose answers are known, in both layers and with every normalisation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from handwired import (
    constant_head,
    embedding_size,
    hand_spec,
    magnitude_writer,
    max_head_model,
    non_monotone_head,
    parity_writer,
)

from interp_shortcuts.measures.attention import Attention
from interp_shortcuts.measures.behaviour import Behaviour
from interp_shortcuts.measures.ov import OVSpearman
from interp_shortcuts.measures.ov_fraction import OVClassFraction
from interp_shortcuts.measures.qk import QKSpearman
from interp_shortcuts.tasks.task import ShortcutTask

NORMALIZATIONS = ["none", "LN", "LNPre", "RMS", "RMSPre"]
everywhere = pytest.mark.parametrize(
    ("layer", "normalization"),
    [(0, name) for name in NORMALIZATIONS] + [(1, "none"), (1, "LN")],
)


def make_task(rule: str = "max_parity", **sizes) -> ShortcutTask:
    defaults = {"n_train": 200, "n_validation": 100, "n_adversarial": 100}
    return ShortcutTask.named(rule, **{**defaults, **sizes})


TASK = make_task()
MOD3 = make_task("max_mod3", n_integers=9)


def head(data, name, layer, **labels):
    return data[name].sel(layer=layer, head=0, **labels).values


@everywhere
def test_max_head_looks_at_the_maximum(layer, normalization):
    model = max_head_model(layer=layer, normalization=normalization)
    qk = QKSpearman()(model, TASK)
    assert head(qk, "qk_spearman", layer).tolist() == [1.0]
    assert (head(qk, "qk_spearman_activation", layer) == 1.0).all()
    undefined = head(qk, "qk_spearman_activation_undefined", layer, feature="magnitude")
    all_equal = [
        int((TASK.split(name).integers.diff(dim=1) == 0).all(dim=1).sum())
        for name in ("validation", "adversarial")
    ]
    assert undefined.tolist() == all_equal
    scores = head(qk, "qk_score", layer)
    spec_scale = math.sqrt(model.cfg.d_head)
    assert scores == pytest.approx(100 * np.arange(10) / 9 * spec_scale, rel=1e-5, abs=1e-4)

    seen = Attention()(model, TASK)
    assert (head(seen, "attention_to_max", layer) > 0.99).all()
    for split in ("validation", "adversarial"):
        integers = TASK.split(split).integers
        ties = (integers == integers.amax(dim=1, keepdim=True)).sum(dim=1).double()
        entropy = head(seen, "attention_entropy", layer, split=split)
        assert entropy == pytest.approx(float(ties.log().mean()), abs=2e-3)
    # a head that does nothing spreads its weight evenly
    idle = seen["attention_to_max"].sel(layer=1 - layer, head=1, split="validation")
    integers = TASK.split("validation").integers
    ties = (integers == integers.amax(dim=1, keepdim=True)).sum(dim=1).double()
    assert float(idle) == pytest.approx(float(ties.mean()) / 5, abs=1e-6)


@pytest.mark.parametrize("task", [TASK, MOD3], ids=["parity", "mod3"])
@everywhere
def test_max_head_answers_the_shortcut(task, layer, normalization):
    model = max_head_model(
        layer=layer,
        normalization=normalization,
        n_integers=task.n_integers,
        n_classes=task.n_classes,
    )
    found = Behaviour()(model, task)
    assert found.shortcut_rate.values.tolist() == [1.0] * 5
    accuracy = found.accuracy.to_series()
    assert accuracy["validation"] == accuracy["consistent"] == 1.0
    assert accuracy["adversarial"] == accuracy["anti"] == 0.0
    assert accuracy["train"] == pytest.approx(0.9)
    assert found.accuracy_interval.sel(split="validation", bound="high") == 1.0
    assert 0.9 < found.accuracy_interval.sel(split="validation", bound="low") < 1.0


@everywhere
def test_non_monotone_head(layer, normalization):
    model = non_monotone_head(layer=layer, normalization=normalization)
    qk = QKSpearman(feature=("magnitude", "parity"), splits=())(model, TASK)
    theory = 1 - 1.5 * 100 / 99
    assert head(qk, "qk_spearman", layer, feature="magnitude") == pytest.approx(theory, abs=1e-7)
    assert set(qk.data_vars) == {"qk_spearman", "qk_score"}

    def rotated(v):
        return (v + 5) % 10

    mine = QKSpearman(feature=rotated)(model, TASK)
    assert mine.feature.values.tolist() == ["rotated"]
    assert head(mine, "qk_spearman", layer).tolist() == [1.0]
    assert (head(mine, "qk_spearman_activation", layer) == 1.0).all()


@everywhere
def test_parity_writer(layer, normalization):
    model = parity_writer(layer=layer, normalization=normalization)
    ov = OVSpearman()(model, TASK)
    assert ov.feature.values.tolist() == ["parity"]
    for name in ("ov_spearman", "ov_spearman_ceiling", "ov_spearman_relative"):
        assert head(ov, name, layer).tolist() == [1.0], name
    expected = np.stack([1 - np.arange(10) % 2, np.arange(10) % 2], axis=1)
    assert head(ov, "ov_logit", layer) == pytest.approx(expected, abs=1e-5)
    fraction = OVClassFraction()(model, TASK)
    assert head(fraction, "ov_class_fraction", layer) == pytest.approx([1.0], abs=1e-6)
    assert fraction.ov_class_fraction_chance.values == pytest.approx([1 / 9])


@everywhere
def test_residue_writer_with_three_classes(layer, normalization):
    model = parity_writer(layer=layer, normalization=normalization, n_integers=9, n_classes=3)
    ov = OVSpearman()(model, MOD3)
    assert ov.feature.values.tolist() == ["residue_3"]
    for name in ("ov_spearman", "ov_spearman_ceiling", "ov_spearman_relative"):
        assert head(ov, name, layer).tolist() == [1.0], name
    fraction = OVClassFraction()(model, MOD3)
    assert head(fraction, "ov_class_fraction", layer) == pytest.approx([1.0], abs=1e-6)
    assert fraction.ov_class_fraction_chance.values == pytest.approx([2 / 8])


@everywhere
def test_leaking_parity_writer_sits_at_its_ceiling(layer, normalization):
    model = parity_writer(layer=layer, leak=0.5, normalization=normalization)
    ov = OVSpearman()(model, TASK)
    theory = math.sqrt(3) / 2 * math.sqrt(100 / 99)
    assert head(ov, "ov_spearman", layer) == pytest.approx([theory], abs=1e-6)
    assert head(ov, "ov_spearman_ceiling", layer) == pytest.approx([theory], abs=1e-6)
    assert head(ov, "ov_spearman_relative", layer).tolist() == [1.0]


@everywhere
def test_magnitude_writer_is_near_chance(layer, normalization):
    model = magnitude_writer(layer=layer, normalization=normalization)
    fraction = OVClassFraction()(model, TASK)
    assert head(fraction, "ov_class_fraction", layer) == pytest.approx([3 / 99], abs=1e-6)
    ov = OVSpearman(feature=("parity", "magnitude"))(model, TASK)
    assert head(ov, "ov_spearman", layer) == pytest.approx([math.sqrt(3 / 99), 1.0], abs=1e-6)
    assert head(ov, "ov_spearman_relative", layer) == pytest.approx([0.2, 1.0], abs=1e-6)


@everywhere
def test_constant_head_is_undefined_with_a_reason(layer, normalization):
    model = constant_head(layer=layer, normalization=normalization)
    qk, ov = QKSpearman()(model, TASK), OVSpearman()(model, TASK)
    fraction, seen = OVClassFraction()(model, TASK), Attention()(model, TASK)
    for array in (
        qk.qk_spearman,
        qk.qk_spearman_activation,
        ov.ov_spearman,
        ov.ov_spearman_ceiling,
        ov.ov_spearman_relative,
        fraction.ov_class_fraction,
    ):
        assert np.isnan(array.values).all(), array.name
        assert "constant" in array.attrs["nan_means"], array.name
    assert (qk.qk_spearman_activation_undefined.values == 100).all()
    assert head(qk, "qk_score", layer) == pytest.approx(0.25 * model.cfg.d_head)
    assert seen.attention_entropy.values == pytest.approx(math.log(5), abs=1e-6)
    assert seen.attention.values == pytest.approx(0.2, abs=1e-6)


def test_what_float32_cannot_resolve_is_tied_in_activations_but_not_in_weights():
    model = constant_head()
    with torch.no_grad():
        for integer in range(10):  # keys of 0.5 + 4e-7 v: 6e-7 of the score between 0 and 9
            key = 4e-7 * integer / embedding_size(hand_spec())
            model.blocks[0].attn.W_K[0, 2 * integer, 0] = key
    qk = QKSpearman()(model, TASK)
    assert head(qk, "qk_spearman", 0).tolist() == [1.0]
    assert np.isnan(head(qk, "qk_spearman_activation", 0)).all()
    assert (head(qk, "qk_spearman_activation_undefined", 0) == 100).all()
