"""Figures of attribution and importance draw what was computed, and say what was not."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic_gap import BLOAT, HERO, gap_dataset, gap_timeline

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.plots.gap_course import gap_course_figure, rho_course_figure
from interp_shortcuts.plots.gap_joint import joint_figure
from interp_shortcuts.plots.gap_league import league_figure
from interp_shortcuts.plots.gap_maps import gap_map_figure
from interp_shortcuts.plots.gap_pruning import pruning_figure
from interp_shortcuts.plots.gap_roles import identity_roles_figure, layer_roles_figure
from interp_shortcuts.plots.gap_scatter import rank_scatter_figure
from interp_shortcuts.plots.gap_seeds import seed_rho_figure
from interp_shortcuts.plots.palette import role_style
from interp_shortcuts.timelines.attribution_gap import find_gap
from interp_shortcuts.timelines.gap_over_seeds import gaps_over_seeds
from interp_shortcuts.timelines.gap_tables import joint_table, pruning_table

FLAT = find_gap(gap_timeline(constant_importance=True))


@pytest.fixture(scope="module")
def gap():
    return find_gap(gap_timeline(0))


@pytest.fixture(scope="module")
def seeds():
    lines = {f"seed{seed}": gap_timeline(seed) for seed in range(4)}
    excluded = {"seed3": "no length fits"}
    return gaps_over_seeds(lines, excluded=excluded, n_permutations=100, n_resamples=100)


def trace(figure, name: str):
    (found,) = [one for one in figure.data if one.name == name]
    return found


def test_the_scatter_has_a_named_mark_for_every_component(gap):
    figure = rank_scatter_figure(gap)
    marks = [one for one in figure.data if one.mode == "markers+text"]
    assert sum(len(one.x) for one in marks) == 20
    hero = trace(figure, "hidden hero (1)")
    assert hero.text == (HERO,)
    index = gap.components.index(HERO)
    assert hero.x[0] == gap.gaps[-1].importance_rank[index]
    assert hero.y[0] == gap.gaps[-1].attribution_rank[index]
    assert hero.marker.color == role_style("hero").colour
    dotted = [one for one in figure.data if one.name == "6 ranks apart"]
    assert [one.y[0] - one.x[0] for one in dotted] == [6, -6]
    assert "n = 20 components" in hero.hovertemplate


def test_maps_put_heads_in_their_columns_and_mlps_last(gap):
    figure = gap_map_figure(gap, "gap")
    (drawn,) = figure.data
    assert list(drawn.x) == ["H0", "H1", "H2", "H3", "MLP"]
    assert list(drawn.y) == ["L0", "L1", "L2", "L3"]
    assert np.array(drawn.z)[3, 3] == gap.delta[-1, gap.components.index(HERO)]
    assert np.array(drawn.z)[1, 4] == gap.delta[-1, gap.components.index("L1.mlp")]
    ranks = np.array(gap_map_figure(gap, "importance").data[0].z)
    assert sorted(ranks.ravel()) == sorted(gap.gaps[-1].importance_rank)
    with pytest.raises(ConfigError, match=r"`what` must be 'attribution', .* got 'rho'"):
        gap_map_figure(gap, "rho")


def test_the_course_shows_rho_and_marks_where_heroes_and_bloats_part(gap):
    figure = gap_course_figure(gap)
    assert list(trace(figure, "rho").y) == list(gap.rho)
    bloat = trace(figure, f"{BLOAT}, bloat")
    assert list(bloat.y) == list(gap.delta[:, gap.components.index(BLOAT)])
    uprights = [s for s in figure.layout.shapes if s.x0 == s.x1]
    assert [shape.x0 for shape in uprights] == [gap.separation.step] == [200]
    assert not [s for s in gap_course_figure(find_gap(gap_dataset(separated_from=9))).layout.shapes
                if s.x0 == s.x1]  # fmt: skip
    loss = find_gap(gap_dataset(5), reference="mean ablation, loss")
    both = gap_course_figure(gap, beside=loss)
    assert list(trace(both, "rho against mean ablation, loss").y) == list(loss.rho)
    log = gap_course_figure(gap, step_scale="log")
    assert log.layout.xaxis.type == "log"
    with pytest.raises(ConfigError, match="step_scale"):
        gap_course_figure(gap, step_scale="square")


def test_joint_bars_are_those_of_the_table_with_intervals():
    table = joint_table(gap_dataset())
    figure = joint_figure(table)
    bars = trace(figure, "joint drop")
    assert list(bars.x) == pytest.approx([0.35, 0.55, 0.6])
    assert list(bars.error_x.array) == pytest.approx([0.05] * 3)
    assert bars.y[0] == "heroes<br>(7.0×)"
    assert bars.customdata[0][2] == "n = 100 examples"
    table["super_additivity"] = [np.inf, np.nan, -2.0]
    assert [text.split("(")[1] for text in trace(joint_figure(table), "joint drop").y] == [
        "∞)",
        "undefined)",
        "−2.0×)",
    ]


def test_pruning_has_a_line_a_kind_and_leaves_out_what_is_undefined():
    figure = pruning_figure(pruning_table(gap_dataset()), "out of distribution")
    assert [one.name for one in figure.data] == ["heroes", "bloats", "random"]
    assert list(trace(figure, "bloats").x) == [0, 1, 2]
    assert list(trace(figure, "heroes").y) == pytest.approx(0.55 * (1 - 0.2 * np.arange(5)))
    with pytest.raises(ConfigError, match="not measured on 'length_5'"):
        pruning_figure(pruning_table(gap_dataset()), "length_5")


def test_figures_over_seeds_draw_means_intervals_and_every_seed(seeds):
    dots = trace(seed_rho_figure(seeds), "a seed")
    assert list(dots.x) == [gap.rho[-1] for gap in seeds.gaps.values()]
    mean = trace(seed_rho_figure(seeds), "mean with its 95% t interval")
    assert mean.x[0] + mean.error_x.array[0] == pytest.approx(seeds.rho.high)
    course = rho_course_figure(seeds)
    assert [one.name for one in course.data][:3] == ["seed0", "seed1", "seed2"]
    assert list(trace(course, "median over seeds").y) == seeds.course["median"].tolist()
    joint = trace(joint_figure(seeds.joint), "joint drop")
    assert joint.customdata[0][2] == "n = 3 seeds"


def test_roles_go_left_for_heroes_and_right_for_bloats(seeds):
    figure = identity_roles_figure(seeds.roles[6.0])
    heroes, bloats = trace(figure, "hidden hero"), trace(figure, "gradient bloat")
    place = list(figure.layout.yaxis.ticktext).index(HERO)
    assert heroes.x[place] == -3
    assert bloats.x[list(figure.layout.yaxis.ticktext).index(BLOAT)] == 3
    expected = trace(figure, "shuffled ranks, mean")
    table = seeds.roles[6.0].identities
    assert sorted(np.abs(expected.x)) == sorted(table["expected"])
    layers = layer_roles_figure(seeds.roles[6.0])
    assert list(trace(layers, "hidden hero").x) == [0, 0, 0, -3]


def test_the_league_rings_the_closest_of_each_reference(seeds):
    figure = league_figure(seeds.league)
    assert len(trace(figure, "closest").x) == 5
    best = seeds.league[seeds.league["best"]]
    assert list(trace(figure, "closest").x) == best["mean"].tolist()
    norm = trace(figure, "gradient norm W_V+W_O")
    own = seeds.league[seeds.league["method"] == "gradient norm W_V+W_O"]
    assert list(norm.x) == own["mean"].tolist()
    assert list(norm.x - np.array(norm.error_x.arrayminus)) == pytest.approx(own["low"].tolist())


@pytest.mark.parametrize(
    "draw",
    [
        lambda: rank_scatter_figure(FLAT),
        lambda: gap_map_figure(FLAT, "gap"),
        lambda: gap_course_figure(FLAT),
    ],
)
def test_without_an_order_figures_say_why_they_cannot_be_drawn(draw):
    with pytest.raises(ConfigError, match="the importance is the same for all components"):
        draw()


def test_what_was_not_measured_is_said():
    with pytest.raises(ConfigError, match="joint ablations were not measured"):
        joint_figure(joint_table(gap_dataset(joint=False)))
    with pytest.raises(ConfigError, match="pruning was not measured"):
        pruning_figure(pruning_table(gap_dataset(pruning=False)), "in distribution")
    none = gaps_over_seeds({}, excluded={"a": "failed"}, n_permutations=1, n_resamples=1)
    for figure, reason in (
        (seed_rho_figure, "no seed defines rho"),
        (rho_course_figure, "rho is defined at no step of any seed"),
    ):
        with pytest.raises(ConfigError, match=reason):
            figure(none)
    with pytest.raises(ConfigError, match="no method and reference were both measured"):
        league_figure(none.league)
