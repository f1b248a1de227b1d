"""A tiny trained run, and a copy of it for each test to track and change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny_run import trained

    from interp_shortcuts.runs.trajectory import Trajectory

    path = trained(tmp_path_factory.mktemp("run") / "tiny").path
    assert Trajectory.open(path).steps == (0, 2, 4, 6, 8)
    return path


@pytest.fixture
def folder(run: Path, tmp_path: Path) -> Iterator[Path]:
    from counting_measures import CALLS, INTERRUPT_AT
    from tiny_run import copied

    CALLS.clear()
    INTERRUPT_AT.clear()
    yield copied(run, tmp_path / "run")
    INTERRUPT_AT.clear()
