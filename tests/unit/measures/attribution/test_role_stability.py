"""Statistics over seeds: intervals, roles by identity against all shuffles, thresholds."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.attribution.stability import (
    mean_over_seeds,
    role_stability,
    threshold_agreement,
)

NAMES = ("L0.H0", "L0.mlp", "L1.H0")


def row(table, **where):
    found = [r for r in table.to_dict("records") if all(r[k] == v for k, v in where.items())]
    (only,) = found
    return only


def test_the_interval_is_students():
    values = np.array([0.1, 0.5, 0.4, 0.9])
    found = mean_over_seeds([*values, np.nan])
    low, high = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.mean == pytest.approx(0.475)
    assert found.sd == pytest.approx(values.std(ddof=1))
    assert (found.n, found.n_undefined) == (4, 1)
    # four values of which the smallest is 0.1: no resample lies outside of the values seen
    assert 0.1 <= found.bootstrap_low < found.mean < found.bootstrap_high <= 0.9


def test_the_bootstrap_has_a_stream_of_its_own():
    first = mean_over_seeds([0.1, 0.5, 0.4, 0.9], seed=3)
    assert mean_over_seeds([0.1, 0.5, 0.4, 0.9], seed=3) == first
    other = mean_over_seeds([0.1, 0.5, 0.4, 0.9], n_resamples=50, seed=4)
    assert other.mean == first.mean
    assert other.bootstrap_low != first.bootstrap_low


def test_the_bootstrap_agrees_with_all_resamples():
    values = [0.0, 0.3, 1.0]
    means = [np.mean(drawn) for drawn in product(values, repeat=3)]
    low, high = np.percentile(means, [2.5, 97.5], method="inverted_cdf")
    found = mean_over_seeds(values, n_resamples=40_000)
    assert (found.bootstrap_low, found.bootstrap_high) == pytest.approx((low, high), abs=0.02)


def test_one_seed_has_no_interval_and_none_no_mean():
    alone, none = mean_over_seeds([0.3]), mean_over_seeds([np.nan])
    assert alone.mean == 0.3
    assert np.isnan([alone.sd, alone.low, alone.bootstrap_high]).all()
    assert alone.reason == "one seed alone has no interval"
    assert np.isnan(none.mean)
    assert (none.n, none.n_undefined, none.reason) == (0, 1, "no seed defines it")


def test_roles_are_counted_by_identity_and_layer():
    attribution = np.array([[1, 2, 3], [1, 3, 2], [np.nan] * 3], dtype=float)
    importance = np.array([[3, 2, 1], [3, 1, 2], [1, 2, 3]], dtype=float)
    found = role_stability(attribution, importance, NAMES, threshold=2.0, n_permutations=10)
    assert (found.n_seeds, found.n_undefined) == (2, 1)
    assert row(found.identities, component="L0.H0", side="hero")["seeds"] == 2
    assert row(found.identities, component="L1.H0", side="bloat")["seeds"] == 1
    assert row(found.identities, component="L0.mlp", side="bloat")["seeds"] == 1
    layer = row(found.layers, layer=0, side="bloat")
    assert (layer["count"], layer["of"]) == (1, 4)
    most = found.most("hero")
    assert most is not None
    assert most["component"] == "L0.H0"


def test_p_values_are_those_of_all_shuffles():
    attribution = np.array([[1, 2, 3], [1, 3, 2]], dtype=float)
    importance = np.array([[3, 2, 1], [3, 1, 2]], dtype=float)
    found = role_stability(attribution, importance, NAMES, threshold=2.0, n_permutations=20_000)
    whole = np.array(list(product(permutations(importance[0]), permutations(importance[1]))))
    heroes = (attribution - whole <= -2).sum(axis=1)  # shuffle component
    observed = (attribution - importance <= -2).sum(axis=0)
    for index, name in enumerate(NAMES):
        own = row(found.identities, component=name, side="hero")
        assert own["expected"] == pytest.approx(heroes[:, index].mean(), abs=0.02)
        assert own["p"] == pytest.approx((heroes[:, index] >= observed[index]).mean(), abs=0.02)
        any_of_them = (heroes.max(axis=1) >= observed[index]).mean()
        assert own["p_any"] == pytest.approx(any_of_them, abs=0.02)
    # L0.H0 is a hero in both: 1/3 of the shuffles of each seed put rank 3 there
    assert row(found.identities, component="L0.H0", side="hero")["p"] == pytest.approx(
        1 / 9, abs=0.01
    )


def test_p_for_any_is_larger_than_p_for_one():
    attribution = np.array([[1, 2, 3], [2, 1, 3]], dtype=float)
    importance = np.array([[3, 2, 1], [1, 3, 2]], dtype=float)
    found = role_stability(attribution, importance, NAMES, threshold=2.0, n_permutations=20_000)
    own = row(found.identities, component="L0.H0", side="hero")
    # each seed has one component that can be a hero, in 1/3 of its shuffles
    assert own["seeds"] == 1
    assert own["p"] == pytest.approx(1 / 3, abs=0.02)
    assert own["p_any"] == pytest.approx(1 - (2 / 3) ** 2, abs=0.02)


def test_no_p_value_is_zero_and_the_stream_decides():
    attribution = np.tile(np.arange(1.0, 9), (12, 1))
    importance = attribution[:, ::-1]
    names = [f"L{layer}.H{head}" for layer in range(2) for head in range(4)]
    found = role_stability(attribution, importance, names, threshold=6.0, n_permutations=99)
    assert row(found.identities, component="L0.H0", side="hero")["p_any"] == 0.01
    again = role_stability(attribution, importance, names, threshold=6.0, n_permutations=99)
    assert again.identities.equals(found.identities)
    other = role_stability(attribution, importance, names, threshold=6.0, n_permutations=99, seed=1)
    assert not other.identities["expected"].equals(found.identities["expected"])


def test_most_is_none_where_no_component_ever_has_the_role():
    ranks = np.array([[1.0, 2, 3]])
    found = role_stability(ranks, ranks, NAMES, threshold=2.0, n_permutations=5)
    assert found.most("hero") is None


def test_agreement_of_thresholds_by_hand():
    delta = np.array([[-8, -5, 0, 6, 9], [np.nan] * 5])
    found = threshold_agreement(delta, thresholds=(4.0, 6.0, 8.0), reference=6.0)
    assert found["heroes"].tolist() == [2, 1, 1]
    assert found["bloats"].tolist() == [2, 2, 1]
    assert found["same_role"].tolist() == [0.8, 1.0, 0.8]
    assert found["shared_heroes"].tolist() == [0.5, 1.0, 1.0]
    assert found["shared_bloats"].tolist() == [1.0, 1.0, 0.5]
    assert found["seeds"].tolist() == [1, 1, 1]
    none = threshold_agreement(np.zeros((1, 3)), thresholds=(6.0,))
    assert np.isnan(none["shared_heroes"][0])


def test_misuse_is_said():
    ranks = np.ones((2, 3))
    with pytest.raises(MeasureError, match=r"over 2 components; got shapes \(2, 3\)"):
        role_stability(ranks, ranks, ("L0.H0", "L0.H1"))
    with pytest.raises(MeasureError, match="`n_permutations` must be at least 1; got 0"):
        role_stability(ranks, ranks, NAMES, n_permutations=0)
    with pytest.raises(MeasureError, match="`n_resamples` must be at least 1; got 0"):
        mean_over_seeds([0.1], n_resamples=0)
