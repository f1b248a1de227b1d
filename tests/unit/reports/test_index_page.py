"""The index over runs: groups, exact intervals, links, and failures that stay visible."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.reports.index import SeedEntry, rate, write_index
from interp_shortcuts.timelines.timeline import Timeline


def entry(outcome: str, seed: int, ratio: float = 0.9) -> SeedEntry:
    data = synthetic_dataset(outcome, n_steps=20, seed=seed)
    config = json.loads(data.attrs["config"])
    config["task"]["ratio"] = ratio
    data.attrs["config"] = json.dumps(config)
    return SeedEntry(f"seed_{seed}", timeline=Timeline(data), href=f"seed_{seed}/report.html")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    entries = [
        entry("generalised", 0),
        entry("shortcut", 1),
        entry("transient", 2),
        entry("direct", 3, ratio=0.5),
        SeedEntry("seed_4", error="'seed_4/timeline.nc' is <damaged>"),
    ]
    path = write_index(entries, tmp_path_factory.mktemp("index"))
    assert path.name == "index.html"
    return path.read_text(encoding="utf-8")


def test_rates_have_exact_intervals():
    one = rate("generalised", 1, 4)
    assert (one.fraction, one.n) == (0.25, 4)
    # Clopper-Pearson for 1 of 4: roots of the binomial tails at 0.025
    assert one.low == pytest.approx(1 - 0.975 ** (1 / 4), abs=1e-6)
    assert one.high == pytest.approx(0.8059, abs=1e-4)
    assert rate("none", 0, 3).low == 0
    assert rate("none", 0, 3).high == pytest.approx(1 - 0.025 ** (1 / 3))


def test_runs_that_differ_in_more_than_the_seed_are_apart(page: str):
    assert "max_parity, ratio 0.9" in page
    assert "max_parity, ratio 0.5" in page
    assert "Outcomes over n = 3 seeds" in page
    assert "Outcomes over n = 1 seed<" in page
    assert "2 of 3" in page  # generalised and transient were complete at some time


def test_every_run_is_linked_and_drawn_once(page: str):
    for seed in range(4):
        assert f'href="seed_{seed}/report.html"' in page
        assert page.count(f'data-plot="seed-{seed}"') == 1
        assert page.count(f'id="seed-{seed}"') == 1


def test_failed_runs_are_shown_with_their_error_and_are_in_no_rate(page: str):
    assert "1 failed or unreadable" in page
    assert "&#39;seed_4/timeline.nc&#39; is &lt;damaged&gt;" in page
    assert " of 5" not in page[: page.index("<script>")]
    assert "seed_4" in page


def test_a_timeline_that_cannot_be_read_has_failed(tmp_path: Path):
    broken = entry("generalised", 0)
    assert broken.timeline is not None
    del broken.timeline.data.attrs["chance"], broken.timeline.data.attrs["n_classes"]
    text = write_index([broken], tmp_path / "all.html").read_text(encoding="utf-8")
    assert "1 failed or unreadable" in text
    assert "Phases need the chance level" in text


def test_plotly_is_shared_and_the_page_is_deterministic(page: str, tmp_path: Path):
    assert len(page) < 6_000_000
    two = [entry("generalised", 0), entry("shortcut", 1)]
    first = write_index(two, tmp_path / "a.html").read_bytes()
    assert write_index(two, tmp_path / "b.html").read_bytes() == first


def test_names_are_escaped_and_no_runs_are_said(tmp_path: Path):
    hostile = SeedEntry("<script>alert(1)</script>", error="</td><b>")
    text = write_index([hostile], tmp_path / "i.html", title="<i>t</i>").read_text()
    assert "<script>alert" not in text
    assert "<i>t</i>" not in text
    assert "No runs were given." in write_index([], tmp_path / "n.html").read_text()


def test_seeds_whose_adversarial_accuracy_is_unknown_are_in_no_rate_of_completion(tmp_path: Path):
    unknown = entry("generalised", 1)
    assert unknown.timeline is not None
    unknown.timeline.data["accuracy"].loc[{"split": "adversarial"}] = float("nan")
    both = write_index([entry("generalised", 0), unknown], tmp_path / "both.html").read_text()
    row = both[both.index("rule complete at any time") :]
    assert "never measured in 1 of 2 seeds" in row[:400]
    assert ">1 of 1<" in row[:400]
    alone = write_index([unknown], tmp_path / "alone.html").read_text()
    row = alone[alone.index("rule complete at any time") :].split("</tr>")[0]
    assert row.count(">–<") == 3
