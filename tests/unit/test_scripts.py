"""The scripts in `train/` and `analyses/` run, on tiny models."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from interp_shortcuts.sweeps.script import load_sweeps
from interp_shortcuts.tasks.rules import RULES

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted([*(ROOT / "train").glob("*.py"), *(ROOT / "analyses").glob("*.py")])


def script(folder: str, name: str) -> ModuleType:
    path = ROOT / folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{folder}_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The four cells of `train/max_parity.py`, one tiny seed each."""
    out = tmp_path_factory.mktemp("cells")
    assert script("train", "max_parity").main(seeds="3", out=out, workers=1, smoke=True) == 0
    return out


def test_sequences_trains_both_tasks_and_says_what_to_ask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    module = script("train", "sequences")
    assert len(module.SEEDS.split(",")) == 10
    assert module.main(seeds="3", out=tmp_path, workers=1, smoke=True) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(line.endswith("excluded: no held-out length qualifies") for line in lines)
    names = sorted(path.name.split("-demo-")[0] for path in tmp_path.iterdir())
    assert names == ["sequence-reversal", "sequence-sorting"]


def test_shortcut_types_is_the_four_tasks_at_chance_and_above():
    (sweep,) = load_sweeps(ROOT / "train" / "shortcut_types.py")
    cells = Counter((job.config.task.rule, job.config.task.ratio) for job in sweep.jobs)
    assert set(cells.values()) == {10}
    for rule, registered in RULES.items():
        assert {ratio for name, ratio in cells if name == rule} == {1 / registered.n_classes, 0.9}


def test_imbalance_capacity_is_the_four_cells_at_ten_seeds():
    sweeps = load_sweeps(ROOT / "train" / "imbalance_capacity.py")
    assert [sweep.base.task.n_integers for sweep in sweeps] == [80, 40]
    for sweep in sweeps:
        cells = [(job.config.model.n_layers, job.config.task.ratio) for job in sweep.jobs]
        assert Counter(cells) == {(1, 0.5): 10, (1, 0.9): 10, (2, 0.5): 10, (2, 0.9): 10}


def test_the_same_cells_at_the_papers_size():
    (sweep,) = load_sweeps(ROOT / "train" / "imbalance_capacity_paper.py")
    cells = {(job.config.model.n_layers, job.config.task.ratio) for job in sweep.jobs}
    assert cells == {(1, 0.5), (1, 0.9), (2, 0.5), (2, 0.9)}
    assert (sweep.base.task.n_train, sweep.base.schedule.n_steps) == (16_384, 15_000)


def test_the_ratios_of_the_unifying_principle_lie_around_chance():
    sweeps = load_sweeps(ROOT / "train" / "unifying_principle.py")
    assert [sweep.base.task.rule for sweep in sweeps] == ["max_parity", "max_mod3"]
    for sweep, chance in zip(sweeps, (1 / 2, 1 / 3), strict=True):
        ratios = Counter(job.config.task.ratio for job in sweep.jobs)
        assert set(ratios.values()) == {10}
        assert chance in ratios
        assert min(ratios) < chance < max(ratios)


def test_the_regime_map_is_one_seed_of_both_depths_and_ratios():
    (sweep,) = load_sweeps(ROOT / "train" / "regime_map.py")
    sizes = Counter(
        (job.config.task.length, job.config.task.n_integers, job.config.task.n_train)
        for job in sweep.jobs
    )
    assert len(sizes) == 8
    assert set(sizes.values()) == {4}


def test_heads_differ_in_nothing_else():
    (sweep,) = load_sweeps(ROOT / "train" / "heads.py")
    assert Counter(job.config.model.n_heads for job in sweep.jobs) == {1: 10, 2: 10, 4: 10}
    assert {job.config.task.ratio for job in sweep.jobs} == {0.9}


def test_weight_decay_spans_the_papers_range_and_is_not_stopped_early():
    (sweep,) = load_sweeps(ROOT / "train" / "weight_decay.py")
    cells = Counter(job.config.optim.weight_decay for job in sweep.jobs)
    assert cells == dict.fromkeys((0.1, 0.2, 0.3, 0.4), 10)
    assert sweep.base.early_stop is None  # what is found must be able to be lost


def test_phase2_report(cells: Path, capsys: pytest.CaptureFixture[str]):
    assert script("analyses", "phase2_report").main((cells,)) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == (
        "| run | ratio | n_layers | seed | outcome | onset | completion | last_step |"
    )
    assert len(out.splitlines()) == 2 + 4
    assert len(list(cells.glob("*/report.html"))) == 4
    assert str(cells / "index.html") in err


def test_outcome_table_as_csv(cells: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert script("analyses", "outcome_table").main((cells,), csv=True) == 0
    (tmp_path / "table.csv").write_text(capsys.readouterr().out)
    table = pd.read_csv(tmp_path / "table.csv")
    assert sorted(zip(table["n_layers"], table["ratio"], strict=True)) == [
        (1, 0.5),
        (1, 0.9),
        (2, 0.5),
        (2, 0.9),
    ]
    assert set(table["seed"]) == {3}
    assert table["problem"].isna().all()


def test_handover_table(cells: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert script("analyses", "handover_table").main((cells,), csv=tmp_path / "h.csv") == 0
    out = capsys.readouterr().out
    assert out.startswith("| run | outcome | shortcut_learned |")
    assert "| onset | 0 | 4 |" in out
    assert len(pd.read_csv(tmp_path / "h.csv")) == 4


@pytest.mark.parametrize("name", ["phase2_report", "outcome_table", "handover_table"])
def test_analyses_of_nothing_are_misuse(name: str, capsys: pytest.CaptureFixture[str]):
    assert script("analyses", name).main((Path("no-such-folder"),)) == 2
    assert "error: `no-such-folder` matches nothing" in capsys.readouterr().err


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_are_short_and_hold_no_maths(path: Path):
    text = path.read_text()
    assert len(text.splitlines()) < 100
    assert "import torch" not in text
    assert "import numpy" not in text
