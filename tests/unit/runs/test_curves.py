from __future__ import annotations

import math
from pathlib import Path

import pytest

from interp_shortcuts.errors import StorageError
from interp_shortcuts.runs.curves import (
    append_curve,
    check_reached,
    curves_frame,
    cut_curves,
    read_curves,
)

SCORE = {"loss": 0.5, "accuracy": 0.75, "shortcut_rate": 0.25, "n": 4}
EMPTY = {"loss": None, "accuracy": None, "shortcut_rate": None, "n": 0}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "curves.jsonl"
    for step in (0, 1, 10):
        append_curve(path, {"step": step, "train": SCORE, "anti": EMPTY})
    return path


def test_tidy_frame_with_nan_for_an_empty_split(path: Path):
    frame = curves_frame(read_curves(path, torn_end_allowed=False))
    assert list(frame.columns) == ["step", "split", "loss", "accuracy", "shortcut_rate", "n"]
    assert len(frame) == 6
    first, second = frame.iloc[0], frame.iloc[1]
    assert (first["step"], first["split"], first["loss"], first["n"]) == (0, "train", 0.5, 4)
    assert second["n"] == 0
    assert math.isnan(second["accuracy"])


def test_no_curves_make_an_empty_frame(tmp_path: Path):
    frame = curves_frame(read_curves(tmp_path / "curves.jsonl", torn_end_allowed=False))
    assert len(frame) == 0
    assert "accuracy" in frame


def test_a_torn_end_is_passed_over_only_where_a_kill_explains_it(path: Path):
    path.write_bytes(path.read_bytes()[:-5])
    assert [one["step"] for one in read_curves(path, torn_end_allowed=True)] == [0, 1]
    with pytest.raises(StorageError, match=r"line 3 is damaged\. Delete the run folder and train"):
        read_curves(path, torn_end_allowed=False)


def test_damage_before_the_end_is_always_an_error(path: Path):
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], lines[1][:9], *lines[2:]]))
    with pytest.raises(StorageError, match=r"line 2 is damaged"):
        read_curves(path, torn_end_allowed=True)


def test_steps_out_of_order_are_an_error(path: Path):
    append_curve(path, {"step": 10, "train": SCORE})
    with pytest.raises(StorageError, match=r"line 4: step 10 comes after step 10"):
        read_curves(path, torn_end_allowed=True)


def test_lines_must_reach_the_step_at_which_the_run_ended(path: Path):
    records = read_curves(path, torn_end_allowed=False)
    check_reached(path, records, step=10)
    with pytest.raises(StorageError, match=r"ends at step 1, though .* step 10 .* Delete the run"):
        check_reached(path, records[:-1], step=10)
    with pytest.raises(StorageError, match=r"has no line, though .* step 10"):
        check_reached(path, [], step=10)
    path.unlink()
    with pytest.raises(StorageError, match=r"is missing, though .* \(in a sweep: repeat the"):
        check_reached(path, records, step=10)


def test_cut_drops_what_lies_beyond_a_step(path: Path):
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"step":20,"tr')
    cut_curves(path, after=10, expected=[0, 1, 10])
    assert path.read_bytes() == whole
    cut_curves(path, after=5, expected=[0, 1])
    assert [one["step"] for one in read_curves(path, torn_end_allowed=False)] == [0, 1]
    cut_curves(path, after=-1, expected=[])
    assert path.read_bytes() == b""


def test_cut_tells_of_lines_that_are_missing_before_the_step(path: Path):
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], lines[2], b""]))
    with pytest.raises(StorageError, match=r"the line of step 1 is missing .* reached step 10"):
        cut_curves(path, after=10, expected=[0, 1, 10])
    path.write_bytes(lines[0] + b"\n" + lines[1][:8])
    with pytest.raises(StorageError, match=r"the line of step 1 is missing"):
        cut_curves(path, after=10, expected=[0, 1, 10])
