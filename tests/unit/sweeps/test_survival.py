"""Survival curves of the onset: products computed by hand, and runs that are censored."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from synthetic_sweep import PAPER_LIKE, run_row, synthetic_sweep, typed

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.sweeps.survival import survival_curves, survival_summary


def runs(*specs: tuple[str, int | None]) -> pd.DataFrame:
    """Runs of one cell: what became of each, and its onset."""
    return typed(
        [run_row(what, seed, {"ratio": 0.9}, onset) for seed, (what, onset) in enumerate(specs)]
    )


def test_the_curve_is_the_product_over_event_steps():
    table = runs(
        ("generalised", 100),
        ("generalised", 200),
        ("transient", 200),
        ("partial", 500),
        ("shortcut", None),
        ("shortcut", None),
    )
    table.loc[4, "last_step"] = 300  # censored between the events
    curve = survival_curves(table)
    assert curve["step"].tolist() == [0, 100, 200, 300, 500, 1500]
    expected = [1, 5 / 6, 5 / 6 * 3 / 5, 1 / 2, 1 / 2 * 1 / 2, 1 / 4]
    np.testing.assert_allclose(curve["surviving"], expected)
    assert curve["at_risk"].tolist() == [6, 6, 5, 3, 2, 1]
    assert curve["events"].tolist() == [0, 1, 2, 0, 1, 0]
    assert curve["censored"].tolist() == [0, 0, 0, 1, 0, 1]
    (row,) = survival_summary(table).to_dict("records")
    assert (row["n"], row["events"], row["censored"], row["median"]) == (6, 4, 2, 200)


def test_the_interval_is_the_log_log_one():
    curve = survival_curves(runs(*[("generalised", 100 * k) for k in (1, 2, 3, 4)]))
    s, var = 3 / 4, 1 / (4 * 3)  # Greenwood's sum after the first of four
    half = 1.959964 * np.sqrt(var) / abs(np.log(s))
    assert curve["low"][1] == pytest.approx(s ** np.exp(half), rel=1e-5)
    assert curve["high"][1] == pytest.approx(s ** np.exp(-half), rel=1e-5)
    assert np.isnan(curve["low"].iloc[0])
    assert np.isnan(curve["low"].iloc[-1])


def test_dropping_the_runs_without_onset_would_give_another_median():
    table = runs(("generalised", 100), *[("shortcut", None)] * 3)
    (row,) = survival_summary(table).to_dict("records")
    assert (row["events"], row["censored"]) == (1, 3)
    assert pd.isna(row["median"])  # not reached
    assert pd.isna(row["median_high"])


def test_a_median_has_an_interval_where_the_curve_has_one():
    table = runs(*[("generalised", 100 * (k + 1)) for k in range(10)])
    curve, (row,) = survival_curves(table), survival_summary(table).to_dict("records")
    assert row["median"] == 500
    assert row["median_low"] == curve.loc[curve["low"] <= 0.5, "step"].min() < 500
    assert row["median_high"] == curve.loc[curve["high"] <= 0.5, "step"].min() > 500


def test_a_direct_run_leaves_when_its_rule_is_complete():
    table = runs(("direct", 200), ("generalised", 700))  # direct: complete at 300, no onset
    onset = survival_curves(table)
    assert onset["step"].tolist() == [0, 300, 700]
    assert onset["censored"].tolist() == [0, 1, 0]
    assert onset["surviving"].tolist() == [1, 1, 0]
    completion = survival_curves(table, event="completion")
    assert completion["step"].tolist() == [0, 300, 800]
    assert completion["surviving"].tolist() == [1, 0.5, 0]


def test_runs_that_have_not_ended_are_in_no_curve_but_are_counted():
    table = synthetic_sweep(PAPER_LIKE)
    summary = survival_summary(table)
    assert summary["n"].tolist() == [10, 9, 10, 9]
    assert (summary["events"] + summary["censored"]).tolist() == [10, 9, 10, 9]
    assert summary["unfinished"].tolist() == [0, 0, 0, 1]
    assert summary["events"].tolist() == [0, 0, 0, 8]
    assert summary["median"].tolist()[:3] == [pd.NA] * 3


def test_a_cell_without_an_ended_run_has_no_curve_and_a_row():
    table = runs(("failed", None))
    assert survival_curves(table).empty
    (row,) = survival_summary(table).to_dict("records")
    assert (row["n"], row["failed"]) == (0, 1)


def test_unknown_events_and_unknown_ends_are_refused():
    table = runs(("shortcut", None))
    with pytest.raises(ConfigError, match=r"`event` must be 'onset' or 'completion'; got 'lost'"):
        survival_curves(table, event="lost")
    table["last_step"] = pd.array([pd.NA], dtype="Int64")
    with pytest.raises(ConfigError, match=r"run 'runs/ratio09-seed0' has none"):
        survival_curves(table)
