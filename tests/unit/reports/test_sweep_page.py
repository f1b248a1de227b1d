"""The page of a sweep: the finding in words, every run, links, and what is left out and why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from synthetic_sweep import PAPER_LIKE, synthetic_sweep

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.reports.sweep import report_links, sweep_figures, write_sweep_report
from interp_shortcuts.sweeps.alignment import align

NAMES = [
    *("rates", "interaction", "onset", "completion"),
    *("chance-distance", "weight-decay", "heads-onset", "aligned"),
]


@pytest.fixture(scope="module")
def table():
    return synthetic_sweep(PAPER_LIKE)


@pytest.fixture(scope="module")
def text(table, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("sweep")
    links = {table["run"][0]: "runs/a/report.html"}
    path = write_sweep_report(table, out, title="Imbalance & capacity", links=links)
    assert path == out / "sweep.html"
    page = path.read_text(encoding="utf-8")
    return page[: page.index("<script>")]


def test_every_figure_is_there_or_named_with_its_reason(table):
    figures = sweep_figures(table)
    assert [one.name for one in figures] == NAMES
    assert {one.name: one.missing for one in figures if one.missing} == {
        "weight-decay": "the runs have one weight_decay only (0.1)",
        "heads-onset": "the runs have one n_heads only (2)",
        "aligned": "no run was tracked",
    }
    assert all((one.figure is None) == bool(one.missing) for one in figures)


def test_cells_that_differ_in_more_than_ratio_and_layers_have_no_interaction():
    cells = [
        ({"n_layers": n, "ratio": r, "n_heads": n}, ["shortcut"])
        for n in (1, 2)
        for r in (0.5, 0.9)
    ]
    (found,) = [one for one in sweep_figures(synthetic_sweep(cells)) if one.name == "interaction"]
    assert found.missing == "no setting of n_heads has all four cells of ratio and n_layers"


def test_the_page_says_the_finding_in_words_with_numbers(text: str):
    assert "Imbalance &amp; capacity: 40 runs in 4 cells, 38 trained to the end" in text
    assert "changed the share of seeds that generalise by +0.78 with n_layers 2" in text
    assert "2 runs are in no rate" in text
    assert "Left out: weight decay (the runs have one weight_decay only (0.1)); " in text


def test_pictures_have_their_places_in_order(text: str):
    assert re.findall(r'class="figure plot" id="([^"]+)"', text) == [
        "figure-rates",
        "figure-interaction",
        "figure-onset",
        "figure-completion",
        "figure-chance-distance",
    ]


def test_every_run_is_listed_and_linked_only_if_it_has_a_page(text: str):
    runs = text[text.index('id="runs"') : text.index('id="definitions"')]
    assert len(re.findall(r"<tr><td class=\"n\">", runs)) == 40
    assert re.findall(r'<a href="([^"]+)">seed (\d+)</a>', runs) == [("runs/a/report.html", "0")]


def test_runs_that_do_not_count_are_shown_with_status_and_escaped_error(text: str):
    part = text[text.index('id="not-counted"') : text.index('id="runs"')]
    assert part.count("<tr><td") == 2
    assert "RuntimeError: out of &lt;memory&gt;" in part
    assert ">running<" in part
    cells = text[text.index('id="cells"') : text.index('id="not-counted"')]
    assert "<td>1 failed</td>" in cells
    assert "<td>1 unfinished</td>" in cells
    assert "7 of 9" in cells


def test_definitions_thresholds_and_shared_settings_are_printed(text: str):
    assert "Kaplan-Meier" in text
    assert '<code>validation_level</code></td><td class="n">0.950' in text
    setting = text[text.index('id="setting"') :]
    assert '<code>n_train</code></td><td class="value">4096' in setting
    assert "<code>ratio</code>" not in setting


def test_the_same_table_gives_the_same_bytes_and_is_self_contained(table, tmp_path: Path):
    first = write_sweep_report(table, tmp_path / "a.html").read_bytes()
    assert write_sweep_report(table, tmp_path / "b.html").read_bytes() == first
    assert b"<script src=" not in first
    assert len(first) < 6_000_000


def test_runs_behind_aligned_timelines_are_listed_with_the_reason(table, tmp_path: Path):
    page = write_sweep_report(table, tmp_path / "a.html", aligned=align(table, {})).read_text()
    assert "no tracked run has an onset to align at" in page
    assert "no: not tracked" in page
    assert "no: no onset (shortcut)" in page
    assert "no: failed" in page


def test_links_are_found_relative_to_the_page(table, tmp_path: Path):
    run = table["run"][3]
    (tmp_path / "sweep" / run).mkdir(parents=True)
    (tmp_path / "sweep" / run / "report.html").touch()
    found = report_links(table, tmp_path / "sweep", tmp_path / "pages")
    assert found == {run: f"../sweep/{run}/report.html"}


def test_a_sweep_that_has_just_begun_and_an_empty_one_have_pages(table, tmp_path: Path):
    begun = synthetic_sweep([(setting, ["pending", "running"]) for setting, _ in PAPER_LIKE])
    page = write_sweep_report(begun, tmp_path / "begun.html").read_text()
    assert "cannot be told yet: no run with n_layers=1, ratio=0.5 and none with" in page
    assert "rates (no run has ended yet)" in page
    empty = write_sweep_report(table.iloc[:0], tmp_path / "empty.html").read_text()
    assert "0 runs in 0 cells, 0 trained to the end" in empty


def test_a_table_that_is_none_is_refused(table, tmp_path: Path):
    with pytest.raises(ConfigError, match="must have the columns"):
        write_sweep_report(table.drop(columns="chance"), tmp_path)
