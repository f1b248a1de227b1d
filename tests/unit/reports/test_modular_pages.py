"""Pages of runs under label noise: findings in words, numbers, links, what is left out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from synthetic_modular import modular_dataset, modular_timeline

from interp_shortcuts.reports.modular_report import write_modular_report
from interp_shortcuts.reports.modular_seeds_report import write_modular_seeds_report
from interp_shortcuts.sweeps.hidden_cells import hidden_cells
from interp_shortcuts.timelines.timeline import Timeline

SMALL = {"spectra": False, "partition": False}


def before_scripts(path: Path) -> str:
    page = path.read_text(encoding="utf-8")
    return page[: page.index("<script>")]


def places(path: Path) -> list[str]:
    return re.findall(r'class="figure plot" id="figure-([^"]+)"', before_scripts(path))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("modular")
    return write_modular_report(modular_timeline(0), out, index="../index.html")


@pytest.fixture(scope="module")
def seeds_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("seeds")
    lines = {f"seed{seed}": modular_timeline(seed, **SMALL) for seed in range(3)}
    found = hidden_cells(lines, excluded={"lost": "RuntimeError: out of <memory>"})
    links = {"seed0": "seed0/report.html"}
    return write_modular_seeds_report(found, out, title="Add & more", links=links)


def test_the_page_of_a_run_begins_with_its_finding_in_numbers(page: Path):
    text = before_scripts(page)
    assert page.name == "report.html"
    assert "<h1>Network G with the quadratic activation has a test accuracy of" in text
    assert '<a href="../index.html">All runs</a>' in text
    assert "95% interval 0.740 to 0.760, n = 696" in text
    assert "≥ 1,500" in text


def test_pictures_have_their_places_in_order(page: Path):
    assert places(page) == [
        *("progress", "groups", "neurons", "spectra", "phases", "kept-top", "kept-bottom"),
    ]


def test_the_table_has_every_network_and_activation(page: Path):
    text = before_scripts(page)
    part = text[text.index('id="finals"') : text.index('id="neurons"')]
    rows = re.findall(r'<tr><td class="nowrap">([^<]+)</td><td class="nowrap">([^<]+)</td>', part)
    assert len(rows) == len(set(rows)) == 20
    assert ("R joint", "reverse relu") in rows


def test_facts_are_beside_the_page_as_json(page: Path):
    facts = json.loads(page.with_suffix(".json").read_text())
    assert facts["leads"]["quadratic"]["at_least"] == 1500
    assert facts["best"] == "quadratic"
    assert [row["which"] for row in facts["fitted_first"]] == ["noisy", "noisy"]
    assert len(facts["finals"]) == 100
    assert facts["remake"][0]["code"].startswith("interp-shortcuts track seed0")
    assert facts["settings"]["task.noise"] == 0.4


def test_what_is_undefined_is_left_out_with_its_reason(tmp_path: Path):
    line = modular_timeline(1, noise=0.0, filtered=False, **SMALL)
    out = write_modular_report(line, tmp_path / "a.html", status_note="stopped <early>")
    text = before_scripts(out)
    assert places(out) == ["progress", "groups"]
    assert "partition_accuracy was not measured" in text
    assert "concentration, joint_frequency were not measured" in text
    assert "there are no noisy labels" in text
    assert "<b>Not trained to its end:</b> stopped &lt;early&gt;" in text
    nothing = Timeline(modular_dataset()[["strength"]])
    empty = write_modular_report(nothing, tmp_path / "b.html")
    assert "Nothing can be said of this run" in before_scripts(empty)
    assert places(empty) == []


def test_the_page_over_seeds_counts_and_links(seeds_page: Path):
    text = before_scripts(seeds_page)
    assert seeds_page.name == "index.html"
    assert "Add &amp; more: 4 runs, 3 counted, 1 excluded" in text
    assert '<a href="seed0/report.html">seed0</a>' in text
    assert "out of &lt;memory&gt;" in text
    assert "the runs have one width only" in text
    assert places(seeds_page) == ["cells", "courses"]
    facts = json.loads(seeds_page.with_suffix(".json").read_text())
    assert facts["n_counted"] == 3
    assert facts["excluded"] == {"lost": "RuntimeError: out of <memory>"}
    assert facts["settings"]["model.width"] == 65


def test_the_page_over_cells_has_the_double_descent(tmp_path: Path):
    lines = {f"w{w}": modular_timeline(0, width=w, **SMALL) for w in (9, 17)}
    out = write_modular_seeds_report(hidden_cells(lines), tmp_path)
    assert places(out) == ["cells", "descent", "courses"]
    text = before_scripts(out)
    assert text.count('<tr class="group">') == 2


def test_pages_over_nothing_can_be_written(tmp_path: Path):
    out = write_modular_seeds_report(hidden_cells({}, excluded={"a": "lost"}), tmp_path)
    assert "No run counts. 1 run is excluded" in before_scripts(out)


def test_the_same_timeline_gives_the_same_bytes(page: Path, tmp_path: Path):
    again = write_modular_report(modular_timeline(0), tmp_path, index="../index.html")
    assert again.read_bytes() == page.read_bytes()


def test_a_timeline_writes_its_own_kind_of_page(tmp_path: Path):
    out = modular_timeline(0, **SMALL).report(tmp_path, threshold=0.7)
    assert "test accuracy of at least 0.7 for good" in before_scripts(out).lower()
