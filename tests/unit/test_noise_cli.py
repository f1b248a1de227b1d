"""Runs under label noise on the command line: tracked, a page each, and a page over them."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_modular import modular_timeline
from tiny_run import tiny_config

from interp_shortcuts.cli import main
from interp_shortcuts.cli.noise_pages import write_noise_pages
from interp_shortcuts.cli.page_names import page_names
from interp_shortcuts.cli.tracked import TrackedRun, write_indexes, write_page
from interp_shortcuts.models.two_layer_spec import TwoLayerArchitecture
from interp_shortcuts.runs.config import RunConfig, ScheduleConfig
from interp_shortcuts.tasks.modular_config import ModularConfig
from interp_shortcuts.training.loop import train


def noisy_config(seed: int = 0, width: int = 5, arithmetic: str = "add") -> RunConfig:
    task = ModularConfig.model_validate({"modulus": 5, "arithmetic": arithmetic})
    return RunConfig(
        task=task,
        model=TwoLayerArchitecture(width=width),
        schedule=ScheduleConfig(n_steps=2, every=2, dense_until=0),
        seed=seed,
    )


def tracked(folder: Path, seed: int, **options) -> TrackedRun:
    line = modular_timeline(seed, spectra=False, partition=False)
    return TrackedRun(folder / f"seed{seed}", noisy_config(seed), line, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    train(noisy_config(0), out=out / "seed0", progress=False, threads=1)
    train(noisy_config(1, width=7), out=out / "seed1", progress=False, threads=1)
    return out


def test_runs_of_one_folder_share_a_page_whatever_their_setting(folder: Path):
    paths = [folder / "seed0", folder / "seed1"]
    assert page_names(paths) == dict.fromkeys(paths, "index.html")


def test_beside_runs_with_a_shortcut_they_have_their_own_page(folder: Path, tmp_path: Path):
    path = tmp_path / "shortcut"
    train(tiny_config(), out=path, progress=False, threads=1)
    names = page_names([path, folder / "seed0"])
    assert names == {path: "index.html", folder / "seed0": "modular.html"}


def test_track_and_report_on_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["track", str(folder / "seed0"), "--threads", "1"]) == 0
    assert "The network itself" in capsys.readouterr().out
    assert main(["report", str(folder), "--threads", "1"]) == 0
    printed = capsys.readouterr().out.split()
    assert printed == [
        str(folder / name) for name in ("seed0/report.html", "seed1/report.html", "index.html")
    ]
    assert "2 runs in 2 cells, which differ in model.width." in (folder / "index.html").read_text()
    assert 'href="../index.html"' in (folder / "seed0" / "report.html").read_text()


def test_a_run_with_a_problem_is_listed_and_in_no_number(tmp_path: Path):
    runs = [
        tracked(tmp_path, 0),
        tracked(tmp_path, 1, unfinished="training stopped at step 1 of 2"),
        TrackedRun(tmp_path / "broken", error=ValueError("half written")),
    ]
    names = {run.path: "index.html" for run in runs}
    (page,) = write_noise_pages(runs, tmp_path, names)
    text = page.read_text()
    assert "Add modulo 5: 3 runs, 1 counted, 2 excluded" in text
    assert "training stopped at step 1 of 2" in text
    assert "half written" in text
    assert write_indexes(runs, tmp_path, names) == [page]
    own = write_page(runs[1], index=tmp_path, name="index.html")
    assert "<b>Not trained to its end:</b> training stopped at step 1 of 2" in own.read_text()
