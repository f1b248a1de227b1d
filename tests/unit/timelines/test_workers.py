"""Several processes measure one trajectory: the same numbers, and errors that say where."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
import torch
import xarray as xr
from counting_measures import INTERRUPT_AT, Answers, Sums, track
from shared_measures import Awaited

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.timelines.cache import PARTIAL_NAME


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


def test_two_processes_give_to_the_bit_what_one_gives(folder: Path, marks: Path) -> None:
    threads = torch.get_num_threads()
    measures = (Sums(), Answers(), Awaited(str(marks)))
    together = track(folder, *measures, workers=2, cache=False)
    by_others = sorted(int(mark.name) for mark in marks.iterdir())
    assert by_others
    assert set(by_others) < {0, 2, 4, 6, 8}
    assert torch.get_num_threads() == threads
    assert not multiprocessing.active_children()
    torch.set_num_threads(max(threads // 2, 1))
    try:
        alone = track(folder, *measures, cache=False)
    finally:
        torch.set_num_threads(threads)
    for name, array in alone.data.data_vars.items():
        xr.testing.assert_identical(together.data[name], array)


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        ("raises", r"awaited at step \d: ValueError: no such luck"),
        ("dies", "a worker process ended before it had measured.*__main__"),
    ],
)
def test_what_happens_in_another_process_is_told(
    folder: Path, marks: Path, fails: str, message: str
) -> None:
    with pytest.raises(MeasureError, match=message):
        track(folder, Awaited(str(marks), fails), workers=2)
    assert not multiprocessing.active_children()
    assert (folder / PARTIAL_NAME).exists()  # what was measured here is kept
    marked = {mark.name for mark in marks.iterdir()}
    assert track(folder, Awaited(str(marks)), workers=1).steps == (0, 2, 4, 6, 8)
    assert {mark.name for mark in marks.iterdir()} == marked


def test_an_interrupted_tracking_ends_its_processes(folder: Path) -> None:
    INTERRUPT_AT["answers"] = 4
    with pytest.raises(KeyboardInterrupt):
        track(folder, Answers(), workers=2)
    assert not multiprocessing.active_children()


def test_errors(folder: Path) -> None:
    with pytest.raises(MeasureError, match=r"`workers` \(=0\) must be at least 1"):
        track(folder, Answers(), workers=0)
    local = Answers(split="validation")
    object.__setattr__(local, "unsendable", lambda: None)
    with pytest.raises(MeasureError, match=r"`workers` \(=2\) needs a task and measures.*cannot"):
        track(folder, local, workers=2)
    assert not multiprocessing.active_children()
