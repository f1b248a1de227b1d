"""Ranks, gap and roles of one seed: values one can derive, then scipy as a plain reference."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.attribution.gap import RankGap, by_size, rank_gap, roles


def gap_of(attribution: list, importance: list) -> RankGap:
    return rank_gap(np.array(attribution, float), np.array(importance, float))


def test_the_same_order_has_rho_one_and_no_gap():
    found = gap_of([0.1, 5.0, 0.2], [-1.0, 7.0, 0.0])
    assert found.rho == 1.0
    assert found.delta.tolist() == [0, 0, 0]
    assert found.reason == ""
    assert gap_of([1, 2, 3], [3, 2, 1]).rho == -1.0


def test_the_gap_is_rank_by_attribution_minus_rank_by_importance():
    # attribution ranks 1 2 3 4; importance ranks 4 1.5 1.5 3 (the two zeros share 1 and 2)
    found = gap_of([1, 2, 3, 4], [0.9, 0.0, 0.0, 0.5])
    assert found.attribution_rank.tolist() == [1, 2, 3, 4]
    assert found.importance_rank.tolist() == [4, 1.5, 1.5, 3]
    assert found.delta.tolist() == [-3, 0.5, 1.5, 1]
    assert found.roles(3.0) == ("hero", "aligned", "aligned", "aligned")


def test_rho_is_scipys_with_ties():
    stream = np.random.default_rng(3)
    for _ in range(20):
        attribution = stream.normal(size=20)
        importance = stream.integers(0, 5, size=20) / 100
        expected = spearmanr(attribution, importance).statistic
        assert rank_gap(attribution, importance).rho == pytest.approx(expected, abs=1e-12)


def test_roles_begin_at_the_threshold_itself():
    assert roles([-6.0, -5.5, 0.0, 5.5, 6.0]) == ("hero", "aligned", "aligned", "aligned", "bloat")
    assert roles([-4.0, 4.0, np.nan], 4.0) == ("hero", "bloat", "undefined")


def test_components_of_a_role_come_by_the_size_of_their_gap():
    names = ("L0.H0", "L0.H1", "L1.H0", "L1.H1")
    assert by_size(np.array([-6, -9, 7, -9]), names, "hero", 6.0) == ("L0.H1", "L1.H1", "L0.H0")
    assert by_size(np.array([-6, -9, 7, -9]), names, "bloat", 6.0) == ("L1.H0",)


@pytest.mark.parametrize(
    ("attribution", "importance", "reason"),
    [
        ([1, 2, 3], [0, 0, 0], "the importance is the same for all components"),
        ([2, 2, 2], [1, 2, 3], "the attribution is the same for all components"),
        ([1, np.nan, 3], [1, 2, 3], "the attribution of 1 of 3 components is undefined"),
        ([1, 2, 3], [np.nan] * 3, "the importance of 3 of 3 components is undefined"),
    ],
)
def test_without_an_order_rho_and_gap_are_undefined_with_a_reason(attribution, importance, reason):
    found = gap_of(attribution, importance)
    assert np.isnan(found.rho)
    assert np.isnan(found.delta).all()
    assert found.reason == reason
    assert set(found.roles()) == {"undefined"}


def test_values_that_differ_by_rounding_are_tied():
    found = gap_of([1, 2, 3], [0.5, 0.5 + 1e-9, 0.1])
    assert found.importance_rank.tolist() == [2.5, 2.5, 1]


def test_misuse_is_said():
    with pytest.raises(MeasureError, match=r"got shapes \(2,\) and \(3,\)"):
        rank_gap([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(MeasureError, match="`threshold` must be above 0; got 0"):
        roles([1.0], 0.0)
