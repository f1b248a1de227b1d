"""Pages on attribution and importance: findings in words, numbers, links, what is left out."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from synthetic_gap import HERO, gap_dataset, gap_timeline
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.reports.gap_report import write_gap_report
from interp_shortcuts.reports.gap_seeds_report import write_gap_seeds_report
from interp_shortcuts.timelines.gap_over_seeds import gaps_over_seeds
from interp_shortcuts.timelines.timeline import Timeline


def before_scripts(path: Path) -> str:
    page = path.read_text(encoding="utf-8")
    return page[: page.index("<script>")]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("gap")
    return write_gap_report(gap_timeline(0), out, index="../index.html")


@pytest.fixture(scope="module")
def seeds_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("seeds")
    lines = {f"seed{seed}": gap_timeline(seed) for seed in range(4)}
    excluded = {"seed3": "no length fits", "lost": "RuntimeError: out of <memory>"}
    found = gaps_over_seeds(lines, excluded=excluded, n_permutations=100, n_resamples=100)
    links = {"seed0": "seed0/report.html"}
    return write_gap_seeds_report(found, out, title="Sorting & more", links=links)


def test_the_page_of_a_run_begins_with_its_finding_in_numbers(page: Path):
    text = before_scripts(page)
    assert page.name == "report.html"
    assert "rank the 20 components with a Spearman correlation of 0.63." in text
    assert f"1 hidden hero ({HERO}) matters more than attribution says" in text
    assert '<a href="../index.html">All seeds</a>' in text
    assert "n = 20 components" in text
    assert "95% interval 0.500 to 0.600, n = 100" in text


def test_every_component_is_listed_the_largest_gap_first(page: Path):
    text = before_scripts(page)
    part = text[text.index('id="components"') : text.index('id="undefined"')]
    rows = re.findall(r'<td class="nowrap">(L\d\.\w+)</td><td>(\w+)</td>', part)
    assert len(rows) == 20
    assert {rows[0], rows[1]} == {(HERO, "hero"), ("L1.H1", "bloat")}


def test_pictures_have_their_places_in_order(page: Path):
    assert re.findall(r'class="figure plot" id="figure-([^"]+)"', before_scripts(page)) == [
        *("scatter", "attribution", "importance", "gap", "course", "joint"),
        *("pruning-1", "pruning-2"),
    ]


def test_facts_are_beside_the_page_as_json(page: Path):
    facts = json.loads(page.with_suffix(".json").read_text())
    assert facts["heroes"] == [HERO]
    assert facts["separation"]["step"] == 200
    assert len(facts["components"]) == 20
    assert {row["method"] for row in facts["methods"]} >= {"integrated gradients"}
    assert facts["remake"][0]["code"].startswith("interp-shortcuts track seed0")


def test_what_is_undefined_is_left_out_with_its_reason(tmp_path: Path):
    line = gap_timeline(1, constant_importance=True, shapley=False, joint=False, pruning=False)
    text = before_scripts(
        write_gap_report(line, tmp_path / "a.html", status_note="stopped", excluded="none fits")
    )
    assert "cannot be compared: the importance is the same for all components." in text
    assert 'class="figure plot"' not in text
    for reason in ("joint ablations were not measured", "pruning was not measured"):
        assert f"Left out: {reason}." in text
    assert "shapley was not measured" in text
    assert "<b>Not trained to its end:</b> stopped" in text
    assert "<b>In no number over seeds:</b> none fits" in text
    nothing = Timeline(gap_dataset()[["exact_match", "exact_match_interval"]])
    empty = before_scripts(write_gap_report(nothing, tmp_path / "b.html"))
    assert "gradient_norm was not measured; exact_match_drop was not measured" in empty


def test_the_page_over_seeds_lists_every_run_and_links_those_with_a_page(seeds_page: Path):
    text = before_scripts(seeds_page)
    assert "Sorting &amp; more: 5 runs, 3 counted, 2 excluded" in text
    assert "Over 3 seeds, Spearman&#39;s rho of gradient norm" in text
    part = text[text.index('id="seeds"') : text.index('id="excluded"')]
    assert re.findall(r'<a href="([^"]+)">(\w+)</a>', part) == [("seed0/report.html", "seed0")]
    assert part.count("<tr") == 1 + 5
    assert "RuntimeError: out of &lt;memory&gt;" in text
    assert re.findall(r'class="figure plot" id="figure-([^"]+)"', text) == [
        *("seeds", "identity", "layer", "course", "joint"),
        *("pruning-1", "pruning-2", "league"),
    ]


def test_runs_of_several_settings_are_named(tmp_path: Path):
    lines = {"a": gap_timeline(0), "b": gap_timeline(1)}
    attrs = lines["b"].data.attrs
    lines["b"].data.attrs["config"] = attrs["config"].replace("sorting", "reversal")
    found = gaps_over_seeds(lines, n_permutations=10, n_resamples=10)
    text = before_scripts(write_gap_seeds_report(found, tmp_path))
    assert "The runs differ in more than the seed:</b> task.operation" in text


def test_pages_over_seeds_of_nothing_say_so(tmp_path: Path):
    found = gaps_over_seeds({}, excluded={"a": "failed"}, n_permutations=1, n_resamples=1)
    text = before_scripts(write_gap_seeds_report(found, tmp_path))
    assert "1 run, 0 counted, 1 excluded" in text
    assert "Left out: no seed defines rho." in text
    assert "Left out: no seed has ranks to compare." in text


def test_the_same_timeline_gives_the_same_bytes_and_is_self_contained(page: Path, tmp_path: Path):
    again = write_gap_report(gap_timeline(0), tmp_path, index="../index.html")
    assert again.read_bytes() == page.read_bytes()
    assert b"<script src=" not in page.read_bytes()


def test_a_timeline_shows_the_page_and_picture_that_fit_it(tmp_path: Path):
    line = gap_timeline(0)
    assert line.report(tmp_path / "gap.html").read_text().count("Attribution and causal importance")
    assert line.figure().data[0].name == "rho"
    assert line.figure(step_scale="log", threshold=4.0).layout.xaxis.type == "log"
    shortcut = Timeline(synthetic_dataset(n_steps=20))
    assert "Shortcut report" in shortcut.report(tmp_path / "shortcut.html").read_text()


def test_pages_load_no_torch():
    code = (
        "import sys\n"
        "from interp_shortcuts.reports import write_gap_report, write_gap_seeds_report\n"
        "from interp_shortcuts.timelines import gaps_over_seeds\n"
        "from interp_shortcuts.plots import joint_figure, identity_roles_figure\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
