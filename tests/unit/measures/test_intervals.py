"""Intervals against scipy's own and against the formula."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from interp_shortcuts.measures.intervals import mean_with_interval, proportion_interval


def test_proportion_equals_scipys_exact_interval():
    successes, n = np.array([0, 3, 50, 100]), np.array([10, 10, 100, 100])
    ours = proportion_interval(successes, n)
    for row, k, total in zip(ours, successes, n, strict=True):
        theirs = stats.binomtest(int(k), int(total)).proportion_ci(method="exact")
        assert row == pytest.approx([theirs.low, theirs.high], abs=1e-12)


def test_proportion_rule_of_three():
    assert proportion_interval(np.array(0), np.array(1000))[1] == pytest.approx(3.7e-3, rel=0.01)


def test_no_examples_is_nan():
    assert np.isnan(proportion_interval(np.array(0), np.array(0))).all()
    empty = mean_with_interval(np.zeros((0, 3)))
    assert np.isnan(empty.value).all()
    assert np.isnan(empty.interval).all()
    assert empty.n.tolist() == [0, 0, 0]


def test_mean_leaves_undefined_examples_out():
    values = np.array([[1.0, np.nan], [2.0, np.nan], [6.0, 5.0]])
    mean = mean_with_interval(values)
    assert mean.value.tolist() == [3.0, 5.0]
    assert mean.n.tolist() == [3, 1]
    half = stats.norm.ppf(0.975) * stats.sem([1.0, 2.0, 6.0])
    assert mean.interval[0] == pytest.approx([3 - half, 3 + half], abs=1e-12)
    assert np.isnan(mean.interval[1]).all()
