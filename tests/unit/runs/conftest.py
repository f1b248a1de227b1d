"""One tiny trained run for all tests of this folder; tests that damage it take a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tiny_runs import TINY

from interp_shortcuts.runs.run import Run
from interp_shortcuts.runs.store import RunFolder
from interp_shortcuts.training.loop import train


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(TINY, out=tmp_path_factory.mktemp("tiny") / "run", progress=False, threads=1)


@pytest.fixture
def copy(tiny_run: Run, tmp_path: Path) -> RunFolder:
    return RunFolder(Path(shutil.copytree(tiny_run.path, tmp_path / "copy")))
