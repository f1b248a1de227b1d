"""Networks G and R by group: the analytic solution, handwired noise, and a slow reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from handwired_modular import memorising_network, rule_under_noise

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.interventions.network_part import subnetwork
from interp_shortcuts.interventions.spectral import FrequencyFilter
from interp_shortcuts.interventions.swap_activation import SwapActivation, swapped
from interp_shortcuts.measures.modular.frequency_filter import (
    NETWORKS,
    FrequencyFilterAccuracy,
    filtered_weights,
)
from interp_shortcuts.measures.modular.noise_rows import NoiseRows
from interp_shortcuts.models.analytic import analytic_network
from interp_shortcuts.models.two_layer import build_two_layer, read_pair_logits, two_layer_weights
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.tasks.noisy_task import NOISE_GROUPS

ACTING = ("trained", "relu", "quadratic", "reverse_relu")
CIRCLES = [("add", 11), ("subtract", 12), ("multiply", 13)]


def random_net(n, *, width=40, seed=0, **changes):
    net = build_two_layer(TwoLayerSpec(n_tokens=n, n_classes=n, width=width, **changes), seed=seed)
    with torch.no_grad():
        net.mu.copy_(torch.randn(n, generator=torch.Generator().manual_seed(seed)))
    return net


@pytest.mark.parametrize(
    ("width", "acting", "known"),
    [(65, "quadratic", 0.96), (65, "relu", 0.36), (129, "quadratic", 1.0)],
)
def test_accuracy_of_the_analytic_solution_at_113(width, acting, known):
    """Over all pairs, by draws: the known values are of one draw each, to two digits."""
    task = ModularArithmetic(modulus=113, noise=0.0)
    drawn = []
    for seed in range(4):
        found = FrequencyFilterAccuracy([acting])(
            analytic_network(113, width=width, seed=seed), task
        )
        for network in ("full", "G"):
            accuracy = found.filtered_accuracy.sel(network=network, acting=acting)
            at = {"group": ["train", "test"]}
            drawn.append(float((accuracy * found.filtered_n).sel(at).sum() / task.pairs.n))
    full, general = np.array(drawn).reshape(4, 2).T
    np.testing.assert_allclose(general, full, atol=2e-3)  # a filter that changes nothing
    assert full.std(ddof=1) < 0.05
    assert full.mean() == pytest.approx(known, abs=3 * full.std(ddof=1) + 0.005)


@pytest.mark.parametrize("arithmetic", ["add", "subtract", "multiply"])
def test_a_wide_analytic_network_answers_every_pair_in_every_guise(arithmetic):
    task = ModularArithmetic(arithmetic=arithmetic, modulus=31, noise=0.3)
    net = analytic_network(31, width=1024, arithmetic=arithmetic)
    accuracy = FrequencyFilterAccuracy()(net, task).filtered_accuracy
    knowing = accuracy.sel(network=["full", "G", "G joint"])
    assert (knowing.sel(group=["clean", "noisy_true", "test"]) == 1).all()
    assert (knowing.sel(group="noisy") == 0).all()
    n, n_noisy = task.split("train").n, task.split("noisy").n
    np.testing.assert_allclose(knowing.sel(group="train"), 1 - n_noisy / n)


def test_the_wrong_circle_hides_a_multiplication():
    task = ModularArithmetic(arithmetic="multiply", modulus=31)
    spread = filtered_weights(analytic_network(31, width=64, arithmetic="multiply"), "add")
    along = filtered_weights(analytic_network(31, width=64, arithmetic="multiply"), task.arithmetic)
    assert spread["R"]["U"].abs().max() > 0.5
    assert along["R"]["U"].abs().max() < 1e-5


def test_r_keeps_the_noise_of_a_network_that_only_memorises():
    task = ModularArithmetic(modulus=13, noise=0.4, seed=2)
    found = FrequencyFilterAccuracy()(memorising_network(task), task)
    guessed = float((task.split("test").labels == 0).double().mean())  # all logits are equal
    for network in ("full", "R", "R joint"):
        accuracy = found.filtered_accuracy.sel(network=network, acting="trained")
        assert accuracy.sel(group=["train", "clean", "noisy"]).values.tolist() == [1, 1, 1]
        assert accuracy.sel(group="noisy_true") == 0
        if network == "full":
            assert float(accuracy.sel(group="test")) == pytest.approx(guessed)
            assert found.filtered_loss.sel(network=network, acting="trained", group="test") == (
                pytest.approx(np.log(13))
            )
        assert found.filtered_loss.sel(network=network, acting="trained", group="noisy") < np.log(
            13
        )
    assert found.filtered_accuracy.sel(network="G", acting="trained", group="noisy") < 0.3


def test_g_has_the_rule_and_r_the_noise_where_both_are_wired_in():
    task = ModularArithmetic(modulus=31, noise=0.1)
    accuracy = FrequencyFilterAccuracy()(rule_under_noise(task), task).filtered_accuracy
    by_group = accuracy.sel(acting="trained").transpose("network", "group")
    assert by_group.sel(network="full").values[1:].tolist() == [1, 1, 0, 1]
    for network in ("G", "G joint"):
        assert by_group.sel(network=network).values[1:].tolist() == [1, 0, 1, 1]
    for network in ("R", "R joint"):
        assert by_group.sel(network=network, group="noisy") == 1
        assert by_group.sel(network=network, group="test") < 0.2


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("arithmetic", "n"), CIRCLES)
def test_a_slow_reference(arithmetic, n, tied):
    """A network of its own for each part, a pass for each split, one mean at a time."""
    task = ModularArithmetic(arithmetic=arithmetic, modulus=n, noise=0.3, seed=3)
    net = random_net(n, tied=tied, activation="gelu")
    found = FrequencyFilterAccuracy()(net, task)
    parts = {"G": ("dominant", "per vector"), "R": ("rest", "per vector")}
    parts |= {"G joint": ("dominant", "joint"), "R joint": ("rest", "joint")}
    for network in NETWORKS:
        part = net
        if network != "full":
            part = subnetwork(net, FrequencyFilter(*parts[network], arithmetic))
        for acting in ACTING:
            to = "gelu" if acting == "trained" else acting
            for group in NOISE_GROUPS:
                split = task.split(group)
                with swapped(part, SwapActivation(to)) as acted:
                    logits = read_pair_logits(acted, split.tokens)
                at = {"network": network, "acting": acting, "group": group}
                right = task.correct(logits, split.labels).double().mean()
                assert float(found.filtered_accuracy.sel(at)) == pytest.approx(float(right))
                loss = task.loss(logits, split.labels).double()
                assert float(found.filtered_loss.sel(at)) == pytest.approx(
                    float(loss.mean()), rel=1e-4
                )
                half = 1.959964 * float(loss.std()) / split.n**0.5
                np.testing.assert_allclose(
                    found.filtered_loss_interval.sel(at),
                    [loss.mean() - half, loss.mean() + half],
                    rtol=1e-3,
                )


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("arithmetic", "n"), CIRCLES)
def test_g_and_r_sum_to_the_network(arithmetic, n, tied):
    net = random_net(n, tied=tied)
    found = filtered_weights(net, arithmetic)
    for g, r in (("G", "R"), ("G joint", "R joint")):
        for name, whole in two_layer_weights(net).items():
            torch.testing.assert_close(found[g][name] + found[r][name], whole, rtol=0, atol=1e-7)
    for name, whole in two_layer_weights(net).items():
        assert torch.equal(found["full"][name], whole)


@pytest.mark.parametrize(("noise", "empty"), [(0.0, {"noisy", "noisy_true"}), (1.0, {"clean"})])
def test_a_group_without_examples_is_nan(noise, empty):
    task = ModularArithmetic(modulus=7, noise=noise)
    found = FrequencyFilterAccuracy()(random_net(7), task)
    for group in NOISE_GROUPS:
        for name in ("filtered_accuracy", "filtered_loss", "filtered_accuracy_interval"):
            assert np.isnan(found[name].sel(group=group)).all() == (group in empty)
        assert found.filtered_n.sel(group=group) == task.split(group).n


def test_a_swapped_activation_and_hooks_do_not_act_and_are_left(monkeypatch):
    task, net = ModularArithmetic(modulus=7), random_net(7)
    before = FrequencyFilterAccuracy()(net, task)
    net.hook_post.add_hook(lambda value, hook: 0 * value)
    with swapped(net, SwapActivation("abs")):
        assert FrequencyFilterAccuracy()(net, task).identical(before)
        assert net.activation == "abs"
        with monkeypatch.context() as patch:
            patch.setattr(NoiseRows, "mean_loss", _fails)
            with pytest.raises(RuntimeError, match="on purpose"):
                FrequencyFilterAccuracy()(net, task)
        assert net.activation == "abs"
    assert net.activation == "relu"
    assert len(net.hook_post.fwd_hooks) == 1


def _fails(*_args, **_named):
    raise RuntimeError("on purpose")


def test_activations_are_a_field():
    task = ModularArithmetic(modulus=7)
    found = FrequencyFilterAccuracy(activations=["abs"])(random_net(7), task)
    assert found.acting.values.tolist() == ["trained", "abs"]
    assert FrequencyFilterAccuracy(["abs"]).key != FrequencyFilterAccuracy().key
    with pytest.raises(MeasureError, match=r"`activations` must be 'relu', .* got 'tanh'"):
        FrequencyFilterAccuracy(["tanh"])
    with pytest.raises(MeasureError, match=r"`activations` must be distinct; got \['abs', 'abs'\]"):
        FrequencyFilterAccuracy(["abs", "abs"])
