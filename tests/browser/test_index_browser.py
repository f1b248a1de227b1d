"""The index over runs in a browser without a network."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.reports.index import SeedEntry, write_index
from interp_shortcuts.timelines.timeline import Timeline

pytestmark = pytest.mark.browser

OUTCOMES = ("generalised", "shortcut", "transient", "partial", "direct", "memorised")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    entries = [
        SeedEntry(
            f"seed_{seed}",
            timeline=Timeline(synthetic_dataset(outcome, n_steps=20, seed=seed)),
            href=f"seed_{seed}/report.html",
        )
        for seed, outcome in enumerate(OUTCOMES)
    ]
    entries.append(SeedEntry("seed_6", error="'seed_6/timeline.nc' is damaged"))
    return write_index(entries, tmp_path_factory.mktemp("index"))


@pytest.mark.parametrize("width", [400, 1280])
def test_every_seed_is_drawn_as_it_comes_into_view(open_page, index: Path, width: int):
    page = open_page(index, width=width)
    for seed in range(len(OUTCOMES)):
        place = page.locator(f"#seed-{seed}")
        place.scroll_into_view_if_needed()
        page.wait_for_selector(f"#seed-{seed} .scatterlayer .trace", state="attached")
        assert page.locator(f"#seed-{seed} .scatterlayer .trace").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".badge.failed").count() == 1
