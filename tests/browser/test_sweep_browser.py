"""The page of a sweep in a browser without a network: drawn, and readable at both widths."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_sweep import synthetic_sweep
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.reports.sweep import write_sweep_report
from interp_shortcuts.sweeps.alignment import align
from interp_shortcuts.timelines.timeline import Timeline

pytestmark = pytest.mark.browser

WHAT = ["generalised", "transient", "direct", "shortcut", "failed"]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = synthetic_sweep(
        [
            ({"n_layers": n, "ratio": r, "n_heads": h, "weight_decay": w}, WHAT)
            for n, h, w in ((1, 1, 0.1), (2, 1, 0.1), (2, 2, 0.1), (2, 2, 0.4))
            for r in (0.5, 0.9)
        ]
    )
    timeline = Timeline(synthetic_dataset("generalised", n_steps=30, causal_every=2))
    onset = timeline.phases().onset
    lines = {}
    for index in table.index[table["outcome"] == "generalised"][:2]:
        table.loc[index, "onset"] = onset
        lines[table.loc[index, "run"]] = timeline
    out = tmp_path_factory.mktemp("sweep")
    return write_sweep_report(table, out, aligned=align(table, lines, points=5))


@pytest.mark.parametrize("width", [400, 1280])
def test_every_picture_is_drawn_and_nothing_is_cut_or_overlaps(open_page, sweep: Path, width: int):
    page = open_page(sweep, width=width)
    names = page.evaluate("[...document.querySelectorAll('.plot')].map(place => place.id)")
    assert len(names) == 9  # every kind once, and aligned timelines of two cells
    for name in names:
        page.locator(f"#{name}").scroll_into_view_if_needed()
        page.wait_for_selector(f"#{name} .scatterlayer .trace", state="attached")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = page.evaluate(
        """width => [...document.querySelectorAll(
            '.annotation-text, .xtick text, .ytick text, .legendtext, .xtitle, .ytitle')]
            .filter(node => { const box = node.getBoundingClientRect();
                return box.width && (box.left < 0 || box.right > width); })
            .map(node => node.textContent)""",
        width,
    )
    assert cut == []
    overlapping = page.evaluate(
        """() => [...document.querySelectorAll('.plot')].flatMap(plot => {
            const nodes = [...plot.querySelectorAll(
                '.annotation-text, .legendtext, .xtitle, .ytitle, .xtick text, .ytick text')];
            const boxes = nodes.map(node => node.getBoundingClientRect());
            const found = [];
            boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
                const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                if (across > 2 && down > 3) {
                    found.push([plot.id, nodes[i].textContent, nodes[i + 1 + j].textContent]);
                }
            }));
            return found; })"""
    )
    assert overlapping == []


def test_a_hover_on_a_rate_tells_the_counts(open_page, sweep: Path):
    page = open_page(sweep)
    page.locator("#figure-rates").scroll_into_view_if_needed()
    page.wait_for_selector("#figure-rates .scatterlayer .trace", state="attached")
    x, y = page.evaluate(
        """() => { const plot = document.querySelector('#figure-rates');
            const trace = plot._fullData.find(one => one.name === 'rate');
            const layout = plot._fullLayout, box = plot.getBoundingClientRect();
            return [box.left + layout.xaxis._offset + layout.xaxis.d2p(trace.x[0]),
                    box.top + layout.yaxis._offset + layout.yaxis.d2p(trace.y[0])]; }"""
    )
    page.mouse.move(x, y)
    hover = page.locator("#figure-rates .hoverlayer .hovertext").first
    hover.wait_for(state="attached")
    text = hover.text_content()
    assert "3 of n = 4: 2 lasting, 1 transient" in text
    assert "runs not counted: 1 failed" in text
