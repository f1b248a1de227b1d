"""Neurons by rank: hand-made ranks, exact partitions, and the random control."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
import torch
from handwired_modular import spectra_of

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.interventions.network_part import subnetwork
from interp_shortcuts.interventions.neurons import NeuronPartition
from interp_shortcuts.models.analytic import analytic_network
from interp_shortcuts.models.two_layer import (
    build_two_layer,
    load_two_layer_weights,
    read_pair_logits,
    two_layer_weights,
)
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.tasks.modular import ModularArithmetic


def net_of(width=10, seed=0, **changes):
    spec = TwoLayerSpec(**{"n_tokens": 11, "n_classes": 11, "width": width, **changes})
    net = build_two_layer(spec, seed=seed)
    with torch.no_grad():
        net.mu.fill_(1.0)
    return net


def test_neurons_rank_by_a_known_ipr():
    """One, two and three cosines, and none: ratios 1, 1/2, 1/3, and undefined, which is last."""
    places = torch.arange(11) * 2 * torch.pi / 11
    waves = [(k * places).cos() for k in (1, 2, 3)]
    net = net_of(4)
    w = torch.stack([waves[0] + waves[1], torch.zeros(11), sum(waves), waves[2]])
    load_two_layer_weights(net, {**two_layer_weights(net), "W": w})
    assert NeuronPartition("ipr", 1.0).chosen(net).tolist() == [3, 0, 2, 1]
    assert NeuronPartition("ipr", 0.5).chosen(net).tolist() == [3, 0]
    assert NeuronPartition("ipr", 0.5, keep="bottom").chosen(net).tolist() == [2, 1]


def test_neurons_rank_by_a_known_strength():
    net = net_of(3)
    sizes = torch.tensor([2.0, 5.0, 3.0])
    ones = torch.ones(11, 3)
    weights = {"U": ones, "V": ones, "W": sizes[:, None].expand(3, 11), "mu": torch.zeros(11)}
    load_two_layer_weights(net, weights)
    assert NeuronPartition("strength", 1.0).chosen(net).tolist() == [1, 2, 0]


def test_scores_are_those_of_the_measure():
    net, spectra = net_of(20), spectra_of(net_of(20), "multiply")
    known = {"ipr": spectra.ipr.sel(convention="rfft"), "strength": spectra.strength}
    for score, expected in known.items():
        got = NeuronPartition(score, 0.5, arithmetic="multiply").scores(net)
        np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize("score", ["ipr", "strength", "random"])
@pytest.mark.parametrize("width", [7, 10, 67])
def test_shares_that_sum_to_one_part_the_neurons(score, width):
    net = net_of(width)
    for twentieths in range(1, 20):
        share, n_top = twentieths / 20, round(Fraction(twentieths * width, 20))
        if not 0 < n_top < width:
            continue
        top = NeuronPartition(score, share).chosen(net)
        bottom = NeuronPartition(score, 1 - share, keep="bottom").chosen(net)
        assert sorted([*top.tolist(), *bottom.tolist()]) == list(range(width))
        assert len(top) == n_top


def test_the_parts_sum_to_the_network_in_logits_too():
    """Neurons add up in the logits, so that top + bottom = whole + mu, which both have."""
    net = net_of()
    tokens = ModularArithmetic(modulus=11).pairs.tokens
    top = subnetwork(net, NeuronPartition("ipr", 0.3))
    bottom = subnetwork(net, NeuronPartition("ipr", 0.7, keep="bottom", bias="zero"))
    both = read_pair_logits(top, tokens) + read_pair_logits(bottom, tokens)
    torch.testing.assert_close(both, read_pair_logits(net, tokens))
    assert torch.equal(top.mu, net.mu)
    assert not bottom.mu.any()


@pytest.mark.parametrize("tied", [False, True])
def test_the_other_neurons_are_zero_everywhere(tied):
    net = net_of(tied=tied)
    part = NeuronPartition("strength", 0.4)
    kept, copy = part.chosen(net), subnetwork(net, part)
    others = [neuron for neuron in range(10) if neuron not in kept.tolist()]
    for matrix, whole in ((copy.U, net.U), (copy.V, net.V), (copy.W.T, net.W.T)):
        assert not matrix[:, others].any()
        assert torch.equal(matrix[:, kept], whole[:, kept])


def test_a_whole_share_is_the_network():
    net = net_of()
    for keep in ("top", "bottom"):
        copy = two_layer_weights(subnetwork(net, NeuronPartition("ipr", 1, keep)))
        assert all(torch.equal(copy[name], w) for name, w in two_layer_weights(net).items())


def test_periodic_neurons_are_found_among_random_ones():
    """300 analytic neurons and 300 random ones: the top half by IPR answers, the rest do not."""
    periodic, random = analytic_network(31, width=300), net_of(300, n_tokens=31, n_classes=31)
    whole = build_two_layer(
        TwoLayerSpec(n_tokens=31, n_classes=31, width=600, activation="quadratic")
    )
    load_two_layer_weights(
        whole,
        {
            "U": torch.cat([periodic.U, random.U * 10], 1),
            "V": torch.cat([periodic.V, random.V * 10], 1),
            "W": torch.cat([periodic.W, random.W * 10], 0),
            "mu": torch.zeros(31),
        },
    )
    task = ModularArithmetic(modulus=31)

    def accuracy(part):
        logits = read_pair_logits(subnetwork(whole, part), task.pairs.tokens)
        return task.correct(logits, task.pairs.labels).double().mean().item()

    assert set(NeuronPartition("ipr", 0.5).chosen(whole).tolist()) == set(range(300))
    assert accuracy(NeuronPartition("ipr", 0.5)) == 1.0
    assert accuracy(NeuronPartition("ipr", 0.5, keep="bottom")) < 0.2
    n_periodic = int((NeuronPartition("random", 0.5).chosen(whole) < 300).sum())
    assert 120 < n_periodic < 180  # of 300 drawn: 150, standard deviation 8.7


def test_the_random_order_belongs_to_its_seed():
    net = net_of(50)
    one, again, other = (
        NeuronPartition("random", 0.5, seed=seed).chosen(net).tolist() for seed in (0, 0, 1)
    )
    assert one == again != other


def test_partitions_are_data():
    described = NeuronPartition("random", 0.5, "bottom", seed=3).describe()
    assert json.loads(json.dumps(described)) == described
    assert (described["seed"], described["share"], described["bias"]) == (3, 0.5, "kept")
    assert "seed" not in NeuronPartition("ipr", 0.5).describe()
    assert NeuronPartition("ipr", 0.5, arithmetic="multiply").describe()["arithmetic"] == "multiply"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (("size", 0.5), "`score` must be 'ipr', 'strength' or 'random'; got 'size'"),
        (("ipr", 0.0), r"`share` must be in \(0, 1\]; got 0.0"),
        (("ipr", 1.1), r"`share` must be in \(0, 1\]; got 1.1"),
        (("ipr", 0.5, "middle"), "`keep` must be 'top' or 'bottom'; got 'middle'"),
    ],
)
def test_impossible_partitions_are_refused(fields, message):
    with pytest.raises(InterventionError, match=message):
        NeuronPartition(*fields)


def test_a_share_of_no_neuron_is_refused():
    with pytest.raises(InterventionError, match=r"`share` \(=0.01\) must come to at least one of"):
        subnetwork(net_of(), NeuronPartition("ipr", 0.01))
    with pytest.raises(InterventionError, match=r"`share` \(=0.01\) must come to at least one of"):
        subnetwork(net_of(), NeuronPartition("ipr", 0.01, keep="bottom"))
