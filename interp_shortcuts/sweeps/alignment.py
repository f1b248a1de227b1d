"""Circuit timelines of many seeds, laid over each other at each seed's own onset.

Averages over steps smear a change that comes at another step in every seed; averages over outcomes
mislead. So curves are aligned at the onset, and taken within one cell and one outcome. What is read
of a timeline is in `quantities`; seeds without an onset have no origin, and are listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from interp_shortcuts.errors import ConfigError, StorageError
from interp_shortcuts.sweeps.counted import counted, why_not_counted
from interp_shortcuts.sweeps.quantities import QUANTITIES, Quantity, names_of_heads, seed_curves
from interp_shortcuts.sweeps.settings import groups, require_columns, rows_where
from interp_shortcuts.timelines.timeline import FILE_NAME, Timeline

CURVE_COLUMNS = (
    *("cell", "outcome", "quantity", "component", "offset"),
    *("n", "seeds", "median", "low", "high"),
)
RUN_COLUMNS = ("cell", "seed", "run", "outcome", "onset", "left_out")
_DIGITS = 5


@dataclass(frozen=True, eq=False)
class Aligned:
    """Curves over seeds around the onset, and what became of every run.

    Attributes:
        curves: One row a cell, outcome, quantity, component and `offset` (steps from the onset):
            `median`, and the quartiles `low` and `high`, over the `n` seeds that have a value
            there, out of `seeds` in the group.
        runs: One row a run of the sweep: `cell`, `seed`, `run`, `outcome`, `onset`, and in
            `left_out` why the run is in no curve; empty if it is in one.
    """

    curves: pd.DataFrame
    runs: pd.DataFrame

    def write(self, stem: str | Path) -> tuple[Path, Path]:
        """Writes `<stem>.csv` (the curves) and `<stem>_runs.csv`; returns the two files."""
        files = _files(Path(stem))
        files[0].parent.mkdir(parents=True, exist_ok=True)
        for frame, file in zip((self.curves, self.runs), files, strict=True):
            frame.to_csv(file, index=False)
        return files

    @classmethod
    def read(cls, stem: str | Path) -> Aligned:
        """What `write` wrote.

        Raises:
            StorageError: If a file is missing, or is another table.
        """
        frames = []
        for file, columns in zip(_files(Path(stem)), (CURVE_COLUMNS, RUN_COLUMNS), strict=True):
            if not file.exists():
                raise StorageError(f"'{file}' is missing; write it with `Aligned.write`.")
            texts = ("cell", "outcome", "quantity", "component", "run", "left_out")
            frame = pd.read_csv(file, keep_default_na=False, na_values={"onset": [""]})
            if list(frame.columns) != list(columns):
                raise StorageError(
                    f"'{file}' must have the columns {', '.join(columns)}; it has "
                    f"{', '.join(map(str, frame.columns))}."
                )
            frame = frame.astype({name: str for name in texts if name in columns})
            frames.append(frame.astype({"onset": "Int64"} if "onset" in columns else {}))
        return cls(*frames)


def align(
    table: pd.DataFrame,
    timelines: Mapping[str, Timeline],
    *,
    quantities: Sequence[Quantity] = QUANTITIES,
    points: int = 30,
    spacing: int | None = None,
) -> Aligned:
    """Lays the timelines of a sweep over each other, each at its own onset.

    Between two evaluations a curve is read off the straight line that joins them, as a timeline
    draws it; nothing is read beyond the first and the last one, nor beside an undefined value.
    Quartiles are linear between order statistics.

    Args:
        table: The runs of a sweep, as `results` gives them; cell, outcome and onset are taken from
            it.
        timelines: The timeline of each tracked run, by its `run` in the table.
        quantities: What is read of them.
        points: Grid points on either side of the onset.
        spacing: Training steps between grid points; None for the gap between evaluations that is
            most frequent after the onsets.

    Raises:
        ConfigError: If `points` or `spacing` is not positive, a timeline is of no run in the
            table, or a column is missing.
    """
    require_columns(table, ("cell", "seed", "run", "outcome", "onset"))
    _positive("points", points)
    _positive("spacing", spacing)
    strangers = sorted(set(timelines) - set(table["run"].astype(str)))
    if strangers:
        raise ConfigError(f"timelines must be of runs in the table; {strangers[0]!r} is not.")
    runs = _runs(table, timelines)
    used = rows_where(runs, runs["left_out"].to_numpy() == "")
    gap = spacing or _usual_gap((timelines[run], int(onset)) for run, onset in _pairs(used))
    offsets = np.arange(-points, points + 1) * gap
    rows = []
    for (cell, outcome), group in groups(used, ["cell", "outcome"]):
        for key, values in _values(group, timelines, quantities, offsets).items():
            rows += _rows((str(cell), str(outcome), *key), values, offsets, len(group))
    curves = pd.DataFrame(rows, columns=list(CURVE_COLUMNS))
    return Aligned(curves.astype(dict.fromkeys(("offset", "n", "seeds"), "int64")), runs)


def open_timelines(table: pd.DataFrame, folder: str | Path) -> dict[str, Timeline]:
    """The timelines of the tracked runs of a sweep, by `run`; runs that do not count are left out.

    Args:
        table: The runs; `run` is a folder relative to `folder`.
        folder: The sweep folder.

    Raises:
        StorageError: If a timeline is damaged.
    """
    paths = {str(run): Path(folder) / str(run) for run in counted(table)["run"]}
    tracked = {run: path for run, path in paths.items() if (path / FILE_NAME).is_file()}
    return {run: Timeline.open(path) for run, path in tracked.items()}


def _runs(table: pd.DataFrame, timelines: Mapping[str, Timeline]) -> pd.DataFrame:
    why = why_not_counted(table)
    dated = table["onset"].notna().tolist()
    left_out = []
    for run, outcome, has_onset, reason in zip(
        table["run"], table["outcome"], dated, why, strict=True
    ):
        if not reason and not has_onset:
            reason = f"no onset ({outcome})"
        left_out.append(reason or ("" if str(run) in timelines else "not tracked"))
    frame = table.reindex(columns=list(RUN_COLUMNS[:-1])).reset_index(drop=True)
    texts = dict.fromkeys(("cell", "run", "outcome"), str)
    return frame.assign(left_out=left_out).astype({**texts, "onset": "Int64"})


def _pairs(runs: pd.DataFrame) -> list[tuple[str, int]]:
    return [(str(run), int(onset)) for run, onset in zip(runs["run"], runs["onset"], strict=True)]


def _usual_gap(runs: Iterable[tuple[Timeline, int]]) -> int:
    gaps: list[int] = []
    for timeline, onset in runs:
        steps = np.array(timeline.steps)
        gaps += np.diff(steps[steps >= onset]).tolist()
    if not gaps:
        return 1
    values, counts = np.unique(gaps, return_counts=True)
    return int(values[np.argmax(counts)])


def _values(
    group: pd.DataFrame,
    timelines: Mapping[str, Timeline],
    quantities: Sequence[Quantity],
    offsets: np.ndarray,
) -> dict[tuple[str, str], list[np.ndarray]]:
    """Per quantity and component one array of values [offset] a seed."""
    found: dict[tuple[str, str], list[np.ndarray]] = {}
    for run, onset in _pairs(group):
        data = timelines[run].data
        names = names_of_heads(data, onset)
        for quantity in quantities:
            for curve in seed_curves(data, quantity, names):
                if curve.steps.size:
                    at = _read(curve.steps, curve.values, onset + offsets)
                    found.setdefault((quantity.name, curve.component), []).append(at)
    return found


def _read(steps: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The values on the lines that join the evaluations; NaN outside, and beside a NaN."""
    right = np.clip(np.searchsorted(steps, at), 0, len(steps) - 1)
    left = np.where(steps[right] == at, right, np.maximum(right - 1, 0))
    width = np.maximum(steps[right] - steps[left], 1)
    share = (at - steps[left]) / width
    read = np.where(left == right, values[left], values[left] * (1 - share) + values[right] * share)
    return np.where((at >= steps[0]) & (at <= steps[-1]), read, np.nan)


def _rows(
    key: tuple[str, str, str, str], values: list[np.ndarray], offsets: np.ndarray, seeds: int
) -> list[dict[str, object]]:
    table = np.stack(values)  # seed offset
    n = np.isfinite(table).sum(axis=0)
    rows = []
    for index in np.flatnonzero(n):
        known = table[np.isfinite(table[:, index]), index]
        low, median, high = (
            round(float(q), _DIGITS) for q in np.quantile(known, (0.25, 0.5, 0.75))
        )
        numbers = (int(offsets[index]), int(n[index]), seeds, median, low, high)
        rows.append(dict(zip(CURVE_COLUMNS, (*key, *numbers), strict=True)))
    return rows


def _positive(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise ConfigError(f"`{name}` must be at least 1; got {value}.")


def _files(stem: Path) -> tuple[Path, Path]:
    return stem.with_name(f"{stem.name}.csv"), stem.with_name(f"{stem.name}_runs.csv")
