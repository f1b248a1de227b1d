"""The scripts of modular arithmetic under label noise: what is trained, asked and written."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from interp_shortcuts import presets
from interp_shortcuts.models.two_layer_spec import TwoLayerArchitecture
from interp_shortcuts.sweeps.script import load_sweeps
from interp_shortcuts.tasks.modular_config import ModularConfig
from interp_shortcuts.training.loop import train

ROOT = Path(__file__).parents[2]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "analyses" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def widths(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two widths at two seeds, a few steps each."""
    folder = tmp_path_factory.mktemp("widths")
    for width in (9, 17):
        for seed in (0, 1):
            config = presets.modular_noise_demo(
                seed, modulus=7, width=width, n_steps=4, dense_until=0, every=2
            )
            train(config, out=folder / f"w{width}-{seed}", progress=False)
    return folder


def test_noise_is_swept_to_eighty_percent_at_ten_seeds():
    (sweep,) = load_sweeps(ROOT / "train" / "modular_noise.py")
    cells = Counter(
        job.config.task.noise for job in sweep.jobs if isinstance(job.config.task, ModularConfig)
    )
    assert cells == dict.fromkeys((0.0, 0.2, 0.4, 0.6, 0.8), 10)


def test_widths_are_the_papers_powers_of_two_plus_one():
    (sweep,) = load_sweeps(ROOT / "train" / "double_descent.py")
    models = [job.config.model for job in sweep.jobs]
    widths = {model.width for model in models if isinstance(model, TwoLayerArchitecture)}
    assert widths == {17, 33, 65, 129, 257, 513}


def test_settings_are_changed_one_kind_at_a_time():
    sweeps = load_sweeps(ROOT / "train" / "modular_settings.py")
    changed = {
        sweep.name.removeprefix("modular-"): {name for cell in sweep.cells for name in cell.fields}
        for sweep in sweeps
    }
    assert changed == {
        "weight-decay": {"weight_decay"},
        "activation": {"activation"},
        "arithmetic": {"arithmetic"},
        "optimizer": {"optimizer", "lr", "momentum", "weight_decay"},
    }
    assert {sweep.base.name for sweep in sweeps} == {"modular_noise_demo"}


def test_frequency_filtering_writes_the_page_its_tables_and_figures(
    widths: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    assert script("frequency_filtering").main((widths,), out=tmp_path, every=9) == 0
    out = capsys.readouterr().out
    assert "| cell | clean labels | noisy labels | test | G, test |" in out
    assert out.splitlines()[-1] == str(tmp_path / "index.html")
    finals = pd.read_csv(tmp_path / "cells_finals.csv")
    assert set(finals["network"]) == {"full", "G", "R", "G joint", "R joint"}
    assert set(finals["n"]) == {2}
    assert (tmp_path / "cells-descent.html").exists()
    assert len(list(widths.glob("*/report.html"))) == 4


def test_double_descent_is_a_row_a_width(
    widths: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    csv, figure = tmp_path / "d.csv", tmp_path / "d.html"
    assert script("double_descent").main((widths,), csv=csv, out=figure) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[0] for line in lines[2:4]] == ["| 9", "| 17"]
    assert set(pd.read_csv(csv)["width"]) == {9, 17}
    assert figure.exists()


def test_runs_without_noise_labels_are_misuse(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    train(presets.smoke(), out=tmp_path / "run", progress=False)
    assert script("frequency_filtering").main((tmp_path / "run",), every=9) == 2
    assert "none of the runs is one with wrong training labels" in capsys.readouterr().err
    assert script("double_descent").main((tmp_path / "missing",)) == 2
