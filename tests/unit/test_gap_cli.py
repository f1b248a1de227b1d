"""Runs of sequence tasks on the command line and in the script: which pages, who is excluded."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pandas as pd
import pytest
from synthetic_gap import gap_timeline
from tiny_run import tiny_config

from interp_shortcuts.cli.gap_pages import why_excluded, write_seeds_pages
from interp_shortcuts.cli.page_names import page_names
from interp_shortcuts.cli.tracked import TrackedRun, track_run, write_indexes, write_page
from interp_shortcuts.models.spec import Architecture
from interp_shortcuts.runs.config import OptimConfig, RunConfig, ScheduleConfig
from interp_shortcuts.runs.run import Run
from interp_shortcuts.tasks.sequence_config import SequenceConfig
from interp_shortcuts.training.loop import train

SCRIPT = Path(__file__).parents[2] / "analyses" / "gradient_vs_causal.py"


def sequence_config(seed: int = 0, operation: str = "sorting") -> RunConfig:
    task = {"operation": operation, "n_integers": 4, "train_min": 1, "train_max": 2}
    return RunConfig(
        task=SequenceConfig.model_validate({**task, "heldout_max": 3, "n_per_length": 4}),
        model=Architecture(d_model=8, d_mlp=8, n_layers=1),
        optim=OptimConfig(batch_size=8),
        schedule=ScheduleConfig(n_steps=2, every=2, dense_until=0),
        seed=seed,
    )


def loaded_script():
    spec = importlib.util.spec_from_file_location("gradient_vs_causal", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def tracked(folder: Path, seed: int, **options) -> TrackedRun:
    config = sequence_config(seed, options.pop("operation", "sorting"))
    return TrackedRun(folder / f"seed{seed}", config, gap_timeline(seed), **options)


@pytest.fixture(scope="module")
def untaught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that never answers right, so that no length qualifies."""
    folder = tmp_path_factory.mktemp("runs")
    train(sequence_config(), out=folder / "seed0", progress=False, threads=1)
    return folder


def test_a_run_without_a_length_that_fits_is_excluded_with_its_accuracies(untaught: Path):
    run = Run.open(untaught / "seed0")
    assert why_excluded(run) == (
        "no held-out length has an exact match from 0.20 to 0.75: 0.00 at length 3"
    )
    found = track_run(untaught / "seed0")
    assert found.error is None
    assert found.phases is None
    assert "cannot be compared" in found.sentence
    page = write_page(found, index=untaught).read_text()
    assert "In no number over seeds:</b> no held-out length has an exact match" in page
    (index,) = write_indexes([found], untaught, page_names([found.path]))
    text = index.read_text()
    assert index.name == "index.html"
    assert "1 run, 0 counted, 1 excluded" in text
    assert '<a href="seed0/report.html">seed0</a>: no held-out length' in text


def test_runs_share_a_page_when_they_differ_in_the_seed_alone(tmp_path: Path):
    configs = {
        "a": sequence_config(0),
        "b": sequence_config(1),
        "c": sequence_config(0, "reversal"),
        "d": sequence_config(0).replace(n_steps=4),
        "gone": None,
    }
    paths = [tmp_path / name for name in configs]
    for path, config in zip(paths, configs.values(), strict=True):
        if config is not None:
            train(config, out=path, progress=False, threads=1)
    names = {path.name: name for path, name in page_names(paths).items()}
    assert names == {
        "a": "index.html",
        "b": "index.html",
        "c": "reversal.html",
        "d": "sorting.html",
        "gone": "index.html",
    }
    train(tiny_config(), out=tmp_path / "e", progress=False, threads=1)
    mixed = {path.name: name for path, name in page_names([*paths, tmp_path / "e"]).items()}
    assert (mixed["a"], mixed["d"], mixed["e"]) == ("sorting.html", "sorting-2.html", "index.html")


def test_pages_over_seeds_list_problems_and_link_each_other(tmp_path: Path):
    runs = [
        tracked(tmp_path, 0),
        tracked(tmp_path, 1),
        tracked(tmp_path, 2, excluded="no length fits"),
        TrackedRun(tmp_path / "seed3", sequence_config(3), error=RuntimeError("out of memory")),
        TrackedRun(tmp_path / "seed4", error=ValueError("damaged")),
        tracked(tmp_path, 5, operation="reversal"),
    ]
    names = {run.path: "index.html" for run in runs} | {runs[-1].path: "reversal.html"}
    pages = write_seeds_pages(runs, tmp_path, names, n_permutations=20, n_resamples=20)
    assert [page.name for page in pages] == ["index.html", "reversal.html"]
    text = pages[0].read_text()
    assert "Sequence sorting: 5 runs, 2 counted, 3 excluded" in text
    for reason in ("no length fits", "out of memory", "damaged"):
        assert reason in text
    assert '<a href="reversal.html">Sequence reversal</a>' in text
    assert '<a href="seed2/report.html">seed2</a>' in text  # it has a page, though it counts not


def test_the_script_writes_tables_figures_and_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    script = loaded_script()
    folders = [tmp_path / f"seed{seed}" for seed in range(3)]
    for folder in folders:
        folder.mkdir()
    runs = {folder: tracked(tmp_path, seed) for seed, folder in enumerate(folders)}
    monkeypatch.setattr(script, "run_folders", lambda paths, on_skip: folders)
    monkeypatch.setattr(script, "page_names", lambda paths: dict.fromkeys(paths, "index.html"))
    monkeypatch.setattr(script, "track_run", lambda path, threads, **_: runs[path])
    assert script.main((tmp_path,), out=tmp_path / "out", n_permutations=20) == 0
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"index.html", "index.json", "gap_seeds.csv", "gap_league.csv", "gap_roles.csv",
            "gap-league.html", "gap-identity.html", "gap-pruning-1.html"} <= written  # fmt: skip
    assert pd.read_csv(tmp_path / "out" / "gap_seeds.csv")["rho"].notna().sum() == 3
    assert capsys.readouterr().out.splitlines()[-1] == str(tmp_path / "out" / "index.html")
    assert (folders[0] / "report.html").read_text().count('href="../out/index.html"') == 1


def test_the_script_refuses_what_is_no_sequence_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    script = loaded_script()
    assert script.main((tmp_path / "no-such-folder",)) == 2
    assert "error:" in capsys.readouterr().err
