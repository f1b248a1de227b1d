"""Run folders with what was measured in them: tracked, given a page each, and put in one table.

A run that failed, or was not trained to its end, is kept with the reason and counts in no rate. The
measures are `measures/`, the outcomes `timelines/`, the pages `reports/`; torch loads when a run is
tracked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.run import Run
from interp_shortcuts.timelines.phases import Phases
from interp_shortcuts.timelines.timeline import Timeline


@dataclass(frozen=True)
class TrackedRun:
    """A run folder, its timeline and phases, and what is wrong with it."""

    path: Path
    config: RunConfig | None = None
    """None if the folder cannot be read."""
    timeline: Timeline | None = None
    """None if the run could not be tracked; `error` says why."""
    phases: Phases | None = None
    unfinished: str = ""
    """Why the run was not trained to its end; empty if it was."""
    error: Exception | None = None

    @property
    def problem(self) -> str:
        """Why the run belongs in no rate; empty if it does."""
        return "; ".join(filter(None, [self.unfinished, str(self.error or "")]))

    @property
    def page(self) -> Path:
        """Where the run's report is, or would be."""
        return self.path / "report.html"


def causal_cadence(every: int) -> dict[str, int]:
    """The cadence that takes patching and ablations, which cost most, at every k-th checkpoint."""
    from interp_shortcuts.measures.effects import AblationMeasure
    from interp_shortcuts.measures.patching import CrossSplitPatching
    from interp_shortcuts.measures.registry import REGISTRY

    causal = (AblationMeasure, CrossSplitPatching)
    return {name: every for name, measure in REGISTRY.items() if issubclass(measure, causal)}


def track_run(
    path: Path, *, threads: int | None = None, cadence: Mapping[str, int] | int = 1
) -> TrackedRun:
    """Takes every measure at every checkpoint; what was measured before is not measured again.

    Args:
        path: The run folder.
        threads: Torch's thread count for the duration; None leaves it as it is.
        cadence: Every how many checkpoints a measure is taken; see `CircuitTracker`.
    """
    config, unfinished = None, ""
    try:
        run = Run.open(path)
        config, unfinished = run.config, _unfinished(run)

        from interp_shortcuts.timelines.tracker import CircuitTracker

        with _torch_threads(threads):
            timeline = CircuitTracker(run.trajectory(), cadence=cadence).track()
        return TrackedRun(path, config, timeline, timeline.phases(), unfinished)
    except Exception as error:  # kept with the run; the others go on
        return TrackedRun(path, config, unfinished=unfinished, error=error)


def write_page(run: TrackedRun, *, index: Path | None = None) -> Path:
    """Writes a tracked run's report into its folder, linked to the index page if there is one.

    Raises:
        ValueError: If the run could not be tracked.
    """
    from interp_shortcuts.reports.report import write_report

    if run.timeline is None:
        raise ValueError(f"`{run.path}` has no timeline: {run.problem}.")
    up = None if index is None else _relative(index / "index.html", run.path)
    return write_report(
        run.timeline, run.page, phases=run.phases, index=up, status_note=run.unfinished
    )


def write_run_index(runs: Sequence[TrackedRun], folder: Path) -> Path:
    """Writes the index over runs, each linked to its page; problems are listed and in no rate."""
    from interp_shortcuts.reports.index import SeedEntry, write_index

    entries = [
        SeedEntry(
            name=run.path.name,
            timeline=None if run.problem else run.timeline,
            phases=None if run.problem else run.phases,
            href=_relative(run.page, folder) if run.timeline is not None else None,
            error=run.problem or None,
        )
        for run in runs
    ]
    return write_index(entries, folder)


def outcome_table(runs: Sequence[TrackedRun]) -> pd.DataFrame:
    """One row a run: outcome, onset and completion steps, and the fields in which the runs differ.

    A run with a problem has an empty outcome, and the problem in the last column.
    """
    settings = [dict(_flat(run.config)) if run.config else {} for run in runs]
    names = dict.fromkeys(name for setting in settings for name in setting)
    known = [setting for setting in settings if setting]
    differing = [n for n in names if any(s.get(n) != known[0].get(n) for s in known)]
    rows = []
    for run, setting in zip(runs, settings, strict=True):
        phases = None if run.problem else run.phases
        rows.append(
            {
                "run": run.path.name,
                **{name: setting.get(name) for name in differing},
                "seed": run.config.seed if run.config else None,
                "outcome": phases.outcome if phases else "",
                "onset": phases.onset if phases else None,
                "completion": phases.completion if phases else None,
                "last_step": phases.last_step if phases else None,
                "problem": run.problem,
            }
        )
    table = pd.DataFrame(rows)
    whole = ["seed", "onset", "completion", "last_step"]
    return table.astype(dict.fromkeys(whole, "Int64"))


def as_markdown(table: pd.DataFrame) -> str:
    """The table in Markdown; what is missing is an empty cell, and no problems are no column."""
    empty = "problem" in table and not any(table["problem"])
    shown = table.drop(columns="problem") if empty else table
    cells = [["" if pd.isna(value) else str(value) for value in row] for row in shown.to_numpy()]
    rows = [list(map(str, shown.columns)), ["---"] * shown.shape[1], *cells]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


@contextmanager
def _torch_threads(threads: int | None) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(before if threads is None else threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _unfinished(run: Run) -> str:
    manifest, status = run.manifest, run.status
    if status == "finished":
        return ""
    begun = manifest.get("step") is not None or status in ("running", "interrupted")
    at = f" at step {run.last_step} of {run.config.schedule.n_steps}" if begun else ""
    why = f": {manifest['error']}" if manifest.get("error") else ""
    return f"training {status}{at}{why}"


def _flat(config: RunConfig) -> Iterator[tuple[str, Any]]:
    """Every field but the seed and the name, by its flat name."""
    for name, value in config.model_dump(mode="json", exclude={"seed", "name"}).items():
        yield from value.items() if isinstance(value, Mapping) else [(name, value)]


def _relative(target: Path, folder: Path) -> str:
    return Path(os.path.relpath(target, folder)).as_posix()
