"""Runs that are killed at any moment end as if they had not been."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from kill_launcher import CONFIG
from tiny_runs import tree

from interp_shortcuts.runs.run import Run
from interp_shortcuts.training.resume import load_resume

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[int]]]:
    root = tmp_path_factory.mktemp("killed")
    seed = random.randrange(10**6)
    print(f"seed of the random kills: {seed}")
    answer = subprocess.run(
        [sys.executable, HERE / "kill_launcher.py", root, str(seed)],
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1]), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stderr
    lines = [line.split() for line in answer.stdout.splitlines()]
    return root, {name: [int(ending) for ending in endings] for name, *endings in lines}


@pytest.mark.parametrize("name", ["random", "interrupted", "writes", "line"])
def test_the_end_is_bit_identical(killed: tuple[Path, dict[str, list[int]]], name: str):
    root, endings = killed
    assert endings["whole"] == [0]
    assert endings[name][-1] == 0, endings[name]
    whole, resumed = tree(root / "whole"), tree(root / name)
    assert resumed.keys() == whole.keys()
    assert [file for file in whole if resumed[file] != whole[file]] == []
    first, second = (load_resume(root / one / "resume.pt") for one in ("whole", name))
    assert (first.step, second.step) == (CONFIG.schedule.n_steps, CONFIG.schedule.n_steps)
    assert all((first.weights[key] == second.weights[key]).all() for key in first.weights)
    run = Run.open(root / name)
    assert run.status == "finished"
    assert run.manifest["checkpoints"] == Run.open(root / "whole").manifest["checkpoints"]
    assert len(run.trajectory()) == len(whole) - 1
    assert list((root / name).rglob("*.tmp")) == []
    assert not (root / name / ".lock").exists()


def test_the_processes_were_really_killed(killed: tuple[Path, dict[str, list[int]]]):
    _, endings = killed
    assert endings["random"].count(-9) >= 1
    assert endings["interrupted"].count(2) >= 1
    assert endings["writes"].count(-9) >= 4
    assert endings["line"] == [-9, -9, -9, 0]


def test_the_manifest_tells_of_the_resumptions(killed: tuple[Path, dict[str, list[int]]]):
    root, endings = killed
    resumed = Run.open(root / "line").manifest["resumed"]
    assert len(resumed) == len(endings["line"]) - 1
    assert [turn["step"] for turn in resumed] == [0, 14, 98]
    assert Run.open(root / "whole").manifest["resumed"] == []
