"""Figures of runs under label noise draw what was measured, and say what was not."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from synthetic_modular import modular_timeline

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.plots.modular_cells import cell_courses_figure, cells_figure
from interp_shortcuts.plots.modular_descent import descent_figure
from interp_shortcuts.plots.modular_neurons import MOST_NEURONS, evenly, neurons_figure
from interp_shortcuts.plots.modular_partition import partition_figure, unembedding_figure
from interp_shortcuts.plots.modular_phases import phase_figure
from interp_shortcuts.plots.modular_progress import group_figure, progress_figure
from interp_shortcuts.plots.modular_spectra import spectra_figure
from interp_shortcuts.plots.palette import group_style, network_style
from interp_shortcuts.sweeps.hidden_cells import hidden_cells
from interp_shortcuts.timelines.hidden_progress import find_hidden_progress
from interp_shortcuts.timelines.hidden_tables import partition_table, unembedding_table
from interp_shortcuts.timelines.timeline import Timeline

BARE = modular_timeline(filtered=False, spectra=False, partition=False)


@pytest.fixture(scope="module")
def line() -> Timeline:
    return modular_timeline(0)


@pytest.fixture(scope="module")
def found(line):
    return find_hidden_progress(line)


@pytest.fixture(scope="module")
def cells():
    options = {"spectra": False, "partition": False}
    return hidden_cells(
        {
            f"w{w}-n{n}-s{s}": modular_timeline(s, width=w, noise=n, full_test=0.1 * s, **options)
            for w in (17, 65)
            for n in (0.2, 0.4)
            for s in range(2)
        }
    )


def drawn(figure, name: str, axis: str = "y"):
    (own,) = [t for t in figure.data if t.name == name and (t.yaxis or "y") == axis]
    return own


def test_hidden_progress_has_the_network_and_its_parts_on_three_groups(line, found):
    figure = progress_figure(line, found, step_scale="linear")
    values = line.data["filtered_accuracy"].sel(network="G", acting="quadratic")
    for axis, group in (("y", "test"), ("y2", "clean"), ("y3", "noisy")):
        assert np.allclose(drawn(figure, "G, quadratic", axis).y, values.sel(group=group))
        itself = line.data["group_accuracy"].sel(group=group)
        assert np.allclose(drawn(figure, "full", axis).y, itself)
    assert list(drawn(figure, "full").x) == list(line.steps)
    assert drawn(figure, "G, quadratic").line.dash == "dash"
    assert drawn(figure, "R").line.color == network_style("R").colour
    assert drawn(figure, "G joint").visible == "legendonly"
    uprights = [s.x0 for s in figure.layout.shapes if s.x0 == s.x1]
    assert uprights == [500]
    about = drawn(figure, "full").customdata[0]
    assert about[1] == ", 95% interval 0.007 to 0.027<br>n = 696"
    assert not [t for t in figure.data if t.name == "G, relu"]  # the trained one is ReLU


def test_without_the_filter_the_network_itself_is_drawn():
    figure = progress_figure(BARE, find_hidden_progress(BARE))
    assert {trace.name for trace in figure.data} == {"full"}
    nothing = Timeline(modular_timeline().data[["power"]])
    with pytest.raises(ConfigError, match="no group was measured"):
        progress_figure(nothing, find_hidden_progress(nothing))
    with pytest.raises(ConfigError, match="`step_scale` must be"):
        progress_figure(BARE, find_hidden_progress(BARE), step_scale="root")


def test_groups_have_accuracy_and_loss():
    line = modular_timeline()
    figure = group_figure(line, step_scale="linear")
    for axis, variable in (("y", "group_accuracy"), ("y2", "group_loss")):
        own = drawn(figure, "noisy", axis)
        assert np.allclose(own.y, line.data[variable].sel(group="noisy"))
        assert own.line.color == group_style("noisy").colour
    clean = group_figure(modular_timeline(noise=0.0))
    assert "noisy" not in {trace.name for trace in clean.data}


def test_neurons_move_with_the_slider(line):
    figure = neurons_figure(line)
    assert [step.label for step in figure.layout.sliders[0].steps][-1] == "2,000"
    (w,) = [t for t in figure.data if t.name == "vector w"]
    last = line.data.isel(step=-1).sel(vector="w")
    assert np.allclose(np.array(w.y, dtype=float), last["concentration"], atol=1e-4, equal_nan=True)
    off = np.array(w.x, dtype=float) - last["dominant_frequency"].to_numpy()
    assert np.nanmax(np.abs(off)) < 0.3
    first = figure.frames[0].data[3]
    begin = line.data["concentration"].isel(step=0).sel(vector="w")
    assert np.allclose(np.array(first.y, dtype=float), begin, atol=1e-4, equal_nan=True)
    (counts,) = [t for t in figure.data if t.name == "neurons"]
    assert sum(counts.y) == 64  # one of 65 has no frequency


def test_of_many_neurons_some_are_drawn_and_the_figure_says_so():
    figure = neurons_figure(modular_timeline(width=2 * MOST_NEURONS + 1))
    (w,) = [t for t in figure.data if t.name == "vector w"]
    assert len(w.x) <= MOST_NEURONS
    assert any("1 in 3 of 801 neurons" in a.text for a in figure.layout.annotations)
    assert evenly(5, 12) == [0, 1, 2, 3, 4]
    assert evenly(100, 3)[0] == 0
    assert evenly(100, 3)[-1] == 99


def test_spectra_are_a_map_for_each_vector(line):
    figure = spectra_figure(line)
    assert [trace.visible for trace in figure.data] == [False, False, True]
    z = np.array(figure.data[2].z, dtype=float)
    assert z.shape == (65, 30)
    assert np.isnan(z[-1]).all()  # the zero vector is grey
    assert z[:-1].sum(1) == pytest.approx(1.0, abs=0.02)
    buttons = figure.layout.updatemenus[0].buttons
    assert [button.label for button in buttons] == ["vector u", "vector v", "vector w"]
    assert buttons[0].args[0]["visible"] == [True, False, False]


def test_the_wheel_has_the_first_and_the_last_step(line):
    figure = phase_figure(line)
    assert [trace.name for trace in figure.data] == ["step 0", "step 2,000"]
    error = line.data["phase_error"].isel(step=-1)
    theta = np.array(figure.data[1].theta, dtype=float)
    assert np.allclose(theta, error, atol=1e-4, equal_nan=True)
    assert figure.data[1].thetaunit == "radians"


def test_partitions_have_the_random_band_and_the_filter_beside_them(line, found):
    table = partition_table(line.data)
    figure = partition_figure(table, found, "top")
    ipr = drawn(figure, "by IPR")
    expected = line.data["partition_accuracy"].isel(step=-1)
    assert np.allclose(ipr.y, expected.sel(score="ipr", keep="top", group="test"))
    bands = [trace for trace in figure.data if trace.fill == "toself"]
    assert len(bands) == 3  # one for each group
    high = line.data["partition_random_high"].isel(step=-1).sel(keep="top", group="noisy")
    assert max(bands[2].y) == pytest.approx(float(high.max()))
    assert set(drawn(figure, "network G, quadratic").y) == {1.0}
    assert set(drawn(partition_figure(table, found, "bottom"), "network R", "y3").y) == {
        found.final("R", "noisy")
    }


def test_the_filtered_unembedding_of_a_transformer():
    data = BARE.data.assign(
        unembedding_accuracy=xr.DataArray(
            np.arange(6 * 2 * 2 * 5).reshape(6, 2, 2, 5) / 120,
            dims=("step", "keep", "k", "group"),
            coords={"keep": ["dominant", "rest"], "k": [1, 4]},
        )
    )
    figure = unembedding_figure(unembedding_table(data))
    wanted = data["unembedding_accuracy"].isel(step=-1).sel(keep="rest", group="clean")
    assert np.allclose(drawn(figure, "rest", "y2").y, wanted)
    with pytest.raises(ConfigError, match="unembedding_accuracy was not measured"):
        unembedding_figure(unembedding_table(BARE.data))


def test_a_double_descent_has_a_line_and_a_band_for_every_noise(cells):
    figure = descent_figure(cells.descent)
    lines = [t for t in figure.data if t.name == "noise=0.2" and t.mode == "lines+markers"]
    assert len(lines) == 3  # the network itself, G, and G with the quadratic activation
    assert list(lines[0].x) == [17, 65]
    assert lines[0].y == pytest.approx([0.05, 0.05])
    assert "n = 2 seeds" in lines[0].customdata[0]
    assert len([t for t in figure.data if t.fill == "toself"]) == 6
    with pytest.raises(ConfigError, match="the runs have one width only"):
        descent_figure(hidden_cells({"a": BARE}).descent)


def test_cells_are_rows_with_every_seed_and_the_mean(cells):
    figure = cells_figure(cells)
    full = [t for t in figure.data if t.name == "full"]
    assert sorted(len(t.x) for t in full) == [4, 8]
    assert list(figure.layout.yaxis.ticktext) == list(cells.cells)


def test_a_menu_chooses_the_cell_whose_course_is_shown(cells):
    figure = cell_courses_figure(cells)
    buttons = figure.layout.updatemenus[0].buttons
    assert [button.label for button in buttons] == list(cells.cells)
    for button in buttons:
        shown = [t for t, on in zip(figure.data, button.args[0]["visible"], strict=True) if on]
        assert {trace.meta for trace in shown} == {button.label}
    assert {t.meta for t in figure.data if t.visible} == {next(iter(cells.cells))}
    alone = cell_courses_figure(hidden_cells({"a": BARE}))
    assert not alone.layout.updatemenus


@pytest.mark.parametrize("draw", [neurons_figure, spectra_figure, phase_figure])
def test_what_was_not_measured_is_refused_with_its_name(draw):
    with pytest.raises(ConfigError, match=r"dominant_frequency, concentration, .* not measured"):
        draw(BARE)
