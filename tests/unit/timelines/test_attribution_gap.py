"""The gap of one run over steps: what is compared, when heroes and bloats part, what is missing."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from synthetic_gap import BLOAT, HERO, gap_dataset, gap_timeline
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.attribution.gap import rank_gap
from interp_shortcuts.timelines.attribution_gap import about_the_gap, find_gap
from interp_shortcuts.timelines.timeline import Timeline


def small(deltas: list[list[int]]) -> xr.Dataset:
    """Two heads and an MLP whose importance ranks are 1 2 3 and whose gaps are given by step."""
    importance = np.tile([0.0, 0.1, 0.2], (len(deltas), 1))
    attribution = np.array(deltas) + np.array([1, 2, 3])
    return xr.Dataset(
        {
            "gradient_norm": (("step", "reading", "component"), attribution[:, None]),
            "exact_match_drop": (("step", "ablation_kind", "component"), importance[:, None]),
        },
        coords={
            "step": np.arange(len(deltas)) * 10,
            "component": ["L0.H0", "L0.H1", "L0.mlp"],
            "reading": ["W_V+W_O"],
            "ablation_kind": ["mean"],
        },
    )


SWAPPED, SAME = [2, 0, -2], [0, 0, 0]  # the first is a bloat and the last a hero, or nobody


@pytest.mark.parametrize(
    ("deltas", "step", "at_last"),
    [
        ([SAME, SWAPPED, SWAPPED], 10, False),
        ([SWAPPED, SAME, SWAPPED, SWAPPED], 20, False),  # what is undone does not count
        ([SAME, SAME, SWAPPED], 20, True),
        ([SWAPPED, SWAPPED], 0, False),
    ],
)
def test_heroes_and_bloats_part_at_the_first_step_from_which_they_stay(deltas, step, at_last):
    found = find_gap(small(deltas), threshold=2.0)
    assert found.separation.step == step
    assert found.separation.at_last == at_last
    assert found.separation.reason == ""
    assert found.named("hero") == ("L0.mlp",)
    assert found.named("bloat") == ("L0.H0",)
    assert found.settled == {"L0.H0": step, "L0.mlp": step}


def test_the_later_of_the_two_decides():
    found = find_gap(small([SAME, [1, 1, -2], SWAPPED, SWAPPED]), threshold=2.0)
    assert found.settled == {"L0.mlp": 10, "L0.H0": 20}
    assert found.separation.step == 20


def test_without_a_hero_or_a_bloat_at_the_end_they_never_part():
    found = find_gap(small([SWAPPED, SAME]), threshold=2.0).separation
    assert found.step is None
    assert found.reason == "no hero and no bloat at the last step"
    one_sided = find_gap(small([[1, 1, -2]]), threshold=2.0).separation
    assert one_sided.reason == "no bloat at the last step"


def test_ranks_and_rho_are_those_of_rank_gap_at_every_step():
    data = gap_dataset(3)
    found = find_gap(data)
    assert found.steps == (0, 100, 200, 400, 800)
    for index, step in enumerate(found.steps):
        own = data.sel(step=step)
        expected = rank_gap(
            own["gradient_norm"].sel(reading="W_V+W_O").to_numpy(),
            own["exact_match_drop"].sel(ablation_kind="mean").to_numpy(),
        )
        assert found.rho[index] == expected.rho
        assert np.array_equal(found.delta[index], expected.delta)
    assert [found.named(role)[0] for role in ("hero", "bloat")] == [HERO, BLOAT]
    assert found.final_roles[HERO] == "hero"
    low = data["exact_match_drop_interval"].sel(ablation_kind="mean", bound="low")
    assert np.allclose(found.importance_low, low.to_numpy())


def test_other_methods_and_references_are_read_from_their_variables():
    data = gap_dataset(0)
    for method, reference, name in (
        ("integrated gradients", "mean ablation, loss", "integrated_gradients"),
        ("gradient norm W_V", "Shapley", "gradient_norm"),
        ("mean ablation", "Shapley", "exact_match_drop"),
    ):
        found = find_gap(data, method=method, reference=reference)
        assert found.method.variable == name
        assert np.isfinite(found.rho).all()
    reversed_order = find_gap(data, method="gradient norm W_V")
    assert reversed_order.rho[0] < -0.9  # that reading is the other one, back to front


def test_only_steps_and_components_that_both_have_are_compared():
    data = gap_dataset(0)
    shapley = data["shapley"].copy()
    shapley[:-1] = np.nan  # measured at the last step alone
    found = find_gap(data.assign(shapley=shapley), reference="Shapley")
    assert found.steps == (800,)
    sets = data["shapley"].isel(component=[0, 1]).assign_coords(component=["L0.H0", "all heads"])
    wide = xr.merge([data.drop_vars("shapley"), sets], join="outer")
    wide["shapley"].attrs["covers"] = '{"component": ["L0.H0", "all heads"]}'
    assert find_gap(Timeline(wide), reference="Shapley").components == ("L0.H0",)


def test_a_constant_importance_has_no_rho_and_the_reason():
    found = find_gap(gap_timeline(constant_importance=True))
    assert np.isnan(found.rho).all()
    assert found.why_no_rho() == "the importance is the same for all components"
    assert found.named("hero") == ()
    assert found.separation.reason == found.why_no_rho()
    assert set(found.final_roles.values()) == {"undefined"}


def test_what_was_not_measured_is_said():
    found = find_gap(gap_timeline(shapley=False), reference="Shapley")
    assert found.reason == "shapley was not measured"
    assert (found.steps, found.final, found.rho.size) == ((), None, 0)
    assert found.separation.reason == "shapley was not measured"
    no_kind = gap_dataset().sel(ablation_kind=["zero", "resample"])
    assert "not measured for ablation kind mean" in find_gap(no_kind).reason


def test_a_run_that_was_asked_at_no_length_gives_the_reason_of_its_measure():
    data = gap_dataset()
    data["exact_match_drop"].attrs |= {"split": "none", "nan_means": "no held-out length fits"}
    assert find_gap(data).reason == "no held-out length fits"


def test_which_timelines_are_about_the_gap():
    assert about_the_gap(gap_dataset())
    assert about_the_gap(gap_dataset()[["exact_match"]])  # a sequence task, with little measured
    own = gap_dataset()
    own.attrs.pop("task")
    own.attrs.pop("config")
    assert about_the_gap(own)
    shortcut = synthetic_dataset()
    assert not about_the_gap(shortcut)
    assert "gradient_norm" in shortcut  # of groups of examples: another quantity of that name


def test_misuse_is_said():
    with pytest.raises(
        MeasureError, match=r"`method` must be 'gradient norm W_V.W_O', .*'saliency'"
    ):
        find_gap(gap_timeline(), method="saliency")
    with pytest.raises(MeasureError, match=r"`reference` must be 'mean ablation', .* got 'median'"):
        find_gap(gap_timeline(), reference="median")
    with pytest.raises(MeasureError, match="`threshold` must be above 0"):
        find_gap(gap_timeline(), threshold=0.0)
