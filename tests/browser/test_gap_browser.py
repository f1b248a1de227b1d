"""Pages on attribution and importance in a browser without a network, at both widths."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_gap import gap_timeline

from interp_shortcuts.reports.gap_report import write_gap_report
from interp_shortcuts.reports.gap_seeds_report import write_gap_seeds_report
from interp_shortcuts.timelines.gap_over_seeds import gaps_over_seeds

pytestmark = pytest.mark.browser

PLOTS = {"report": 8, "index": 8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("gap")
    lines = {f"seed{seed}": gap_timeline(seed) for seed in range(4)}
    found = gaps_over_seeds(lines, excluded={"seed3": "none fits"}, n_permutations=50)
    write_gap_report(lines["seed0"], out / "report.html", index="index.html")
    write_gap_seeds_report(found, out, links={"seed0": "report.html"})
    return out


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", list(PLOTS))
def test_every_picture_is_drawn_and_fits_the_window(open_page, folder: Path, name: str, width: int):
    page = open_page(folder / f"{name}.html", width=width, height=12_000)
    page.wait_for_function(
        "n => [...document.querySelectorAll('.plot')].filter(p => p.querySelector('svg')).length"
        " === n",
        arg=PLOTS[name],
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for plot in page.query_selector_all(".plot"):
        box = plot.bounding_box()
        assert box["x"] >= -1
        assert box["x"] + box["width"] <= width + 1


def test_the_pages_link_each_other(open_page, folder: Path):
    page = open_page(folder / "index.html")
    page.click("#seeds ~ .scroll a >> nth=0")
    page.wait_for_url("**/report.html")
    page.click("text=All seeds")
    page.wait_for_url("**/index.html")
