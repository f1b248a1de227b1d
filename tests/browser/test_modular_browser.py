"""Pages of runs under label noise in a browser without a network, at both widths."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_modular import modular_timeline

from interp_shortcuts.reports.modular_report import write_modular_report
from interp_shortcuts.reports.modular_seeds_report import write_modular_seeds_report
from interp_shortcuts.sweeps.hidden_cells import hidden_cells

pytestmark = pytest.mark.browser

PLOTS = {"report": 7, "index": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("modular")
    lines = {
        f"w{width}-seed{seed}": modular_timeline(seed, width=width)
        for width in (17, 65)
        for seed in range(2)
    }
    write_modular_report(lines["w65-seed0"], out / "report.html", index="index.html")
    found = hidden_cells(lines, excluded={"lost": "out of memory"})
    write_modular_seeds_report(found, out, links={"w65-seed0": "report.html"})
    return out


def drawn(open_page, folder: Path, name: str, width: int):
    page = open_page(folder / f"{name}.html", width=width, height=14_000)
    page.wait_for_function(
        "n => [...document.querySelectorAll('.plot')].filter(p => p.querySelector('svg')).length"
        " === n",
        arg=PLOTS[name],
    )
    return page


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", list(PLOTS))
def test_every_picture_is_drawn_and_fits_the_window(open_page, folder: Path, name: str, width: int):
    page = drawn(open_page, folder, name, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for plot in page.query_selector_all(".plot"):
        box = plot.bounding_box()
        assert box["x"] >= -1
        assert box["x"] + box["width"] <= width + 1


def test_headings_do_not_lie_over_the_pictures(open_page, folder: Path):
    page = drawn(open_page, folder, "report", 400)
    for name in ("progress", "spectra", "kept-top"):
        boxes = page.evaluate(
            "name => { const plot = document.getElementById('figure-' + name);"
            " const text = plot.querySelector('.annotation-text').getBoundingClientRect();"
            " const top = plot.getBoundingClientRect().top + plot._fullLayout._size.t;"
            " return [text.bottom, top]; }",
            name,
        )
        assert boxes[0] <= boxes[1] + 1, name


def test_the_menu_shows_another_vector(open_page, folder: Path):
    page = drawn(open_page, folder, "report", 1280)
    shown = "document.getElementById('figure-spectra').data.map(t => t.visible)"
    assert page.evaluate(shown) == [False, False, True]
    page.click("#figure-spectra .updatemenu-header")
    page.click("#figure-spectra .updatemenu-dropdown-button >> nth=0")
    page.wait_for_function(f"{shown}[0] === true")
    assert page.evaluate(shown) == [True, False, False]


def test_the_slider_moves_the_neurons(open_page, folder: Path):
    page = drawn(open_page, folder, "report", 1280)
    first = "document.getElementById('figure-neurons').data[1].y[1]"
    at_end = page.evaluate(first)
    page.evaluate(
        "Plotly.animate('figure-neurons', ['0'], {mode: 'immediate', frame: {duration: 0}})"
    )
    page.wait_for_function(f"{first} < 0.5")
    assert at_end > 0.9


def test_the_pages_link_each_other(open_page, folder: Path):
    page = open_page(folder / "index.html")
    page.click("#runs ~ .scroll a >> nth=0")
    page.wait_for_url("**/report.html")
    page.click("text=All runs")
    page.wait_for_url("**/index.html")
