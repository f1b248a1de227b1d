"""Networks G and R, the swapped activation, and the filtered unembedding of a transformer."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from handwired_modular import spectra_of

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.interventions.network_part import subnetwork
from interp_shortcuts.interventions.spectral import (
    FrequencyFilter,
    filter_unembedding,
    unembedding_frequencies,
)
from interp_shortcuts.interventions.swap_activation import SwapActivation, swapped
from interp_shortcuts.models.analytic import analytic_network
from interp_shortcuts.models.build import build, load_weights, weights_of
from interp_shortcuts.models.forward import read_logits
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.two_layer import (
    build_two_layer,
    load_two_layer_weights,
    read_pair_logits,
    two_layer_weights,
)
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.tasks.modular import ModularArithmetic

CIRCLES = [("add", 11), ("subtract", 12), ("multiply", 11)]
VARIANTS = ["per vector", "joint"]


def random_net(n=11, *, width=6, tied=False, seed=0):
    net = build_two_layer(TwoLayerSpec(n_tokens=n, n_classes=n, width=width, tied=tied), seed=seed)
    with torch.no_grad():
        net.mu.copy_(torch.randn(n, generator=torch.Generator().manual_seed(seed)))
    return net


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("arithmetic", "n"), CIRCLES)
def test_g_and_r_sum_to_the_network(arithmetic, n, variant, tied):
    net = random_net(n, tied=tied)
    whole = two_layer_weights(net)
    g, r = (
        two_layer_weights(subnetwork(net, FrequencyFilter(keep, variant, arithmetic)))
        for keep in ("dominant", "rest")
    )
    for name, weights in whole.items():
        torch.testing.assert_close(g[name] + r[name], weights, rtol=0, atol=1e-7)
    assert not g["mu"].any()
    assert torch.equal(r["mu"], whole["mu"])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("arithmetic", ["add", "subtract", "multiply"])
def test_filtering_the_analytic_network_changes_nothing(arithmetic, variant):
    net = analytic_network(13, width=40, arithmetic=arithmetic)
    g = subnetwork(net, FrequencyFilter("dominant", variant, arithmetic))
    r = subnetwork(net, FrequencyFilter("rest", variant, arithmetic))
    for name, weights in two_layer_weights(net).items():
        torch.testing.assert_close(two_layer_weights(g)[name], weights, atol=1e-6, rtol=0)
        assert two_layer_weights(r)[name].abs().max() < 1e-6


@pytest.mark.parametrize(("arithmetic", "n"), CIRCLES)
def test_g_is_one_frequency_and_r_has_nothing_there(arithmetic, n):
    net = random_net(n).double()
    before = spectra_of(net, arithmetic)
    g = spectra_of(subnetwork(net, FrequencyFilter("dominant", "joint", arithmetic)), arithmetic)
    r = spectra_of(subnetwork(net, FrequencyFilter("rest", "joint", arithmetic)), arithmetic)
    at = before.joint_frequency.astype(int)
    np.testing.assert_allclose(g.concentration, 1, atol=1e-6)
    np.testing.assert_array_equal(
        g.dominant_frequency, np.broadcast_to(before.joint_frequency, g.dominant_frequency.shape)
    )
    assert r.power.sel(frequency=at).max() < 1e-20
    np.testing.assert_allclose(g.power + r.power, before.power, atol=1e-6)


def test_a_slow_reference():
    """G by hand: for each vector, projections on cosine and sine of its dominant frequency."""
    n, net = 7, random_net(7, width=3).double()
    g = two_layer_weights(subnetwork(net, FrequencyFilter()))
    for name, vectors in (("U", net.U.T), ("V", net.V.T), ("W", net.W)):
        got = g[name] if name == "W" else g[name].T
        for vector, kept in zip(vectors.detach().numpy(), got.numpy(), strict=True):
            waves = []
            for k in (1, 2, 3):
                angle = 2 * np.pi * k * np.arange(n) / n
                wave = sum(
                    2 / n * (vector @ shape(angle)) * shape(angle) for shape in (np.cos, np.sin)
                )
                waves.append(wave)
            largest = max(waves, key=lambda wave: wave @ wave)
            np.testing.assert_allclose(kept, largest, atol=1e-12)


def test_the_variants_differ_where_vectors_disagree():
    """u is strongest at 1, v and w at 3; the joint frequency is 3."""
    n = 9
    places = torch.arange(n).double() * 2 * torch.pi / n
    slow, fast = places.cos(), (3 * places).cos()
    net = build_two_layer(TwoLayerSpec(n_tokens=n, n_classes=n, width=1)).double()
    u = 2 * slow + fast
    weights = {"U": u[:, None], "V": 3 * fast[:, None], "W": fast[None], "mu": torch.zeros(n)}
    load_two_layer_weights(net, weights)
    each = subnetwork(net, FrequencyFilter(variant="per vector"))
    joint = subnetwork(net, FrequencyFilter(variant="joint"))
    torch.testing.assert_close(each.U.detach()[:, 0], 2 * slow)
    torch.testing.assert_close(joint.U.detach()[:, 0], fast)


def test_g_recovers_the_rule_from_a_noisy_network():
    """The analytic network under random weights larger than its own, most of which G takes out."""
    task = ModularArithmetic(modulus=31)
    clean = analytic_network(31, width=400)
    weights = two_layer_weights(clean)
    for number, name in enumerate("UVW"):
        stream = torch.Generator().manual_seed(number)
        weights[name] += 1.25 * torch.randn(weights[name].shape, generator=stream)
    buried = build_two_layer(clean.spec)
    load_two_layer_weights(buried, weights)

    def accuracy(net):
        logits = read_pair_logits(net, task.pairs.tokens)
        return task.correct(logits, task.pairs.labels).double().mean().item()

    assert accuracy(buried) < 0.3
    assert accuracy(subnetwork(buried, FrequencyFilter("dominant"))) > 0.8
    assert accuracy(subnetwork(buried, FrequencyFilter("dominant", "joint"))) > 0.98
    assert accuracy(subnetwork(buried, FrequencyFilter("rest"))) < 0.1


def test_zero_goes_with_the_rest_in_multiplication():
    net = random_net(7)
    g = subnetwork(net, FrequencyFilter(arithmetic="multiply"))
    r = subnetwork(net, FrequencyFilter("rest", arithmetic="multiply"))
    assert not g.U[0].any()
    assert not g.V[0].any()
    assert not g.W[:, 0].any()
    assert torch.equal(r.W[:, 0], net.W[:, 0])
    assert torch.equal(r.U[0], net.U[0])


def test_the_network_is_left_as_it_was():
    net = random_net().train()
    before = two_layer_weights(net)
    part = subnetwork(net.double(), FrequencyFilter())
    assert part.U.dtype == torch.float64
    assert not part.training
    assert net.training
    assert part.spec == net.spec
    assert all(torch.equal(net.get_parameter(name).float(), w) for name, w in before.items())


def test_filters_are_data():
    assert FrequencyFilter() == FrequencyFilter("dominant", "per vector")
    described = FrequencyFilter("rest", "joint", "multiply").describe()
    assert json.loads(json.dumps(described)) == described
    assert (described["keep"], described["variant"]) == ("rest", "joint")


def test_unknown_choices_are_refused(unchecked):
    with pytest.raises(InterventionError, match="`keep` must be 'dominant' or 'rest'; got 'all'"):
        FrequencyFilter("all")
    with pytest.raises(InterventionError, match="`variant` must be 'per vector' or 'joint'; got"):
        FrequencyFilter(variant="pooled")
    with pytest.raises(InterventionError, match="`arithmetic` must be 'add', 'subtract' or"):
        FrequencyFilter(arithmetic="power")


def test_a_swapped_activation_acts_inside_its_block_only():
    net = random_net()
    tokens = ModularArithmetic(modulus=11).pairs.tokens
    before = read_pair_logits(net, tokens)
    quadratic = build_two_layer(net.spec.model_copy(update={"activation": "quadratic"}))
    load_two_layer_weights(quadratic, two_layer_weights(net))
    with swapped(torch.compile(net, backend="eager"), SwapActivation("quadratic")) as acting:
        assert acting is net
        assert torch.equal(read_pair_logits(net, tokens), read_pair_logits(quadratic, tokens))
    assert torch.equal(read_pair_logits(net, tokens), before)
    with pytest.raises(RuntimeError), swapped(net, SwapActivation("abs")):
        raise RuntimeError
    assert net.activation == "relu"
    assert torch.equal(read_pair_logits(net, tokens), before)


def test_relu_and_reverse_relu_share_the_analytic_solution():
    """Turning every phase of u and v by pi turns relu into its reverse; accuracy stays 1."""
    net = analytic_network(31, width=1024, activation="relu")
    task = ModularArithmetic(modulus=31)
    for to in ("relu", "reverse_relu", "quadratic", "abs"):
        with swapped(net, SwapActivation(to)) as acting:
            logits = read_pair_logits(acting, task.pairs.tokens)
        assert task.correct(logits, task.pairs.labels).all()


def test_swaps_are_data():
    assert SwapActivation("abs").describe()["to"] == "abs"
    with pytest.raises(InterventionError, match=r"`to` must be 'relu', .* or 'abs'; got 'tanh'"):
        SwapActivation("tanh")


def transformer(n, *, d_model=8, seed=0):
    spec = ModelSpec(
        n_layers=1, n_heads=2, d_model=d_model, d_mlp=16, d_vocab=n, d_vocab_out=n, n_ctx=2
    )
    return build(spec, seed=seed)


def with_weights(model, **changes):
    load_weights(model, {**weights_of(model), **changes})
    return model


def test_the_unembedding_keeps_its_strongest_frequencies():
    """A known mixture: sizes 3, 2 and 1 at the frequencies 4, 1 and 5, in different rows."""
    n = 11
    places = torch.arange(n).double() * 2 * torch.pi / n
    W_U = torch.zeros(8, n, dtype=torch.float64)
    W_U[0], W_U[1], W_U[2] = 3 * (4 * places).cos(), 2 * places.sin() + 7, (5 * places).cos()
    b_U = torch.arange(n).double()
    model = with_weights(transformer(n), **{"unembed.W_U": W_U, "unembed.b_U": b_U})
    assert unembedding_frequencies(model, 3).tolist() == [4, 1, 5]
    kept, rest = (
        weights_of(filter_unembedding(model, 2, keep=keep)) for keep in ("dominant", "rest")
    )
    expected = torch.zeros(8, n, dtype=torch.float64)
    expected[0], expected[1] = W_U[0], W_U[1] - 7
    torch.testing.assert_close(kept["unembed.W_U"].double(), expected, atol=1e-5, rtol=0)
    assert not kept["unembed.b_U"].any()
    torch.testing.assert_close(rest["unembed.b_U"].double(), b_U)
    torch.testing.assert_close(rest["unembed.W_U"].double(), W_U - expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("arithmetic", "n"), CIRCLES)
def test_all_frequencies_keep_the_predictions(arithmetic, n):
    """Without b_U and outside zero, only a constant is lost, the same for all logits."""
    model = transformer(n)
    task = ModularArithmetic(arithmetic=arithmetic, modulus=n)
    n_frequencies = task.config.n_answers // 2
    filtered = filter_unembedding(model, n_frequencies, arithmetic=arithmetic)
    whole, kept = (
        read_logits(each, task.pairs.tokens)[:, task.residues] for each in (model, filtered)
    )
    shift = whole - kept
    torch.testing.assert_close(shift, shift.mean(1, keepdim=True).expand_as(shift))
    for name, weights in weights_of(model).items():
        if not name.startswith("unembed"):
            assert torch.equal(weights_of(filtered)[name], weights)


def test_fewer_frequencies_change_the_logits_and_leave_the_model_alone():
    model = transformer(11)
    before = weights_of(model)
    tokens = ModularArithmetic(modulus=11).pairs.tokens
    filtered = filter_unembedding(model, 1)
    assert (read_logits(model, tokens) - read_logits(filtered, tokens)).std() > 0.01
    assert all(torch.equal(before[name], w) for name, w in weights_of(model).items())
    assert not filtered.training
    assert model.training
    assert filter_unembedding(model.double(), 1).W_U.dtype == torch.float64


@pytest.mark.parametrize("k", [0, 6])
def test_a_number_of_frequencies_that_does_not_exist_is_refused(k):
    with pytest.raises(InterventionError, match=f"`k` must be from 1 to 5, .* got {k}"):
        filter_unembedding(transformer(11), k)
