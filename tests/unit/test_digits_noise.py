"""Digits from the preset to the page: what is trained, what the script asks, what is printed."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from idx_folder import write_idx_folder

from interp_shortcuts import presets, train
from interp_shortcuts.cli.options import TrainCommand, parse
from interp_shortcuts.errors import ConfigError, TaskError
from interp_shortcuts.runs.run import Run
from interp_shortcuts.runs.schedule import evaluation_steps
from interp_shortcuts.sweeps.noise_order import EVENTS
from interp_shortcuts.sweeps.script import load_sweeps
from interp_shortcuts.tasks.digits import Digits
from interp_shortcuts.tasks.digits_config import DigitsConfig

ROOT = Path(__file__).parents[2]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "analyses" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Two seeds of the preset on twelve pictures, three steps each."""
    folder = str(write_idx_folder(tmp_path / "idx"))
    for seed in (0, 1):
        config = presets.digits_noise_demo(seed, folder=folder, noise=0.25, n_steps=3)
        train(config, out=tmp_path / "runs" / f"seed{seed}", progress=False)
    return tmp_path / "runs"


def test_the_preset_is_a_full_batch_that_is_evaluated_at_each_early_step():
    config = presets.digits_noise_demo(seed=4)
    assert isinstance(config.task, DigitsConfig)
    assert (config.task.noise, config.optim.batch_size, config.seed) == (0.05, None, 4)
    assert evaluation_steps(config.schedule)[:12] == tuple(range(12))
    assert evaluation_steps(config.schedule)[-1] == 1000
    with pytest.raises(ConfigError, match=r"`hidden_width` is no field.*`hidden_widths`"):
        presets.digits_noise_demo(hidden_width=3)


def test_the_bundled_digits_are_trained_with_the_observed_labels(tmp_path: Path):
    """A full-batch step on 1,438 pictures; the loss that falls is that of the labels as given."""
    pytest.importorskip("sklearn")
    config = presets.digits_noise_demo(noise=0.4, n_steps=12, dense_until=0, every=12)
    run = train(config, out=tmp_path, progress=False)
    curves = run.curves().set_index(["step", "split"])
    assert curves.loc[(12, "train"), "n"] == 1438
    assert curves.loc[(12, "noisy"), "n"] == round(0.4 * 1438)
    assert curves.loc[(12, "train"), "loss"] < curves.loc[(0, "train"), "loss"]
    assert curves.loc[(12, "test"), "accuracy"] > 0.5
    assert Run.open(tmp_path).manifest["task"]["source"] == "scikit-learn"


def test_without_scikit_learn_training_says_what_to_install(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(TaskError, match=r"pip install 'interp-shortcuts\[digits\]'"):
        train(presets.digits_noise_demo(n_steps=1), out=tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_another_task_than_the_configs_is_refused(tmp_path: Path):
    folder = write_idx_folder(tmp_path / "idx")
    config = presets.digits_noise_demo(folder=str(folder), noise=0.25, n_steps=1)
    other = Digits.from_idx(folder, noise=0.5)
    with pytest.raises(ConfigError, match=r"`noise` \(=0.25 in the config, 0.5 in the task\)"):
        train(config, out=tmp_path / "run", task=other, progress=False)
    same = Digits.from_idx(folder, noise=0.25)
    train(config, out=tmp_path / "run", task=same, progress=False)


def test_the_command_line_has_the_fields_of_pictures(tmp_path: Path):
    folder = write_idx_folder(tmp_path)
    flags = ["--hidden-widths", "16", "8", "--folder", str(folder), "--noise", "0.5"]
    command = parse(["train", "digits-noise-demo", *flags])
    assert isinstance(command, TrainCommand)
    config = presets.digits_noise_demo(**command.overrides())
    assert config.spec.hash == config.replace(seed=3).spec.hash
    assert config == presets.digits_noise_demo(hidden_widths=(16, 8), folder=str(folder), noise=0.5)


def test_the_sweeps_are_three_noises_and_nine_starts_at_ten_seeds():
    noises, starts = load_sweeps(ROOT / "train" / "digits_noise.py")
    assert Counter(job.config.task.noise for job in noises.jobs) == {0.05: 10, 0.2: 10, 0.4: 10}
    cells = Counter((job.config.optim.lr, job.config.model.init_scale) for job in starts.jobs)
    assert len(cells) == 9
    assert set(cells.values()) == {10}
    for sweep in (noises, starts):
        assert sweep.base.optim.batch_size is None  # the claim is about the full batch


def test_noise_first_prints_and_writes(small: Path, capsys: pytest.CaptureFixture[str]):
    csv, page = small / "table.csv", small / "page" / "noise.html"
    assert script("noise_first").main((small,), steps=2, csv=csv, out=page) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| setting | step | clean | noisy | noisy_true |")
    assert [line.split("|")[2].strip() for line in lines[2:4]] == ["0", "1"]
    assert sum("noise=0.25" in line for line in lines) == 2 + len(EVENTS)
    table = pd.read_csv(csv)
    assert sorted(table["step"].unique()) == [0, 1, 2, 3]
    assert set(table["n"]) == {2}
    assert len(pd.read_csv(small / "table_events.csv")) == 2
    assert "Which labels are fitted first" in page.read_text()
    assert (page.parent / "plotly.min.js").stat().st_size > 1_000_000


def test_noise_first_of_nothing_is_misuse(capsys: pytest.CaptureFixture[str]):
    assert script("noise_first").main((Path("no-such-folder"),)) == 2
    assert "error: `no-such-folder` matches nothing" in capsys.readouterr().err
