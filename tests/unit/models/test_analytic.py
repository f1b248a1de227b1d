"""The analytic network: its accuracy over all pairs, and that it is one frequency a neuron.

The construction is that of arXiv 2605.18022, at its P = 113.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.measures.intervals import mean_with_interval
from interp_shortcuts.models.analytic import analytic_network
from interp_shortcuts.models.spectrum import Spectrum
from interp_shortcuts.models.two_layer import read_pair_logits
from interp_shortcuts.tasks.modular import ModularArithmetic


def accuracy(modulus, *, arithmetic="add", **network):
    task = ModularArithmetic(arithmetic=arithmetic, modulus=modulus)
    net = analytic_network(modulus, arithmetic=arithmetic, **network)
    logits = read_pair_logits(net, task.pairs.tokens)
    return task.correct(logits, task.pairs.labels).double().mean().item()


@pytest.mark.parametrize(
    ("width", "activation", "known"),
    [
        (65, "quadratic", 0.96),
        (65, "relu", 0.36),
        (129, "quadratic", 1.00),
        (129, "relu", 0.69),
        (257, "quadratic", 1.00),
        (257, "relu", 0.98),
    ],
)
def test_accuracy_at_113(width, activation, known):
    """Over n = 10 draws. The known values are of one draw each, to two digits: such a one is
    within 3 standard deviations of the mean, and draws differ by less than 0.05."""
    drawn = np.array([accuracy(113, width=width, activation=activation, seed=s) for s in range(10)])
    mean = mean_with_interval(drawn)
    assert mean.n == 10
    assert drawn.std(ddof=1) < 0.05
    assert mean.value == pytest.approx(known, abs=3 * drawn.std(ddof=1) + 0.005)
    assert mean.interval[1] - mean.interval[0] < 0.06


@pytest.mark.parametrize("activation", ["quadratic", "relu"])
def test_a_wide_network_answers_every_pair(activation):
    assert accuracy(113, width=1025, activation=activation) == 1.0


@pytest.mark.parametrize("arithmetic", ["add", "subtract", "multiply"])
@pytest.mark.parametrize("activation", ["quadratic", "relu", "reverse_relu", "abs"])
def test_every_operation_is_solved(arithmetic, activation):
    """Multiplication modulo 31 goes round 30 powers, an even circle."""
    assert accuracy(31, arithmetic=arithmetic, width=1024, activation=activation) == 1.0


def test_a_composite_modulus_is_solved():
    assert accuracy(24, width=1024) == 1.0


def test_every_vector_is_one_frequency_and_the_phases_agree():
    for arithmetic in ("add", "subtract", "multiply"):
        spectrum = Spectrum.of(analytic_network(17, width=64, arithmetic=arithmetic), arithmetic)
        share = spectrum.share_at(spectrum.dominant)
        torch.testing.assert_close(share, torch.ones_like(share))
        assert (spectrum.dominant == spectrum.joint).all()
        assert spectrum.phase_error.abs().max() < 1e-5
    assert set(spectrum.joint.tolist()) == set(range(1, 8))  # 16 powers; n / 2 is left out


def test_zero_stays_apart_in_multiplication():
    net = analytic_network(7, width=8, arithmetic="multiply")
    assert not net.U[0].any()
    assert not net.V[0].any()
    assert not net.W[:, 0].any()
    assert not net.mu.any()


def test_a_seed_means_one_network():
    one, again, other = (analytic_network(11, width=8, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one.U, again.U)
    assert not torch.equal(one.U, other.U)


def test_circles_too_small_are_refused():
    with pytest.raises(
        ConfigError, match=r"`modulus` \(=3\) must give a circle of at least 3 residues; .* has 2"
    ):
        analytic_network(3, width=4, arithmetic="multiply")
    with pytest.raises(ConfigError, match=r"modulo 2 has a circle of 1 residue"):
        analytic_network(2, width=4, arithmetic="multiply")
    with pytest.raises(ConfigError, match=r"`modulus` \(=9\) must be a prime"):
        analytic_network(9, width=4, arithmetic="multiply")
