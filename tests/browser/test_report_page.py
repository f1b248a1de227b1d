"""The report in a browser without a network: drawn, alive, and readable on a narrow page."""

from __future__ import annotations

from pathlib import Path

import pytest

from interp_shortcuts.reports.report import write_report
from interp_shortcuts.timelines.timeline import Timeline

pytestmark = pytest.mark.browser

TIMELINE, CHECKPOINTS = "#timeline-figure", "#checkpoint-figure"
CARRIERS = "#carriers-figure"
PANELS = 10


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, timeline: Timeline) -> Path:
    return write_report(timeline, tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def page(open_page, report: Path):
    """One page for all tests at full width; each leaves it usable for the next."""
    page = open_page(report)
    drawn(page)
    return page


def drawn(page) -> None:
    page.wait_for_selector(f"{TIMELINE} .scatterlayer .trace", state="attached")
    page.wait_for_selector(f"{CHECKPOINTS} .scatterlayer .trace", state="attached")


def visible_panels(page, group: str) -> list[str]:
    """The y axes on which traces of a legend group are shown."""
    return page.evaluate(
        """group => [...new Set(document.querySelector('#timeline-figure')._fullData
            .filter(t => t.legendgroup === group && t.visible === true)
            .map(t => t.yaxis))].sort()""",
        group,
    )


def toggle(page, name: str) -> None:
    item = page.locator(
        f"{TIMELINE} g.traces", has=page.locator(f"text[data-unformatted='{name}']")
    ).first
    item.scroll_into_view_if_needed()
    box = item.locator("rect[class$=toggle]").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def test_both_views_are_drawn(page):
    assert page.locator(f"{TIMELINE} .scatterlayer .trace").count() > 40
    assert page.locator(f"{CHECKPOINTS} .scatterlayer .trace").count() == 4 + 8
    panels = page.evaluate(
        """() => [...document.querySelectorAll('#timeline-figure .subplot')]
            .map(s => s.querySelectorAll('.scatterlayer .trace path.js-line').length)"""
    )
    assert len(panels) == PANELS + 1  # and the strip of events, which has no lines
    assert sorted(panels)[1] > 0


def test_a_legend_entry_toggles_its_lines_in_all_panels(page):
    assert len(visible_panels(page, "L0.H0")) == 6
    toggle(page, "L0.H0")
    page.wait_for_function(
        "() => document.querySelector('#timeline-figure')._fullData"
        ".every(t => t.legendgroup !== 'L0.H0' || t.visible === 'legendonly')"
    )
    assert visible_panels(page, "L0.H0") == []
    assert len(visible_panels(page, "L0.H1")) == 6
    toggle(page, "L0.H0")
    page.wait_for_function(
        "() => document.querySelector('#timeline-figure')._fullData"
        ".every(t => t.legendgroup !== 'L0.H0' || t.visible === true)"
    )


def test_the_switch_makes_all_step_axes_logarithmic_and_keeps_step_zero(page):
    button = page.locator(f"{TIMELINE} .updatemenu-button", has_text="log steps")
    button.scroll_into_view_if_needed()
    button.click()
    kinds = (
        "() => Object.entries(document.querySelector('#timeline-figure')._fullLayout)"
        ".filter(([key]) => /^xaxis\\d*$/.test(key)).map(([, axis]) => axis.type)"
    )
    page.wait_for_function(f"() => ({kinds})().every(kind => kind === 'log')")
    assert len(page.evaluate(kinds)) == PANELS + 1
    zero = page.evaluate(
        """() => { const plot = document.querySelector('#timeline-figure');
            const axis = plot._fullLayout.xaxis2;
            const trace = plot._fullData.find(t => t.name === 'adversarial');
            return [trace.x[0], Math.log10(trace.x[0]) > axis.range[0], axis.ticktext[0]]; }"""
    )
    assert zero == [5, True, "0"]
    page.locator(f"{TIMELINE} .updatemenu-button", has_text="linear steps").click()
    page.wait_for_function(f"() => ({kinds})().every(kind => kind === 'linear')")
    first = page.evaluate(
        "() => document.querySelector('#timeline-figure')._fullData"
        ".find(t => t.name === 'adversarial').x[0]"
    )
    assert first == 0


def shown_scores(page) -> list[float]:
    return page.evaluate(
        "() => Array.from(document.querySelector('#checkpoint-figure')._fullData"
        ".find(t => t.mode === 'lines+markers').y)"
    )


def test_the_slider_shows_another_checkpoint(page, timeline: Timeline):
    before = shown_scores(page)
    rail = page.locator(f"{CHECKPOINTS} .slider-rail-touch-rect")
    rail.scroll_into_view_if_needed()
    box = rail.bounding_box()
    page.mouse.click(box["x"] + 0.25 * box["width"], box["y"] + box["height"] / 2)
    page.wait_for_function(
        "before => JSON.stringify(Array.from(document.querySelector('#checkpoint-figure')"
        "._fullData.find(t => t.mode === 'lines+markers').y)) !== JSON.stringify(before)",
        arg=before,
    )
    label = page.locator(f"{CHECKPOINTS} .slider-label").first.text_content()
    step = int(label.removeprefix("checkpoint at step "))
    assert 0 < step < 0.5 * timeline.steps[-1]
    expected = timeline.data["qk_score"].sel(step=step, layer=0, head=0).values
    assert shown_scores(page) == pytest.approx(list(expected), abs=5e-5)
    # the cells of the attention map have the colours of that step as well
    weights = timeline.data["attention_example"].sel(step=step, layer=0, head=0).values.ravel()
    darkest, lightest = int(weights.argmax()), int(weights.argmin())
    fills = page.evaluate(
        "() => [...document.querySelectorAll('#checkpoint-figure .subplot.xy .point')]"
        ".map(point => point.style.fill.match(/\\d+/g).map(Number)[0])"
    )
    assert len(fills) == len(weights)
    assert fills[darkest] < fills[lightest]


def test_a_click_on_the_timeline_moves_the_second_view(page, timeline: Timeline):
    page.evaluate(
        "() => document.querySelector('#timeline-figure').emit('plotly_click', "
        "{points: [{customdata: [33]}]})"
    )
    expected = timeline.data["qk_score"].sel(step=30, layer=0, head=0).values.tolist()
    page.wait_for_function(
        "y => Math.abs(document.querySelector('#checkpoint-figure')._fullData"
        ".find(t => t.mode === 'lines+markers').y[9] - y) < 1e-4",
        arg=expected[9],
    )
    label = page.locator(f"{CHECKPOINTS} .slider-label").first
    assert label.text_content() == "checkpoint at step 30"


def test_the_maps_are_drawn_as_they_come_into_view_and_move_the_second_view(page):
    page.locator(CARRIERS).scroll_into_view_if_needed()
    page.wait_for_selector(f"{CARRIERS} .heatmaplayer image", state="attached")
    assert page.locator(f"{CARRIERS} .heatmaplayer image").count() == 3
    x, y = page.evaluate(
        """() => { const plot = document.querySelector('#carriers-figure');
            window.scrollBy(0, plot.getBoundingClientRect().top);
            const layout = plot._fullLayout, box = plot.getBoundingClientRect();
            return [box.left + layout.xaxis2._offset + layout.xaxis2.d2p(60),
                    box.top + layout.yaxis2._offset + layout.yaxis2.d2p(5)]; }"""
    )
    page.mouse.move(x, y)
    hover = page.locator(f"{CARRIERS} .hoverlayer .hovertext").first
    hover.wait_for(state="attached")
    assert "L1.mlp · step 60" in hover.text_content()
    page.mouse.click(x, y)
    label = page.locator(f"{CHECKPOINTS} .slider-label").first
    page.wait_for_function(
        "label => label.textContent === 'checkpoint at step 60'", arg=label.element_handle()
    )
    for figure, mark in (("residual", ".heatmaplayer image"), ("ablation", ".scatterlayer .trace")):
        page.locator(f"#{figure}-figure").scroll_into_view_if_needed()
        page.wait_for_selector(f"#{figure}-figure {mark}", state="attached")


def test_the_hover_names_step_component_and_value(page):
    page.locator(f"{TIMELINE} .subplot").nth(3).scroll_into_view_if_needed()
    x, y = page.evaluate(
        """() => { const plot = document.querySelector('#timeline-figure');
            const trace = plot._fullData.find(t => t.name === 'L0.H0');
            const layout = plot._fullLayout, box = plot.getBoundingClientRect();
            const across = layout[trace.xaxis.replace('x', 'xaxis')];
            const up = layout[trace.yaxis.replace('y', 'yaxis')];
            return [box.left + across._offset + across.d2p(trace.x[8]),
                    box.top + up._offset + up.d2p(trace.y[8])]; }"""
    )
    page.mouse.move(x, y)
    hover = page.locator(f"{TIMELINE} .hoverlayer .hovertext").first
    hover.wait_for(state="attached")
    text = hover.text_content()
    assert "L0.H0" in text
    assert "step 80" in text
    assert "QK Spearman with magnitude" in text


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_scrolls_sideways_or_is_cut(open_page, report: Path, width: int):
    page = open_page(report, width=width)
    drawn(page)
    for figure in ("carriers", "ablation", "residual"):
        page.locator(f"#{figure}-figure").scroll_into_view_if_needed()
        page.wait_for_selector(f"#{figure}-figure .main-svg", state="attached")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = page.evaluate(
        """width => [...document.querySelectorAll(
            '.annotation-text, .xtick text, .ytick text, .legendtext, .textpoint text')]
            .filter(node => { const box = node.getBoundingClientRect();
                return box.width && (box.left < 0 || box.right > width); })
            .map(node => node.textContent)""",
        width,
    )
    assert cut == []


def test_a_finger_can_scroll_over_the_charts(open_page, report: Path):
    page = open_page(report, width=400, has_touch=True, is_mobile=True)
    drawn(page)
    assert page.evaluate("document.querySelector('#timeline-figure')._fullLayout.dragmode") is False
