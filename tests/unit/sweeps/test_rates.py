"""Rates over seeds: exact intervals, and runs that do not count are counted apart."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from synthetic_sweep import PAPER_LIKE, counts_table, synthetic_sweep

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.sweeps.rates import chance_distances, generalisation_rates


def test_rates_and_intervals_are_those_of_an_exact_binomial_test():
    rates = generalisation_rates(counts_table({(1, 0.5): (3, 10), (2, 0.9): (4, 4)}))
    assert list(rates["generalised"]) == [3, 4]
    assert list(rates["generalised_rate"]) == [0.3, 1.0]
    for row in rates.itertuples():
        exact = binomtest(row.generalised, row.n).proportion_ci(0.95, "exact")
        assert (row.generalised_low, row.generalised_high) == pytest.approx((exact.low, exact.high))
    # all of four: the lower end is the p at which p**4 = 0.025
    assert rates["generalised_low"][1] == pytest.approx(0.025 ** (1 / 4))


def test_every_run_is_counted_once_in_n_or_by_its_reason():
    what = ["generalised", "transient", "direct", "shortcut", "undetermined"]
    what += ["failed", "diverged", "diverged", "pending", "running", "stopped"]
    (row,) = generalisation_rates(synthetic_sweep([({"ratio": 0.9}, what)])).to_dict("records")
    assert (row["runs"], row["n"]) == (11, 4)
    reasons = {name: row[name] for name in ("failed", "diverged", "unfinished", "unmeasured")}
    assert reasons == {"failed": 1, "diverged": 2, "unfinished": 3, "unmeasured": 1}
    assert row["n"] + sum(reasons.values()) == row["runs"]
    assert (row["generalised"], row["lasting"], row["transient"]) == (3, 2, 1)
    assert (row["generalised_rate"], row["transient_rate"]) == (0.75, 0.25)


def test_a_cell_without_an_ended_run_has_no_rate():
    (row,) = generalisation_rates(synthetic_sweep([({"ratio": 0.9}, ["failed"])])).to_dict(
        "records"
    )
    assert (row["runs"], row["n"], row["failed"]) == (1, 0, 1)
    assert np.isnan([row["generalised_rate"], row["generalised_low"], row["lasting_high"]]).all()


def test_cells_keep_the_order_of_the_table_and_their_settings():
    rates = generalisation_rates(synthetic_sweep(PAPER_LIKE))
    assert list(rates["n_layers"]) == [1, 1, 2, 2]
    assert list(rates["ratio"]) == [0.5, 0.9, 0.5, 0.9]
    assert list(rates["n"]) == [10, 9, 10, 9]
    assert rates.columns[0] == "cell"
    assert "n_steps" in rates


def test_runs_of_one_cell_must_share_their_setting():
    table = synthetic_sweep([({"ratio": 0.9}, ["shortcut", "shortcut"])])
    table.loc[1, "n_heads"] = 1
    with pytest.raises(ConfigError, match=r"those of 'ratio=0.9' differ in n_heads"):
        generalisation_rates(table)


def test_a_missing_column_is_named():
    table = counts_table({(1, 0.5): (1, 2)}).drop(columns="lasting")
    with pytest.raises(ConfigError, match="must have the columns lasting; it has cell, seed"):
        generalisation_rates(table)


def test_the_distance_from_chance_is_read_on_both_sides():
    cells = [({"ratio": ratio}, ["shortcut"]) for ratio in (0.1, 0.5, 0.9)]
    rates = chance_distances(synthetic_sweep(cells))
    np.testing.assert_allclose(rates["distance"], [0.4, 0.0, 0.4])
    assert list(rates["side"]) == ["below", "at", "above"]
    third = synthetic_sweep([({"ratio": 1 / 3}, ["shortcut"])])
    third["chance"] = 1 / 3
    assert chance_distances(third)["side"].tolist() == ["at"]
