"""The scripts that turn a sweep into a page and into figures for the documentation."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from synthetic_sweep import PAPER_LIKE, synthetic_sweep
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.sweeps.alignment import align
from interp_shortcuts.timelines.timeline import Timeline

ROOT = Path(__file__).parents[2]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "analyses" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table with two tracked runs beside it, one of them with a page."""
    table = synthetic_sweep(PAPER_LIKE)
    timeline = Timeline(synthetic_dataset("generalised", n_steps=30))
    tracked = table.index[table["outcome"] == "generalised"][:2]
    table.loc[tracked, "onset"] = timeline.phases().onset
    for index in tracked:
        home = tmp_path / table.loc[index, "run"]
        home.mkdir(parents=True)
        timeline.save(home)
    (home / "report.html").touch()
    table.to_csv(tmp_path / "results.csv", index=False)
    return tmp_path


def test_sweep_report_of_a_table_aligns_and_links_what_is_there(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    csv = folder / "aligned.csv"
    code = script("sweep_report").main(folder / "results.csv", title="Mine", aligned_csv=csv)
    assert code == 0
    page = folder / "sweep.html"
    assert capsys.readouterr().out == f"{page}\n"
    text = page.read_text(encoding="utf-8")
    assert "Mine: 40 runs in 4 cells, 38 trained to the end" in text
    assert text.count("report.html") == 1
    assert 'id="figure-aligned-1"' in text
    assert set(pd.read_csv(csv)["seeds"]) == {2}
    assert len(pd.read_csv(folder / "aligned_runs.csv")) == 40


def test_what_is_no_table_is_misuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert script("sweep_report").main(tmp_path / "nothing.csv") == 2
    assert "error: " in capsys.readouterr().err
    (tmp_path / "other.csv").write_text("seed\n1\n")
    assert script("sweep_report").main(tmp_path / "other.csv") == 2
    assert "lacks the column" in capsys.readouterr().err
    (tmp_path / "depth.py").write_text("a = (1,\n2, 3)\n")
    assert script("sweep_report").main(tmp_path / "depth.py") == 2
    assert (
        "is a script; give the folder of its sweep, such as runs/depth" in capsys.readouterr().err
    )
    (tmp_path / "torn.csv").write_text("a,b\n1,2,3,4\n1,2,3,4,5\n")
    assert script("sweep_report").main(tmp_path / "torn.csv") == 2
    assert "cannot be read as a table" in capsys.readouterr().err
    assert not (tmp_path / "sweep.html").exists()


def test_replication_figures_come_from_tables_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    tables = folder / "tables"
    tables.mkdir()
    shutil.copy(folder / "results.csv", tables / "capacity.csv")
    (tables / "other.csv").write_text("seed,outcome\n1,partial\n")
    align(synthetic_sweep(PAPER_LIKE), {}).write(tables / "capacity_aligned")
    out = folder / "figures"
    assert script("replication_figures").main(tables=tables, out=out) == 0
    made = sorted(path.name for path in out.iterdir())
    assert made == [
        *("capacity-chance-distance.html", "capacity-completion.html"),
        *("capacity-interaction.html", "capacity-onset.html", "capacity-rates.html"),
    ]
    printed = capsys.readouterr()
    assert printed.out.count("<iframe") == 5
    assert 'src="../figures/capacity-rates.html"' in printed.out
    assert "no weight-decay (the runs have one weight_decay only (0.1))" in printed.err
    assert "other.csv" not in printed.err


def test_the_committed_tables_make_figures_or_say_why(tmp_path: Path):
    assert script("replication_figures").main(out=tmp_path) == 0
