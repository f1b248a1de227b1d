"""Runs under label noise side by side: cells, means over seeds, counts, what is excluded."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from synthetic_modular import modular_dataset, modular_timeline

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.sweeps.hidden_cells import hidden_cells, why_no_descent
from interp_shortcuts.sweeps.hidden_cells_text import cells_sentences
from interp_shortcuts.timelines.timeline import Timeline

RAW = {0: 0.1, 1: 0.2, 2: 0.6}
BARE = {"spectra": False, "partition": False}


def line(seed: int, **options) -> Timeline:
    return modular_timeline(seed, full_test=RAW[seed], **BARE, **options)


@pytest.fixture(scope="module")
def seeds():
    lines = {f"seed{s}": line(s, hidden_from=None if s == 2 else 2 + s) for s in RAW}
    lines["early"] = line(0, width=9)  # excluded: its setting makes no cell
    return hidden_cells(lines, excluded={"early": "stopped", "lost": "out of memory"})


@pytest.fixture(scope="module")
def cells():
    lines = {
        f"w{w}-n{n}-s{s}": line(s, width=w, noise=n)
        for w in (17, 65)
        for n in (0.0, 0.4)
        for s in RAW
    }
    return hidden_cells(lines)


def test_means_are_over_seeds_with_a_t_interval(seeds):
    row = seeds.finals[
        (seeds.finals["network"] == "full")
        & (seeds.finals["acting"] == "trained")
        & (seeds.finals["group"] == "test")
    ].iloc[0]
    values = np.array(list(RAW.values()))
    half = 4.302653 * values.std(ddof=1) / np.sqrt(3)  # t(2) at 97.5%
    assert row["mean"] == pytest.approx(values.mean())
    assert row["high"] == pytest.approx(values.mean() + half, rel=1e-4)
    assert row["n"] == 3


def test_events_are_counted_with_exact_intervals(seeds):
    row = seeds.events[seeds.events["acting"] == "quadratic"].iloc[0]
    exact = binomtest(2, 3).proportion_ci(method="exact")
    assert (row["count"], row["n"]) == (2, 3)
    assert (row["low"], row["high"]) == pytest.approx((exact.low, exact.high))
    assert (row["earliest"], row["median"], row["latest"]) == (250, 375, 500)
    first = seeds.first[seeds.first["level"] == 0.5].iloc[0]
    assert (first["noisy"], first["n"], first["unknown"]) == (3, 3, 0)


def test_excluded_runs_are_listed_and_in_no_number(seeds):
    assert list(seeds.cells) == ["all runs"]
    assert seeds.runs["run"].tolist() == ["seed0", "seed1", "seed2", "early", "lost"]
    assert seeds.runs["reason"].tolist()[3:] == ["stopped", "out of memory"]
    assert set(seeds.progress) == {"seed0", "seed1", "seed2"}
    unmeasured = Timeline(modular_dataset()[["power"]])
    found = hidden_cells({"a": unmeasured})
    assert found.excluded == {"a": "no group was measured"}
    assert cells_sentences(found) == ["No run counts. 1 run is excluded and in no number."]
    with pytest.raises(MeasureError, match="`timelines` must hold at least one run"):
        hidden_cells({})


def test_runs_that_differ_in_more_than_the_seed_make_cells(cells):
    assert list(cells.cells) == [
        *("noise=0, width=17", "noise=0, width=65"),
        *("noise=0.4, width=17", "noise=0.4, width=65"),
    ]
    assert cells.differing == ("task.noise", "model.width")
    assert cells.shared["task.modulus"] == 59
    clean = cells.first[cells.first["cell"] == "noise=0, width=17"].iloc[0]
    assert (clean["n"], clean["unknown"]) == (0, 3)
    assert np.isnan(clean["low"])


def test_test_accuracy_over_the_width_is_a_line_for_every_noise(cells):
    own = cells.descent[
        (cells.descent["network"] == "full")
        & (cells.descent["acting"] == "trained")
        & (cells.descent["group"] == "test")
    ]
    assert own["line"].tolist() == ["noise=0", "noise=0.4"] * 2
    assert own["width"].tolist() == [17, 17, 65, 65]
    assert own["mean"].to_numpy() == pytest.approx(0.3)
    assert why_no_descent(cells) == ""
    assert why_no_descent(hidden_cells({"a": line(0)})) == "the runs have one width only"


def test_courses_are_means_over_the_seeds_measured_at_a_step():
    short = {"steps": (0, 100, 250)}
    found = hidden_cells({"a": line(0), "b": line(1), "c": line(2, **short)})
    own = found.course[(found.course["network"] == "full") & (found.course["group"] == "test")]
    by_step = own.set_index("step")
    assert by_step.loc[100, "mean"] == pytest.approx(0.3)
    assert by_step.loc[100, "n"] == 3
    assert by_step.loc[2000, "mean"] == pytest.approx(0.15)
    assert by_step.loc[2000, "n"] == 2


def test_the_sentences_count_seeds_and_cells(seeds, cells):
    text = cells_sentences(seeds)
    assert text[0].startswith("Over 3 seeds: of the test pairs, the network itself has 0.30 (")
    assert text[0].endswith("2 runs are excluded and in no number.")
    assert (
        "Network G with the quadratic activation reaches a test accuracy of 0.99 for good in 2 of "
        "3 seeds (0.09 to 0.99), at step 375 in the median (250 to 500)."
    ) in text
    many = cells_sentences(cells)
    assert many[0] == "12 runs in 4 cells, which differ in task.noise and model.width."
    assert many[1].endswith("in no seed of any of 4 cells.")
    assert many[3].endswith("in every seed of all 4 cells.")
    assert "(6 of 6 runs)" in many[-1]
