"""Maps of what components carry: values as measured, undefined never white, reasons when absent."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.plots.carrier_map import carrier_map_figure
from interp_shortcuts.plots.palette import UNDEFINED, component_styles
from interp_shortcuts.plots.residual_map import residual_map_figure
from interp_shortcuts.timelines.timeline import Timeline

DIRECTION = "validation<-adversarial"


def make(**options) -> Timeline:
    return Timeline(synthetic_dataset(**{"n_steps": 30, "causal_every": 4, **options}))


def maps(figure) -> list:
    return [trace for trace in figure.data if trace.type == "heatmap"]


def notes(figure) -> str:
    return " ".join(annotation.text for annotation in figure.layout.annotations)


def test_maps_hold_the_measured_values_at_the_measured_steps():
    timeline = make()
    found = maps(carrier_map_figure(timeline))
    assert [trace.name.split(",")[0] for trace in found] == [
        "Rule transfer",
        "Shortcut transfer",
        "Disruption",
    ]
    for trace, name in zip(
        found, ("rule_transfer", "shortcut_transfer", "disruption"), strict=True
    ):
        values = timeline.array(name).sel(direction=DIRECTION).transpose("component", "step")
        np.testing.assert_array_equal(trace.z, values)
        assert list(trace.x) == [int(step) for step in values["step"]]
        details = np.asarray(trace.customdata)
        np.testing.assert_array_equal(details[0, :, 0], values["step"])
        assert (details[..., 1] <= trace.z).all()
        assert (details[..., 2] >= trace.z).all()
        assert (details[..., 3] == 256).all()
        assert (trace.zmin, trace.zmax) == (0, 1)


def test_undefined_cells_show_the_grey_behind():
    timeline = make()
    values = timeline.data["rule_transfer"].copy(deep=True)
    values.loc[{"component": "L0.H0"}] = np.nan
    figure = carrier_map_figure(Timeline(timeline.data.assign(rule_transfer=values)))
    assert np.isnan(np.asarray(maps(figure)[0].z)[0]).all()
    behind = [s for s in figure.layout.shapes if s.fillcolor == UNDEFINED and s.layer == "below"]
    assert len(behind) == 3


def test_the_switch_moves_the_maps_and_the_grey_behind():
    figure = carrier_map_figure(make())
    restyle, relayout = figure.layout.updatemenus[0].buttons[1].args
    assert all(x is None or x > 0 for xs in restyle["x"] for x in xs)
    behind = [i for i, shape in enumerate(figure.layout.shapes) if shape.fillcolor == UNDEFINED]
    assert all(relayout[f"shapes[{i}].x0"] == 5 for i in behind)


def test_what_was_not_measured_is_said():
    figure = carrier_map_figure(make(causal=False))
    assert not maps(figure)
    assert notes(figure).count("Left out:") == 3
    assert "the direction 'up' was not measured" in notes(
        carrier_map_figure(make(), direction="up")
    )
    with pytest.raises(ConfigError, match="`step_scale` must be"):
        carrier_map_figure(make(), step_scale="sqrt")


def test_the_residual_map_shows_the_last_step_before_the_onset_and_the_end():
    timeline = make()
    onset = timeline.phases().onset
    figure = residual_map_figure(timeline)
    found = maps(figure)
    array = timeline.array("residual_rule_transfer").sel(direction=DIRECTION)
    before = max(int(step) for step in array["step"] if step <= onset)
    np.testing.assert_array_equal(found[0].z, array.sel(step=before))
    np.testing.assert_array_equal(found[2].z, array.sel(step=timeline.steps[-1]))
    assert f"step {before}" in notes(figure)
    assert len(maps(residual_map_figure(make(outcome="shortcut")))) == 2
    absent = residual_map_figure(make(causal=False))
    assert not absent.data
    assert "Left out" in notes(absent)


def test_heads_keep_their_colours_and_no_two_components_look_alike():
    heads = ["L0.H0", "L0.H1", "L1.H0", "L1.H1"]
    every = ["L0.H0", "L0.H1", "L0.mlp", "L1.H0", "L1.H1", "L1.mlp", "L0.heads", "all heads"]
    alone, together = component_styles(heads), component_styles(every)
    assert all(together[head] == alone[head] for head in heads)
    assert len({(style.colour, style.symbol) for style in together.values()}) == len(every)
