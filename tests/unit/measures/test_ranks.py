"""Ranks and Spearman correlations: theory first, then scipy as the slow reference."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from interp_shortcuts.measures.ranks import average_ranks, spearman, spearman_ceiling


def test_ties_share_the_mean_of_their_ranks():
    ranks = average_ranks(np.array([3.0, 1.0, 3.0, 7.0]))
    assert ranks.tolist() == [2.5, 1.0, 2.5, 4.0]


def test_values_closer_than_the_resolution_are_tied():
    third = 0.1 + 0.2  # 0.30000000000000004
    assert average_ranks(np.array([0.3, third, 0.1])).tolist() == [2.5, 2.5, 1.0]
    assert average_ranks(np.array([0.3, 0.3 + 1e-6, 0.1])).tolist() == [2.0, 3.0, 1.0]
    near = average_ranks(np.array([0.3, 0.3 + 1e-7, 0.1]), resolution=1e-6)
    assert near.tolist() == [2.5, 2.5, 1.0]


def test_ranks_equal_scipy_on_many_axes():
    values = np.random.default_rng(0).integers(0, 6, size=(3, 4, 7)).astype(np.float64)
    assert np.array_equal(average_ranks(values), stats.rankdata(values, axis=-1))


def test_empty_and_single():
    assert average_ranks(np.zeros((2, 0))).shape == (2, 0)
    assert average_ranks(np.array([[5.0]])).tolist() == [[1.0]]
    assert np.isnan(spearman(np.array([5.0]), np.array([1.0])))


def test_monotone_is_exactly_one():
    values = np.arange(10.0)
    assert spearman(np.exp(values), values) == 1.0
    assert spearman(-(values**3), values) == -1.0


@pytest.mark.parametrize("constant", [0.0, 1.0, -1e9])
def test_constant_is_nan(constant):
    noise = 1e-12 * np.random.default_rng(0).standard_normal(10)
    assert np.isnan(spearman(np.full(10, constant), np.arange(10.0)))
    assert np.isnan(spearman(np.arange(10.0), constant * (1 + noise)))


def test_spearman_equals_scipy():
    random = np.random.default_rng(1)
    first = random.integers(0, 5, size=(20, 8)).astype(np.float64)
    second = random.standard_normal((20, 8))
    ours = spearman(first, second)
    theirs = [stats.spearmanr(a, b).statistic for a, b in zip(first, second, strict=True)]
    assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("n_integers", [4, 10, 40])
def test_ceiling_of_a_balanced_binary_feature(n_integers):
    values = np.random.default_rng(n_integers).permutation(n_integers).astype(np.float64)
    parity = np.arange(n_integers) % 2.0
    theory = math.sqrt(3) / 2 * math.sqrt(n_integers**2 / (n_integers**2 - 1))
    assert spearman_ceiling(values, parity) == pytest.approx(theory, abs=1e-12)


def test_ceiling_is_the_best_of_all_arrangements():
    values = np.array([0.0, 0.0, 1.0, 4.0, 9.0])
    target = np.array([0.0, 1.0, 1.0, 2.0, 2.0])
    best = max(spearman(np.array(p), target) for p in itertools.permutations(values))
    assert spearman_ceiling(values, target) == pytest.approx(best, abs=1e-12)
