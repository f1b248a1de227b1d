"""Shares of the neurons: exact parts, handwired ranks, the random control, a slow reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from handwired_modular import rule_under_noise

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.interventions.network_part import subnetwork
from interp_shortcuts.interventions.neurons import NeuronPartition
from interp_shortcuts.interventions.swap_activation import SwapActivation, swapped
from interp_shortcuts.measures.modular.noise_groups import NoiseGroups
from interp_shortcuts.measures.modular.partition import PartitionAccuracy
from interp_shortcuts.models.two_layer import build_two_layer, read_pair_logits
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.streams import derive_seed
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.tasks.noisy_task import NOISE_GROUPS


def random_net(n, *, width=37, seed=0, **changes):
    net = build_two_layer(TwoLayerSpec(n_tokens=n, n_classes=n, width=width, **changes), seed=seed)
    with torch.no_grad():
        net.mu.copy_(0.1 * torch.randn(n, generator=torch.Generator().manual_seed(seed)))
    return net


def by_hand(net, task, part):
    """Accuracy by group of a network of its own."""
    part = subnetwork(net, part)
    found = []
    for group in NOISE_GROUPS:
        split = task.split(group)
        logits = read_pair_logits(part, split.tokens)
        found.append(float(task.correct(logits, split.labels).double().mean()))
    return found


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("arithmetic", "n"), [("subtract", 12), ("multiply", 11)])
def test_a_slow_reference(arithmetic, n, tied):
    task = ModularArithmetic(arithmetic=arithmetic, modulus=n, noise=0.3)
    net = random_net(n, tied=tied, activation="quadratic")
    shares = (0.1, 0.35, 0.5, 0.9, 1.0)
    found = PartitionAccuracy(shares, n_draws=3, seed=5)(net, task)
    for keep in ("top", "bottom"):
        for share in shares:
            at = {"keep": keep, "share": share}
            for score in ("ipr", "strength"):
                expected = by_hand(net, task, NeuronPartition(score, share, keep, arithmetic))
                got = found.partition_accuracy.sel(at | {"score": score})
                np.testing.assert_allclose(got, expected, rtol=1e-6)
            seeds = [derive_seed(5, "partition", f"draw {draw}") for draw in range(3)]
            drawn = np.array(
                [by_hand(net, task, NeuronPartition("random", share, keep, seed=s)) for s in seeds]
            )
            got = found.partition_accuracy.sel(at | {"score": "random"})
            np.testing.assert_allclose(got, drawn.mean(0), rtol=1e-6)
            np.testing.assert_allclose(found.partition_random_low.sel(at), drawn.min(0))
            np.testing.assert_allclose(found.partition_random_high.sel(at), drawn.max(0))


def test_a_share_of_one_is_the_network():
    task, net = ModularArithmetic(modulus=11), random_net(11)
    found = PartitionAccuracy([1.0], n_draws=2)(net, task)
    whole = NoiseGroups()(net, task)
    for array in found.partition_accuracy.stack(part=("score", "keep", "share")).transpose(
        "part", ...
    ):
        np.testing.assert_array_equal(array, whole.group_accuracy)
    np.testing.assert_array_equal(found.partition_random_low, found.partition_random_high)


def test_the_random_band_contains_its_mean_and_opens():
    task, net = ModularArithmetic(modulus=13), random_net(13, width=60)
    found = PartitionAccuracy((0.2, 0.5, 0.8), n_draws=6)(net, task)
    mean = found.partition_accuracy.sel(score="random", drop=True)
    assert (found.partition_random_low <= mean + 1e-6).all()
    assert (mean <= found.partition_random_high + 1e-6).all()
    assert (found.partition_random_low < found.partition_random_high).any()


def test_top_and_bottom_where_rule_and_noise_have_neurons_of_their_own():
    """Of 1,101 neurons the 1,024 periodic ones rank above the lookups in IPR, below in strength."""
    task = ModularArithmetic(modulus=31, noise=0.1)
    net = rule_under_noise(task)
    share = 1024 / net.spec.width
    found = PartitionAccuracy((1 - share, share), n_draws=1)(net, task)
    accuracy = found.partition_accuracy
    knows, remembers = [1, 0, 1, 1], 1
    at_top = {"keep": "top", "share": share}
    at_bottom = {"keep": "bottom", "share": 1 - share}
    assert accuracy.sel(at_top | {"score": "ipr"}).values[1:].tolist() == knows
    assert accuracy.sel(at_bottom | {"score": "ipr", "group": "noisy"}) == remembers
    assert accuracy.sel(at_bottom | {"score": "ipr", "group": "test"}) < 0.1
    assert accuracy.sel(score="strength", keep="top", share=1 - share, group="noisy") == remembers
    assert accuracy.sel(score="strength", keep="bottom", share=share).values[1:].tolist() == knows


def test_a_share_that_comes_to_no_neuron_is_nan():
    task, net = ModularArithmetic(modulus=7), random_net(7, width=3)
    found = PartitionAccuracy((0.1, 0.5, 1.0), n_draws=2)(net, task)
    for keep in ("top", "bottom"):
        part = found.sel(keep=keep)
        assert np.isnan(part.partition_accuracy.sel(share=0.1)).all()
        assert np.isnan(part.partition_random_low.sel(share=0.1)).all()
        assert not np.isnan(part.partition_accuracy.sel(share=[0.5, 1.0])).any()


def test_a_group_without_examples_is_nan():
    found = PartitionAccuracy(n_draws=1)(random_net(7), ModularArithmetic(modulus=7, noise=0.0))
    empty = np.isnan(found.partition_accuracy).all(["score", "keep", "share"])
    assert empty.values.tolist() == [False, False, True, True, False]
    assert (np.isnan(found.partition_random_high).all(["keep", "share"]) == empty).all()
    assert found.partition_n.values.tolist() == [39, 39, 0, 0, 10]


def test_the_interval_is_that_of_the_examples_and_undefined_for_a_mean_of_draws():
    found = PartitionAccuracy(n_draws=2)(random_net(7), ModularArithmetic(modulus=7))
    interval = found.partition_accuracy_interval
    ranked = {"score": ["ipr", "strength"]}
    accuracy = found.partition_accuracy.sel(ranked)
    assert (interval.sel(ranked).sel(bound="low") <= accuracy).all()
    assert (accuracy <= interval.sel(ranked).sel(bound="high")).all()
    assert np.isnan(interval.sel(score="random")).all()


def test_draws_belong_to_the_seed_and_not_to_the_weights():
    task, net = ModularArithmetic(modulus=11), random_net(11)
    one, again, other = (PartitionAccuracy(n_draws=2, seed=seed)(net, task) for seed in (0, 0, 1))
    assert one.identical(again)
    assert not one.partition_random_high.equals(other.partition_random_high)
    assert one.partition_accuracy.sel(score="ipr").equals(other.partition_accuracy.sel(score="ipr"))


def test_a_swapped_activation_acts_and_hooks_do_not():
    task, net = ModularArithmetic(modulus=7), random_net(7, activation="quadratic")
    quadratic = PartitionAccuracy(n_draws=1)(net, task)
    with swapped(net, SwapActivation("relu")):
        relu = PartitionAccuracy(n_draws=1)(net, task)
        assert net.activation == "relu"
    assert net.activation == "quadratic"
    assert relu.identical(PartitionAccuracy(n_draws=1)(random_net(7, activation="relu"), task))
    assert not relu.equals(quadratic)
    net.hook_post.add_hook(lambda value, hook: 0 * value)
    assert PartitionAccuracy(n_draws=1)(net, task).identical(quadratic)
    assert len(net.hook_post.fwd_hooks) == 1


@pytest.mark.parametrize("shares", [[], [0.0, 0.5], [0.5, 0.5], [0.5, 0.2], [0.5, 1.1]])
def test_shares_that_are_no_shares_are_refused(shares):
    with pytest.raises(MeasureError, match=r"`shares` must be in \(0, 1\] and ascending; got \["):
        PartitionAccuracy(shares)


def test_no_draw_is_refused():
    with pytest.raises(MeasureError, match="`n_draws` must be at least 1; got 0"):
        PartitionAccuracy(n_draws=0)
