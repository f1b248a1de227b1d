"""The gap over seeds: who counts, what the tables hold, and that a known answer comes out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from synthetic_gap import BLOAT, HERO, gap_dataset, gap_timeline

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.timelines.attribution_gap import find_gap
from interp_shortcuts.timelines.gap_league import LEAGUE_COLUMNS, method_league
from interp_shortcuts.timelines.gap_over_seeds import OTHER_COMPONENTS, gaps_over_seeds
from interp_shortcuts.timelines.gap_tables import joint_table, pruning_table
from interp_shortcuts.timelines.gap_text import gap_sentences, seeds_sentences
from interp_shortcuts.timelines.timeline import Timeline

FEW = {"n_permutations": 200, "n_resamples": 200}


@pytest.fixture(scope="module")
def lines() -> dict[str, Timeline]:
    return {f"seed{seed}": gap_timeline(seed, separated_from=1 + seed % 3) for seed in range(5)}


@pytest.fixture(scope="module")
def found(lines):
    excluded = {"seed4": "no length fits", "lost": "training failed"}
    return gaps_over_seeds(lines, excluded=excluded, **FEW)


def row(table, **where):
    rows = [r for r in table.to_dict("records") if all(r[k] == v for k, v in where.items())]
    (only,) = rows
    return only


def test_the_mean_of_rho_is_over_the_runs_that_count(found, lines):
    rhos = [find_gap(lines[f"seed{seed}"]).rho[-1] for seed in range(4)]
    assert found.rho.mean == pytest.approx(np.mean(rhos))
    assert (found.rho.low, found.rho.high) == pytest.approx(
        stats.t.interval(0.95, 3, loc=np.mean(rhos), scale=stats.sem(rhos))
    )
    assert found.rho.n == 4


def test_every_run_is_listed_and_those_that_do_not_count_say_why(found):
    assert found.seeds["run"].tolist() == ["seed0", "seed1", "seed2", "seed3", "seed4", "lost"]
    out = row(found.seeds, run="seed4")
    assert (out["reason"], out["heroes"]) == ("no length fits", "")
    assert np.isnan(out["rho"])
    counted = row(found.seeds, run="seed1")
    assert (counted["seed"], counted["separation"], counted["n_examples"]) == (1, 200, 100)
    assert HERO in counted["heroes"]


def test_a_run_that_was_asked_at_no_length_is_excluded_by_itself(lines):
    data = gap_dataset(9)
    for name in data:
        data[name].attrs |= {"split": "none", "nan_means": "nothing is in [0.2, 0.75]"}
    found = gaps_over_seeds({**lines, "seed9": Timeline(data)}, **FEW)
    assert found.excluded == {"seed9": "nothing is in [0.2, 0.75]"}
    assert found.rho.n == 5


def test_undefined_is_not_excluded_and_counted_apart(lines):
    flat = {"flat": gap_timeline(7, constant_importance=True)}
    found = gaps_over_seeds({**lines, **flat}, **FEW)
    assert found.excluded == {}
    assert (found.rho.n, found.rho.n_undefined) == (5, 1)
    assert found.roles[6.0].n_undefined == 1
    assert "In 1 further run it is undefined." in seeds_sentences(found)[0]


def test_the_planted_hero_and_bloat_are_found_in_every_seed(found):
    for name, side in ((HERO, "hero"), (BLOAT, "bloat")):
        own = row(found.roles[6.0].identities, component=name, side=side)
        assert (own["seeds"], own["of"]) == (4, 4)
    assert set(found.roles) == {4.0, 6.0, 8.0}
    assert found.agreement["threshold"].tolist() == [4.0, 6.0, 8.0]


def test_the_league_names_the_closest_method(found, lines):
    assert tuple(found.league.columns) == LEAGUE_COLUMNS
    best = row(found.league, method="integrated gradients", reference="mean ablation")
    assert best["mean"] == pytest.approx(1.0)
    assert best["best"]
    norm = row(found.league, method="gradient norm W_V+W_O", reference="mean ablation")
    assert norm["mean"] == pytest.approx(found.rho.mean)
    rhos = [find_gap(lines[f"seed{seed}"]).rho[-1] for seed in range(4)]
    assert norm["behind"] == pytest.approx(1 - np.mean(rhos))
    assert norm["behind_low"] == pytest.approx(1 - found.rho.high)  # the best is 1 in each seed
    single = row(found.league, method="mean ablation", reference="Shapley")
    assert not single["best"]


def test_a_pair_that_was_not_measured_has_a_reason():
    table = method_league({"seed0": gap_timeline(0, shapley=False)}, n_resamples=5)
    own = row(table, method="gradient norm W_V", reference="Shapley")
    assert (own["n"], own["reason"]) == (0, "shapley was not measured")
    assert np.isnan(own["mean"])


def test_the_course_has_n_at_each_step_and_short_runs_drop_out(lines):
    short = gap_timeline(8, steps=(0, 100))
    found = gaps_over_seeds({**lines, "short": short}, **FEW)
    assert found.course["n"].tolist() == [6, 6, 5, 5, 5]
    at = [line.data for line in lines.values()]
    expected = np.median([find_gap(data).rho[-1] for data in at])
    assert found.course["median"].tolist()[-1] == pytest.approx(expected)


def test_joint_drops_and_pruning_are_means_over_seeds(found):
    heroes = row(found.joint, component_set="heroes")
    assert heroes["joint_mean"] == pytest.approx(0.35)
    assert heroes["ratio_of_means"] == pytest.approx(7.0)
    assert heroes["joint_n"] == 4
    at = {"pruned_kind": "heroes", "split": "out of distribution", "k": 2}
    assert row(found.pruning, **at)["mean"] == pytest.approx(0.6 * 0.55)
    bloats = [r["k"] for r in found.pruning.to_dict("records") if r["pruned_kind"] == "bloats"]
    assert max(bloats) == 2  # the runs have two


def test_infinite_and_undefined_ratios_are_counted_and_in_no_mean(lines):
    changed = {}
    for (name, line), ratio in zip(lines.items(), (np.inf, np.nan, 2.0, 4.0, 3.0), strict=True):
        data = line.data.copy(deep=True)
        data["super_additivity"].loc[{"component_set": "heroes"}] = ratio
        changed[name] = Timeline(data)
    heroes = row(gaps_over_seeds(changed, **FEW).joint, component_set="heroes")
    assert heroes["ratio_mean"] == pytest.approx(3.0)
    assert (heroes["ratio_infinite"], heroes["ratio_undefined"], heroes["ratio_n"]) == (1, 1, 3)


def test_sets_of_roles_come_before_sets_of_ones_own():
    data = gap_dataset()
    roles = {
        f"role_{name}": data[name].rename(component_set="role_set").sel(role_set=["heroes"]) / 2
        for name in ("joint_drop", "sum_of_drops", "super_additivity")
    }
    table = joint_table(data.assign(roles))
    assert table["component_set"].tolist() == ["heroes", "bloats", "all components"]
    assert table["joint_drop"].tolist() == pytest.approx([0.175, 0.55, 0.6])


def test_the_last_measured_step_is_read():
    data = gap_dataset()
    data["joint_drop"][-1] = np.nan
    data["pruned_exact_match"][-2:] = np.nan
    assert set(joint_table(data)["step"]) == {400}
    assert set(pruning_table(data)["step"]) == {200}
    assert len(joint_table(gap_dataset(joint=False))) == 0
    assert len(pruning_table(gap_dataset(pruning=False))) == 0


def test_a_run_with_other_components_is_excluded(lines):
    found = gaps_over_seeds({**lines, "small": gap_timeline(3, n_layers=2)}, **FEW)
    assert found.excluded == {"small": OTHER_COMPONENTS}
    assert found.rho.n == 5


def test_without_any_run_that_counts_all_is_empty_and_said(lines):
    found = gaps_over_seeds({}, excluded={"lost": "training failed"}, **FEW)
    assert (found.rho.n, len(found.roles), found.components) == (0, 0, ())
    assert seeds_sentences(found) == [
        "No run defines a rank correlation of gradient norm W_V+W_O and mean ablation. 1 run is "
        "excluded and in no number."
    ]
    with pytest.raises(MeasureError, match="must hold at least one run; got none"):
        gaps_over_seeds({})


def test_the_same_runs_give_the_same_tables(found, lines):
    again = gaps_over_seeds(lines, excluded=dict(found.excluded), **FEW)
    for name, table in again.tables().items():
        assert table.equals(found.tables()[name]), name


def test_sentences_name_all_that_share_the_first_place():
    planted = gap_timeline(0, noise=0.0)
    data = planted.data.copy(deep=True)
    names = data["component"].to_numpy().tolist()
    low, high = float(data["gradient_norm"].min()), float(data["gradient_norm"].max())
    for place, (name, value) in enumerate((("L2.mlp", low - 1), ("L0.H2", high + 1))):
        data["gradient_norm"][:, :, names.index(name)] = value + place
    said = " ".join(seeds_sentences(gaps_over_seeds({"a": Timeline(data)}, **FEW)))
    assert "L2.mlp and L3.H3 are hidden heroes in 1 of 1 seeds" in said
    assert "Layers 2 and 3 have most of them: 1 each of 2." in said


def test_sentences_carry_the_numbers(found, lines):
    said = " ".join(seeds_sentences(found))
    assert f"is {found.rho.mean:.2f} on average (sd {found.rho.sd:.2f}; 95% t interval" in said
    assert "2 runs are excluded and in no number." in said
    assert f"{HERO} is a hidden hero in 4 of 4 seeds; some component is one in as many in" in said
    assert "stand apart for good in 4 of 4 seeds, from step 100 at the earliest and 400" in said
    assert "Closest to mean ablation: integrated gradients, mean rho 1.00" in said
    assert "costs 0.35 of exact match on average (0.35 to 0.35), one by one 0.05" in said
    one = " ".join(gap_sentences(find_gap(lines["seed0"]), joint_table(lines["seed0"].data)))
    assert "1 hidden hero (L3.H3) matters more than attribution says, by at least 6 ranks." in one
    assert "Taking all its heroes away at once costs 0.35 of exact match (0.30 to 0.40)" in one
