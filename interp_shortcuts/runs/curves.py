"""Learning curves: one JSON line per evaluated step, appended and flushed, so a kill loses little.

Lines hold nothing that depends on the clock or the machine: the same run gives the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from interp_shortcuts.errors import StorageError
from interp_shortcuts.runs.store import TRAIN_ANEW, write_text

COLUMNS = ("loss", "accuracy", "shortcut_rate", "n")


def append_curve(path: Path, record: Mapping[str, Any]) -> None:
    """Append one evaluated step, and return once it is on disk."""
    line = json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def read_curves(path: Path, *, torn_end_allowed: bool) -> list[dict[str, Any]]:
    """All lines, in order of their steps.

    Args:
        path: The run's curves.jsonl; a missing file has no lines.
        torn_end_allowed: Whether a last line that a kill cut short is passed over.

    Raises:
        StorageError: If a line is damaged or out of order.
    """
    if not path.exists():
        return []
    records: list[dict[str, Any]] = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        last = number == len(lines)
        if last and (not line or torn_end_allowed):
            break
        record = _parse(line)
        if record is None or last:
            raise StorageError(f"'{path}', line {number} is damaged. {TRAIN_ANEW}")
        if records and record["step"] <= records[-1]["step"]:
            raise StorageError(
                f"'{path}', line {number}: step {record['step']} comes after step "
                f"{records[-1]['step']}. The file was edited or written by two processes. "
                f"{TRAIN_ANEW}"
            )
        records.append(record)
    return records


def check_reached(path: Path, records: Sequence[Mapping[str, Any]], *, step: int) -> None:
    """Raise a `StorageError` unless the lines go on to a step: that at which the run ended.

    Args:
        path: The run's curves.jsonl.
        records: Its lines, as `read_curves` gives them.
        step: The step of its last line.
    """
    if not path.exists():
        raise StorageError(f"'{path}' is missing, though the run has ended. {TRAIN_ANEW}")
    last = records[-1]["step"] if records else None
    if last != step:
        reached = "has no line" if last is None else f"ends at step {last}"
        raise StorageError(
            f"'{path}' {reached}, though the run ended at step {step} by its manifest. {TRAIN_ANEW}"
        )


def cut_curves(path: Path, *, after: int, expected: Sequence[int]) -> None:
    """Drop what was written beyond the step that a run resumes from, a torn line included.

    Args:
        path: The run's curves.jsonl.
        after: The step that the run resumes from; -1 drops everything.
        expected: The evaluated steps up to `after`, all of which must be there.

    Raises:
        StorageError: If a line up to `after` is missing or damaged.
    """
    content = path.read_bytes() if path.exists() else b""
    kept: list[bytes] = []
    steps: list[int] = []
    for line in content.split(b"\n"):
        record = _parse(line)
        if record is None or record["step"] > after:
            break
        kept.append(line)
        steps.append(record["step"])
    if steps != list(expected):
        at = next((a for a, b in zip(expected, steps, strict=False) if a != b), None)
        missing = at if at is not None else [*expected, after][len(steps)]
        raise StorageError(
            f"'{path}' is damaged: the line of step {missing} is missing or unreadable, though "
            f"the run had reached step {after}. {TRAIN_ANEW}"
        )
    text = b"".join(line + b"\n" for line in kept)
    if text != content:
        write_text(path, text.decode())


def curves_frame(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A tidy frame: one row per step and split, with loss (nats), accuracy, shortcut_rate and n.

    A task without a shortcut has no `shortcut_rate`: it is NaN.
    """
    rows = [
        {"step": record["step"], "split": split, **_row(values)}
        for record in records
        for split, values in record.items()
        if split != "step"
    ]
    frame = pd.DataFrame(rows, columns=["step", "split", *COLUMNS])
    return frame.astype(
        {"step": int, "loss": float, "accuracy": float, "shortcut_rate": float, "n": int}
    )


def _row(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values.get(name) if name == "shortcut_rate" else values[name] for name in COLUMNS}


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("step"), int) else None
