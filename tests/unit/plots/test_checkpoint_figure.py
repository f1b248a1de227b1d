"""The checkpoint figure: one frame per step with that step's values, on fixed scales."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import pytest
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.plots.checkpoints import checkpoint_figure
from interp_shortcuts.timelines.timeline import Timeline


def make(**options) -> Timeline:
    return Timeline(synthetic_dataset(**{"n_steps": 12, **options}))


def notes(figure: go.Figure) -> str:
    return " ".join(annotation.text for annotation in figure.layout.annotations)


@pytest.fixture(scope="module")
def figure() -> go.Figure:
    return checkpoint_figure(make())


def test_there_is_a_frame_and_a_slider_position_for_every_step(figure: go.Figure):
    steps = make().steps
    assert [frame.name for frame in figure.frames] == [str(step) for step in steps]
    slider = figure.layout.sliders[0]
    assert [list(position.args[0]) for position in slider.steps] == [[str(step)] for step in steps]
    assert slider.active == len(steps) - 1


def test_each_head_has_a_map_and_two_curves(figure: go.Figure):
    modes = [trace.mode for trace in figure.data]
    assert modes == ["markers+text"] * 4 + ["lines+markers"] * 8
    assert [t.name for t in figure.data if t.showlegend] == ["L0.H0", "L0.H1", "L1.H0", "L1.H1"]


def test_frames_hold_the_values_of_their_step(figure: go.Figure):
    data = make().data
    frame = figure.frames[3]
    assert list(frame.traces) == list(range(len(figure.data)))
    weights = data["attention_example"].isel(step=3).sel(layer=0, head=1).values
    np.testing.assert_allclose(frame.data[1].marker.color, weights.ravel(), atol=5e-5)
    scores = data["qk_score"].isel(step=3).sel(layer=1, head=0).values
    np.testing.assert_allclose(frame.data[6].y, scores, atol=5e-5)
    logits = data["ov_logit"].isel(step=3).sel(layer=1, head=1).values
    np.testing.assert_allclose(frame.data[11].y, logits[:, 1] - logits[:, 0], atol=1e-4)


def test_scales_are_the_same_at_every_step(figure: go.Figure):
    for trace in figure.data:
        if trace.mode == "markers+text":
            assert (trace.marker.cmin, trace.marker.cmax) == (0, 1)
            continue
        low, high = figure.layout[trace.yaxis.replace("y", "yaxis")].range
        index = list(figure.data).index(trace)
        values = np.array([frame.data[index].y for frame in figure.frames], dtype=float)
        assert low < values.min()
        assert values.max() < high


def test_cells_carry_tokens_and_hovers_the_labels(figure: go.Figure):
    data = make().data
    marks = figure.data[0]
    tokens = data["example_tokens"].values
    length = tokens.shape[1] - 1
    row = [text for text, y in zip(marks.text, marks.y, strict=True) if y == 2]
    assert row[-1] == "="
    assert [cell.replace("<b>", "").replace("</b>", "") for cell in row[:-1]] == [
        str(token) for token in tokens[2, :length]
    ]
    bold = [cell.startswith("<b>") for cell in row[:-1]]
    assert bold == list(tokens[2, :length] == tokens[2, :length].max())
    label, shortcut = int(data["example_label"][0]), int(data["example_shortcut"][0])
    assert f"true label {label}, shortcut label {shortcut}" in marks.hovertext[0]
    assert "%{marker.color" in marks.hovertemplate
    axis = figure.layout.yaxis
    assert axis.ticktext[0] == f"val {label} / {shortcut}"


def test_more_classes_get_a_panel_each_with_the_mean_taken_out():
    timeline = make(n_classes=3)
    figure = checkpoint_figure(timeline)
    curves = [trace for trace in figure.data if trace.mode == "lines+markers"]
    assert len(curves) == 4 + 3 * 4
    logits = timeline.data["ov_logit"].isel(step=-1).sel(layer=0, head=0).values
    centred = logits - logits.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(curves[4].y, centred[:, 0], atol=1e-4)
    np.testing.assert_allclose(curves[12].y, centred[:, 2], atol=1e-4)


def test_the_slider_needs_no_redraw(figure: go.Figure):
    assert {trace.type for trace in figure.data} == {"scatter"}
    for position in figure.layout.sliders[0].steps:
        assert position.args[1]["frame"]["redraw"] is False


def test_the_first_sight_can_be_chosen():
    assert checkpoint_figure(make(), step=33).layout.sliders[0].active == 3


def test_missing_parts_are_named():
    timeline = make()
    figure = checkpoint_figure(Timeline(timeline.data.drop_vars(["attention_example", "qk_score"])))
    assert {trace.mode for trace in figure.data} == {"lines+markers"}
    assert "Left out: Attention on single examples" in notes(figure)
    assert "Left out: QK score of each integer" in notes(figure)
    assert [t.name for t in figure.data if t.showlegend] == ["L0.H0", "L0.H1", "L1.H0", "L1.H1"]
    nothing = checkpoint_figure(
        Timeline(timeline.data.drop_vars(["attention_example", "qk_score", "ov_logit"]))
    )
    assert not nothing.data
    assert not nothing.frames
    assert notes(nothing).count("Left out:") == 3


def test_undefined_values_become_gaps():
    timeline = make()
    scores = timeline.data["qk_score"].copy(deep=True)
    scores[2, 0, 0, 4] = np.nan
    figure = checkpoint_figure(Timeline(timeline.data.assign(qk_score=scores)))
    assert figure.frames[2].data[4].y[4] is None
    assert "NaN" not in figure.to_json()


def test_no_step_is_refused():
    with pytest.raises(ConfigError, match="needs at least one step"):
        checkpoint_figure(Timeline(make().data.isel(step=slice(0, 0))))


def test_size_stays_sane_at_the_size_of_a_demo():
    figure = checkpoint_figure(Timeline(synthetic_dataset(n_steps=70, n_integers=40)))
    assert len(figure.to_json()) < 700_000
