"""The figures of a sweep: each draws the numbers that `sweeps` gave, and every run."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from synthetic_sweep import PAPER_LIKE, synthetic_sweep
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.plots.palette import outcome_style
from interp_shortcuts.plots.sweep_aligned import aligned_figure, aligned_groups, missing_for_aligned
from interp_shortcuts.plots.sweep_factors import chance_distance_figure, weight_decay_figure
from interp_shortcuts.plots.sweep_frame import MANY_RUNS
from interp_shortcuts.plots.sweep_heads import heads_onset_figure
from interp_shortcuts.plots.sweep_interaction import interaction_figure
from interp_shortcuts.plots.sweep_rates import rate_figure
from interp_shortcuts.plots.sweep_survival import survival_figure
from interp_shortcuts.sweeps.alignment import Aligned, align
from interp_shortcuts.sweeps.interaction import find_interaction
from interp_shortcuts.timelines.timeline import Timeline


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return synthetic_sweep(PAPER_LIKE)


def trace(figure, name: str):
    (found,) = [one for one in figure.data if one.name == name]
    return found


def shown(figure) -> list[str]:
    return [one.name for one in figure.data if one.showlegend]


def test_rates_have_a_mark_a_bar_and_a_dot_for_every_run_that_counts(table):
    figure = rate_figure(table)
    rate = trace(figure, "rate")
    assert list(rate.x) == pytest.approx([0.3, 0, 0, 7 / 9])
    # 7 of 9 from a table of exact limits: 0.400 to 0.972
    assert rate.x[3] - rate.error_x.arrayminus[3] == pytest.approx(0.400, abs=5e-4)
    assert rate.x[3] + rate.error_x.array[3] == pytest.approx(0.972, abs=5e-4)
    assert [row[7] for row in rate.customdata] == ["none", "1 failed", "none", "1 unfinished"]
    dots = [one for one in figure.data if one.name != "rate"]
    assert sum(len(one.x) for one in dots) == 38
    # the runs that generalised lie left of the rate, the others right of it
    last = {one.name: one for one in dots}
    cell = rate.y[3]
    at = {name: [x for x, y in zip(d.x, d.y, strict=True) if y - cell < 30 and y > cell]
          for name, d in last.items()}  # fmt: skip
    assert max(at["generalised"] + at["transient"]) < 7 / 9 < min(at["partial"] + at["shortcut"])
    assert last["transient"].marker.color == outcome_style("transient").colour
    texts = [note.text for note in figure.layout.annotations]
    assert "n_layers=2, ratio=0.9" in texts
    assert "<b>7 of 9</b>" in texts


def test_many_runs_in_a_cell_are_not_drawn_one_by_one():
    many = synthetic_sweep([({"ratio": 0.9}, ["shortcut"] * (MANY_RUNS + 1))])
    assert [one.name for one in rate_figure(many).data] == ["rate"]


def test_a_table_without_ended_runs_has_no_rates():
    with pytest.raises(ConfigError, match="cannot be drawn: no run has ended yet"):
        rate_figure(synthetic_sweep([({"ratio": 0.9}, ["pending"])]))
    lost = synthetic_sweep([({"ratio": 0.9}, ["diverged", "failed", "diverged", "running"])])
    with pytest.raises(ConfigError, match="drawn: no run counts: 1 failed, 2 diverged"):
        rate_figure(lost)


def test_a_cell_whose_runs_were_all_lost_says_how():
    cells = [
        ({"ratio": 0.5}, ["shortcut"]),
        ({"ratio": 0.7}, ["diverged", "diverged", "failed"]),
        ({"ratio": 0.9}, ["pending"]),
    ]
    texts = [note.text for note in rate_figure(synthetic_sweep(cells)).layout.annotations]
    said = [text for text in texts if text.startswith(("<b>0 of", "no run"))]
    assert said == ["<b>0 of 1</b>", "no run counts: 1 failed, 2 diverged", "no run ended"]


def test_a_run_without_an_accuracy_at_its_end_is_still_a_dot():
    runs = synthetic_sweep([({"ratio": 0.9}, ["shortcut", "shortcut"])])
    runs.loc[1, "final_adversarial"] = pd.NA
    dots = trace(rate_figure(runs), "shortcut")
    assert [row[3] for row in dots.customdata] == ["0.05", "not known"]


def test_the_interaction_is_two_lines_with_every_run_above_or_below(table):
    found = find_interaction(table, n_resamples=50)
    figure = interaction_figure(found)
    assert shown(figure) == ["n_layers 1", "n_layers 2"]
    assert list(trace(figure, "n_layers 2").y) == pytest.approx([0, 7 / 9])
    dots = trace(figure, "n_layers 2, runs")
    assert sum(y > 1 for y in dots.y) == 7
    assert sum(y < 0 for y in dots.y) == 12
    assert "+1.08" in figure.layout.annotations[0].text
    with pytest.raises(ConfigError, match=r"no run with n_layers=1, ratio=0\.5 has ended"):
        interaction_figure(
            find_interaction(table.assign(status=["failed"] * 10 + ["finished"] * 30))
        )


def test_survival_lines_step_down_where_runs_have_the_event(table):
    figure = survival_figure(table)
    assert shown(figure)[3] == "n_layers=2, ratio=0.9: 8 of 9"
    line = trace(figure, "n_layers=2, ratio=0.9: 8 of 9")
    assert line.line.shape == "hv"
    assert list(line.y[:3]) == pytest.approx([1, 8 / 9, 7 / 9])
    assert line.x[-1] == 1500
    ticks = trace(figure, "n_layers=1, ratio=0.9, censored")
    assert list(ticks.x) == [1500]
    assert ticks.customdata[0][0] == 9
    completion = survival_figure(table, event="completion")
    assert shown(completion)[0] == "n_layers=1, ratio=0.5: 3 of 10"
    with pytest.raises(ConfigError, match="no onset among the runs that have ended"):
        survival_figure(table[table["n_layers"] == 1])


def test_rates_against_the_distance_from_chance_tell_the_sides_apart():
    cells = [({"ratio": r, "n_layers": n}, ["generalised", "shortcut"]) for n in (1, 2)
             for r in (0.1, 0.5, 0.7, 0.9)]  # fmt: skip
    figure = chance_distance_figure(synthetic_sweep(cells))
    assert shown(figure) == ["n_layers=1", "n_layers=1, below chance",
                             "n_layers=2", "n_layers=2, below chance"]  # fmt: skip
    above, below = trace(figure, "n_layers=1"), trace(figure, "n_layers=1, below chance")
    assert list(np.diff(above.x)) == pytest.approx([0.2, 0.2])
    assert below.marker.symbol.endswith("-open")
    assert len(below.x) == 1
    with pytest.raises(ConfigError, match=r"one ratio only \(0.5\)"):
        chance_distance_figure(synthetic_sweep([({"ratio": 0.5}, ["shortcut"])]))


def test_weight_decay_shows_what_lasts_and_what_is_lost():
    cells = [({"weight_decay": w}, ["generalised"] * 2 + ["transient"] * t) for w, t in
             ((0.4, 2), (0.1, 0))]  # fmt: skip
    figure = weight_decay_figure(synthetic_sweep(cells))
    assert shown(figure) == ["lasting", "transient"]
    assert list(trace(figure, "lasting").y) == [1.0, 0.5]  # weight decay 0.1, then 0.4
    assert list(trace(figure, "transient").y) == [0.0, 0.5]
    assert list(figure.layout.xaxis.ticktext) == ["0.1", "0.4"]


def test_every_onset_is_a_dot_and_every_run_without_one_a_triangle():
    cells = [({"n_heads": h}, ["generalised"] * 3 + ["shortcut"] * s) for h, s in ((1, 4), (2, 0))]
    figure = heads_onset_figure(synthetic_sweep(cells))
    assert sorted(trace(figure, "all cells").y) == [300, 300, 310, 310, 320, 320]
    none = trace(figure, "all cells, no onset")
    assert list(none.y) == [1500] * 4
    median = trace(figure, "all cells, median")
    assert list(median.y) == [310]  # not reached with one head: it is left out
    assert list(median.error_y.array) == [1190]  # its upper end is not reached: to the end
    assert median.customdata[0][4] == "not reached"
    with pytest.raises(ConfigError, match=r"one n_heads only \(2\)"):
        heads_onset_figure(synthetic_sweep(PAPER_LIKE))


@pytest.fixture(scope="module")
def aligned(table) -> Aligned:
    runs = table.copy()
    lines = {}
    for row in runs[runs["outcome"].isin(["generalised", "partial"])].to_dict("records"):
        data = synthetic_dataset(row["outcome"], seed=row["seed"], n_steps=40, causal_every=2)
        lines[row["run"]] = Timeline(data)
        runs.loc[runs["run"] == row["run"], "onset"] = lines[row["run"]].phases().onset
    return align(runs, lines, points=10)


def test_aligned_panels_show_median_quartiles_and_n(aligned):
    assert aligned_groups(aligned) == [
        ("n_layers=2, ratio=0.9", "generalised"),
        ("n_layers=2, ratio=0.9", "partial"),
    ]
    figure = aligned_figure(aligned, cell="n_layers=2, ratio=0.9", outcome="generalised")
    assert len([name for name in figure.to_dict()["layout"] if name.startswith("yaxis")]) == 7
    line = trace(figure, "adversarial")
    own = aligned.curves[
        (aligned.curves["quantity"] == "adversarial_accuracy")
        & (aligned.curves["outcome"] == "generalised")
    ]
    assert list(line.y) == own["median"].tolist()
    assert {row[2] for row in line.customdata} == {5}
    # single heads are no lines of the transfer panels, sets are
    transfers = [one for one in figure.data if "rule transfer" in (one.hovertemplate or "")]
    assert {"all heads", "L1.mlp"} <= {one.name for one in transfers}
    assert not any("head " in one.name for one in transfers)
    alone = aligned_figure(aligned, cell="n_layers=2, ratio=0.9", outcome="partial")
    assert not any("quartiles" in one.name for one in alone.data)


def test_unknown_groups_and_no_curves_are_said(aligned):
    with pytest.raises(ConfigError, match=r"of aligned runs, .*partial\); got 'x' \(shortcut\)"):
        aligned_figure(aligned, cell="x", outcome="shortcut")
    assert missing_for_aligned(None) == "no run was tracked"
    empty = Aligned(aligned.curves.iloc[:0], aligned.runs)
    assert missing_for_aligned(empty) == "no tracked run has an onset to align at"
