"""The timeline figure: panels have data, hovers say what they show, nothing vanishes silently."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import pytest
import xarray as xr
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.plots.timeline import timeline_figure
from interp_shortcuts.timelines.timeline import Timeline

PANELS_SHOWN = 10
HEADS = ["L0.H0", "L0.H1", "L1.H0", "L1.H1"]
COMPONENTS = ["L0.H0", "L0.H1", "L0.mlp", "L1.H0", "L1.H1", "L1.mlp"]
SETS = ["L0.heads", "L1.heads", "all heads", "all mlps"]
WHOLE = "whole model"
SPLITS = ["train", "consistent", "anti", "validation", "adversarial"]


def make(**options) -> Timeline:
    return Timeline(synthetic_dataset(**{"n_steps": 30, **options}))


def lines(figure: go.Figure) -> list[go.Scatter]:
    """Traces that show values over steps; events, bands, references and rings aside."""
    return [trace for trace in figure.data if trace.customdata is not None]


def notes(figure: go.Figure) -> str:
    return " ".join(annotation.text for annotation in figure.layout.annotations)


def changed(timeline: Timeline, **variables: xr.DataArray) -> Timeline:
    return Timeline(timeline.data.assign(variables))


@pytest.fixture(scope="module")
def figure() -> go.Figure:
    return timeline_figure(make())


def test_every_panel_has_lines_with_data(figure: go.Figure):
    axes = {trace["yaxis"] for trace in lines(figure)}
    assert len(axes) == PANELS_SHOWN
    for trace in lines(figure):
        assert np.isfinite(np.asarray(trace["y"])).any()


def test_every_axis_shares_the_steps_and_has_a_trace(figure: go.Figure):
    layout = figure.to_plotly_json()["layout"]
    names = [key for key in layout if key.startswith("xaxis")]
    assert len(names) == PANELS_SHOWN + 1  # and the events
    assert all(layout[name].get("matches", "x") == "x" for name in names)
    used = {
        trace.get("xaxis", "x").replace("x", "xaxis") for trace in figure.to_plotly_json()["data"]
    }
    assert used == set(names)


def test_lines_hold_exactly_the_measured_values(figure: go.Figure):
    data = make().data
    by_name = {t["name"]: t for t in lines(figure) if t.showlegend and t.legend != "legend4"}
    expected = data["accuracy"].sel(split="adversarial").values
    np.testing.assert_array_equal(by_name["adversarial"]["y"], expected)
    expected = data["qk_spearman"].sel(layer=0, head=0, feature="magnitude").values
    np.testing.assert_array_equal(by_name["L0.H0"]["y"], expected)


def test_hover_says_step_component_value_interval_and_n(figure: go.Figure):
    data = make().data
    for trace in lines(figure):
        hover = trace["hovertemplate"]
        assert trace["legendgroup"] in hover
        assert "step %{customdata[0]" in hover
        assert "%{y" in hover
        np.testing.assert_array_equal(np.asarray(trace["customdata"])[:, 0], data["step"].values)
    accuracy = next(trace for trace in lines(figure) if trace["name"] == "adversarial")
    assert "95% interval %{customdata[1]" in accuracy["hovertemplate"]
    assert "n = %{customdata[3]" in accuracy["hovertemplate"]
    last = np.asarray(accuracy["customdata"])[-1]
    assert last[3] == 1024
    interval = data["accuracy_interval"].sel(split="adversarial").isel(step=-1).values
    np.testing.assert_array_equal(last[1:3], interval)


def test_n_of_the_activation_form_leaves_out_undefined_examples():
    timeline = make()
    undefined = timeline.data["qk_spearman_activation_undefined"]
    timeline = changed(timeline, qk_spearman_activation_undefined=undefined + 24)
    dashed = [t for t in lines(timeline_figure(timeline)) if "activations" in t["name"]]
    assert len(dashed) == len(HEADS)
    assert np.asarray(dashed[0]["customdata"])[-1, 3] == 1000


def test_each_legend_has_one_entry_per_line_that_acts_in_all_panels(figure: go.Figure):
    shown = [trace["name"] for trace in lines(figure) if trace.showlegend]
    assert sorted(shown) == sorted(HEADS + SPLITS + COMPONENTS + SETS)
    entries = [(trace["legend"], trace["name"]) for trace in lines(figure) if trace.showlegend]
    assert len(set(entries)) == len(entries)
    groups = {trace["legendgroup"] for trace in lines(figure)}
    assert groups == {*COMPONENTS, *SETS, *SPLITS, WHOLE}
    panels_of = {g: {t["yaxis"] for t in lines(figure) if t["legendgroup"] == g} for g in groups}
    assert all(len(panels_of[head]) == 6 for head in HEADS)
    assert len(panels_of["adversarial"]) == 2


def test_intervals_follow_the_legend_entry_of_their_line(figure: go.Figure):
    bands = [t for t in figure.to_plotly_json()["data"] if t.get("fill") == "toself"]
    assert {band["legendgroup"] for band in bands} == {*COMPONENTS, *SETS, *SPLITS}
    assert all(not band["showlegend"] for band in bands)


def test_a_component_has_one_colour_and_no_other_has_it(figure: go.Figure):
    colours = {}
    for trace in lines(figure):
        colours.setdefault(trace["legendgroup"], set()).add(trace["line"]["color"])
    assert all(len(own) == 1 for own in colours.values())
    assert len(set.union(*colours.values())) == len(colours)


def test_events_are_labelled_on_rows_of_their_own(figure: go.Figure):
    marks = [t for t in figure.to_plotly_json()["data"] if t.get("mode") == "markers+text"]
    texts = [mark["text"][0] for mark in marks]
    assert [text.split(" · ")[0] for text in texts] == [
        "shortcut learned",
        "saturation",
        "onset",
        "generalised",
    ]
    assert len({mark["y"][0] for mark in marks}) == len(marks)


def test_half_way_rings_lie_on_their_line():
    timeline = make()
    event = next(
        e for e in timeline.phases().circuit_events if e.measure == "ov_spearman" and e.step
    )
    figure = timeline_figure(timeline, panels=["ov_spearman"])
    rings = [t for t in figure.to_plotly_json()["data"] if "half way" in t.get("name", "")]
    ring = next(r for r in rings if r["x"] == [event.step] and "OV Spearman" in r["hovertemplate"])
    value = timeline.data["ov_spearman"].sel(layer=1, head=1, feature="parity", step=event.step)
    assert ring["y"][0] == pytest.approx(float(value))
    assert ring["legendgroup"] == event.component == "L1.H1"


def test_references_show_chance_ceiling_and_floor(figure: go.Figure):
    texts = notes(figure) + notes(timeline_figure(make(), panels=["ov_spearman"]))
    assert "chance 0.11" in texts
    assert "ceiling 0.87" in texts
    assert "guessing" in texts
    assert "floor r/(1−r) = 9" in texts
    label = next(a for a in figure.layout.annotations if a.text.startswith("floor"))
    assert label.y == pytest.approx(np.log10(9))  # the axis is logarithmic


def test_lines_connect_the_steps_at_which_a_measure_was_taken():
    timeline = make(causal_every=4)
    figure = timeline_figure(timeline)
    taken = [0, 40, 80, 120, 160, 200, 240, 280, 290]
    line = next(t for t in lines(figure) if t["name"] == "all heads")
    assert list(line["x"]) == taken
    assert np.isfinite(np.asarray(line["y"])).all()
    expected = timeline.array("rule_transfer").sel(
        component="all heads", direction="validation<-adversarial"
    )
    np.testing.assert_array_equal(line["y"], expected)
    rows = np.asarray(line["customdata"])
    np.testing.assert_array_equal(rows[:, 0], taken)
    assert (rows[:, 3] == 256).all()
    assert next(t for t in lines(figure) if t["name"] == "L0.H0").x[1] == 10


def test_disruption_is_faint_and_sets_wait_for_a_click(figure: go.Figure):
    faint = [t for t in lines(figure) if "disruption" in t["name"]]
    assert len(faint) == 2 * len(COMPONENTS + SETS)
    assert all(t.line.dash == "dash" and "disruption %{y" in t.hovertemplate for t in faint)
    hidden = {t["legendgroup"] for t in lines(figure) if t.visible == "legendonly"}
    assert hidden == {"L0.heads", "L1.heads", "all mlps"}


def test_many_heads_are_shown_jointly_at_first():
    figure = timeline_figure(make(n_layers=3, n_heads=4), panels=["rule_transfer"])
    shown = {t["legendgroup"] for t in lines(figure) if t.visible != "legendonly"}
    layers = range(3)
    assert shown == {
        *(f"L{layer}.heads" for layer in layers),
        *(f"L{layer}.mlp" for layer in layers),
        "all heads",
    }


def test_rings_mark_the_half_way_steps_of_transfers(figure: go.Figure):
    event = next(
        e
        for e in make().phases().causal_events
        if e.measure == "rule_transfer" and e.component == "L1.mlp"
    )
    rings = [t for t in figure.to_plotly_json()["data"] if "L1.mlp, half way" in t.get("name", "")]
    assert any(r["x"] == [event.step] and "rule transfer" in r["hovertemplate"] for r in rings)


def test_ablation_panels_share_their_range_and_gradients_have_both_groups():
    names = ["ablation_adversarial", "ablation_validation", "gradient_share"]
    figure = timeline_figure(make(), panels=names)
    assert figure.layout.yaxis2.range == figure.layout.yaxis3.range
    groups = {t["legendgroup"] for t in lines(figure) if t["yaxis"] == "y4"}
    assert groups == {"consistent", "anti"}
    for options in ({"ablation": "none"}, {"direction": "none"}, {"part": "none"}):
        figure = timeline_figure(make(), panels=[*names, "rule_transfer"], **options)
        assert f"the {next(iter(options))} 'none' was not measured" in notes(figure)


def test_fingerprints_alone_leave_the_causal_panels_out_once_per_measure():
    figure = timeline_figure(make(causal=False))
    assert len({trace["yaxis"] for trace in lines(figure)}) == 6
    text = notes(figure)
    assert text.count("Left out:") == 2
    assert "the measure `CrossSplitPatching` was not" in text
    assert "`GradientConflict` was not taken" in text


def test_ceilings_that_differ_are_drawn_per_head():
    timeline = make()
    ceiling = timeline.data["ov_spearman_ceiling"].copy(deep=True)
    ceiling[:, 0, 0, :] -= 0.1
    figure = timeline_figure(changed(timeline, ov_spearman_ceiling=ceiling), panels=["ov_spearman"])
    dotted = [
        trace
        for trace in figure.to_plotly_json()["data"]
        if trace.get("line", {}).get("dash") == "dot" and trace.get("legendgroup") in HEADS
    ]
    assert len(dotted) == len(HEADS)


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_step_zero_is_visible_on_both_axes(scale: str):
    figure = timeline_figure(make(), step_scale=scale)
    layout = figure.layout.xaxis2
    first = min(x for trace in lines(figure) for x in trace["x"])
    if scale == "linear":
        assert first == 0
    else:
        assert first == 5  # half of the first positive step
        assert 10 ** layout.range[0] < first
        assert layout.ticktext[layout.tickvals.index(5)] == "0"


def test_switch_moves_every_trace_and_axis(figure: go.Figure):
    linear, log = figure.layout.updatemenus[0].buttons
    restyle, relayout = log.args
    assert len(restyle["x"]) == len(figure.data)
    axes = [key for key in figure.to_plotly_json()["layout"] if key.startswith("xaxis")]
    assert all(relayout[f"{axis}.type"] == "log" for axis in axes)
    assert all(x is None or x > 0 for xs in restyle["x"] for x in xs)
    for trace, xs in zip(figure.data, linear.args[0]["x"], strict=True):
        assert list(trace.x) == list(xs)


def test_a_missing_variable_leaves_its_panel_out_with_a_note():
    timeline = make()
    figure = timeline_figure(Timeline(timeline.data.drop_vars("qk_spearman")))
    assert len({trace["yaxis"] for trace in lines(figure)}) == PANELS_SHOWN - 1
    assert "Left out: QK Spearman: the variable `qk_spearman` is not" in notes(figure)


def test_without_any_variable_only_notes_remain():
    data = make().data
    figure = timeline_figure(Timeline(data.drop_vars(list(data.data_vars))))
    assert not lines(figure)
    assert notes(figure).count("Left out:") == PANELS_SHOWN - 2  # one for each absent measure


def test_an_undefined_head_is_named_with_the_reason():
    timeline = make()
    values = timeline.data["ov_spearman"].copy(deep=True)
    values[:, 1, 0, :] = np.nan
    figure = timeline_figure(changed(timeline, ov_spearman=values), panels=["ov_spearman"])
    panel = [t for t in lines(figure) if "OV Spearman" in t["hovertemplate"]]
    assert [trace["legendgroup"] for trace in panel] == ["L0.H0", "L0.H1", "L1.H1"]
    note = notes(figure)
    assert "OV Spearman with parity: L1.H0: undefined at every" in note
    assert "the logit differences are" in note


def test_a_panel_undefined_everywhere_is_left_out():
    timeline = make()
    undefined = timeline.data["ov_spearman"] * np.nan
    figure = timeline_figure(changed(timeline, ov_spearman=undefined), panels=["ov_spearman"])
    assert not [t for t in lines(figure) if "OV Spearman" in t["hovertemplate"]]
    assert "Left out: OV Spearman" in notes(figure)


def test_gaps_break_the_interval_and_not_the_figure():
    timeline = make()
    interval = timeline.data["accuracy_interval"].copy(deep=True)
    interval[10:12] = np.nan
    figure = timeline_figure(changed(timeline, accuracy_interval=interval))
    band = next(t for t in figure.data if t.name == "train, interval")
    assert list(band.x).count(None) == 1
    assert all((x is None) == (y is None) for x, y in zip(band.x, band.y, strict=True))


def test_losses_of_zero_and_intervals_below_zero_fit_a_log_axis():
    timeline = make()
    loss, interval = timeline.data["loss"].copy(deep=True), timeline.data["loss_interval"].copy()
    loss[-1] = 0.0
    interval = interval.copy(data=np.where(interval < 2e-4, -1.0, interval))
    figure = timeline_figure(changed(timeline, loss=loss, loss_interval=interval))
    bands = [t for t in figure.data if t.fill == "toself" and t.yaxis == "y3"]
    assert len(bands) == 4
    assert all(y is None or y > 0 for band in bands for y in band.y)


def test_first_element_tasks_show_position_zero():
    data = synthetic_dataset(n_steps=30)
    data.attrs["task"] = data.attrs["task"].replace("max_parity", "first_parity")
    figure = timeline_figure(Timeline(data))
    assert "Attention from '=' to position 0" in notes(figure)
    assert len({trace["yaxis"] for trace in lines(figure)}) == PANELS_SHOWN + 1


def test_options_choose_panels_split_and_form():
    figure = timeline_figure(
        make(), panels=["qk", "attention_to_max"], split="adversarial", activation_form=False
    )
    assert len(lines(figure)) == 2 * len(HEADS)
    assert "adversarial examples" in notes(figure)
    unmeasured = timeline_figure(make(), panels=["attention_to_max"], split="anti")
    assert "the split 'anti' was not measured" in notes(unmeasured)
    unknown = timeline_figure(make(), panels=["qk"], feature="prime")
    assert "the feature 'prime' was not measured" in notes(unknown)


def test_wrong_options_are_refused():
    with pytest.raises(ConfigError, match=r"`panels` must be among accuracy, .*; got 'speed'"):
        timeline_figure(make(), panels=["speed"])
    with pytest.raises(ConfigError, match="`step_scale` must be 'linear' or 'log'"):
        timeline_figure(make(), step_scale="symlog")
    empty = Timeline(make().data.isel(step=slice(0, 0)))
    with pytest.raises(ConfigError, match="needs at least one step"):
        timeline_figure(empty)


def test_a_single_step_and_many_heads_can_be_drawn():
    one = Timeline(make().data.isel(step=[0]))
    assert lines(timeline_figure(one))
    many = timeline_figure(make(n_layers=4, n_heads=4), panels=["qk"], activation_form=False)
    looks = {(t["line"]["color"], t["marker"]["symbol"]) for t in lines(many)}
    assert len(looks) == 16


def test_a_hostile_feature_name_is_shown_literally():
    data = make().data
    names = ["magnitude", "<b>%{y}</b>"]
    data = data.assign_coords(feature=names)
    for variable in data.data_vars.values():
        if "covers" in variable.attrs:
            variable.attrs["covers"] = variable.attrs["covers"].replace("parity", "<b>%{y}</b>")
    text = notes(timeline_figure(Timeline(data)))
    assert "&lt;b&gt;%&#123;y}&lt;/b&gt;" in text
    assert "<b>%{y}" not in text


def test_same_timeline_same_bytes():
    assert timeline_figure(make()).to_json() == timeline_figure(make()).to_json()
