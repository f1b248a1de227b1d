"""Run folders with what was measured in them: tracked, given a page each, and put in one table.

A run that failed, or was not trained to its end, is kept with the reason and counts in no rate. The
measures are `measures/`, the outcomes `timelines/`, the pages `reports/`; torch loads when a run is
tracked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from interp_shortcuts.cli.gap_pages import why_excluded, write_seeds_pages
from interp_shortcuts.cli.noise_pages import write_noise_pages
from interp_shortcuts.cli.page_names import INDEX, is_of_sequences, is_under_noise, relative
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.run import Run
from interp_shortcuts.timelines.attribution_gap import about_the_gap
from interp_shortcuts.timelines.hidden_progress import about_label_noise
from interp_shortcuts.timelines.phases import Phases
from interp_shortcuts.timelines.timeline import Timeline

if TYPE_CHECKING:
    from interp_shortcuts.measures.base import Measure


@dataclass(frozen=True)
class TrackedRun:
    """A run folder, its timeline and phases, and what is wrong with it.

    A run of a sequence task has no phases: what it shows is the gap between attribution and causal
    importance. Nor has a run under label noise: what it shows is hidden progress.
    """

    path: Path
    config: RunConfig | None = None
    """None if the folder cannot be read."""
    timeline: Timeline | None = None
    """None if the run could not be tracked; `error` says why."""
    phases: Phases | None = None
    unfinished: str = ""
    """Why the run was not trained to its end; empty if it was."""
    excluded: str = ""
    """Why a run of a sequence task is in no number over seeds; empty if it is."""
    error: Exception | None = None

    @property
    def problem(self) -> str:
        """Why the run belongs in no rate; empty if it does."""
        return "; ".join(filter(None, [self.unfinished, str(self.error or "")]))

    @property
    def sentence(self) -> str:
        """What its timeline shows; empty if it has none."""
        if self.timeline is None:
            return ""
        if self.phases is not None:
            return self.phases.sentence
        from interp_shortcuts.timelines.story import story

        return " ".join(story(self.timeline.data))

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
    path: Path,
    *,
    threads: int | None = None,
    cadence: Mapping[str, int] | int = 1,
    also: Sequence[Measure] = (),
) -> TrackedRun:
    """Takes every measure at every checkpoint; what was measured before is not measured again.

    Args:
        path: The run folder.
        threads: Torch's thread count for the duration; None leaves it as it is.
        cadence: Every how many checkpoints a measure is taken; see `CircuitTracker`.
        also: Measures that are taken beside those that fit the task by default.
    """
    config, unfinished, excluded = None, "", ""
    try:
        run = Run.open(path)
        config, unfinished, excluded = run.config, _unfinished(run), why_excluded(run)

        from interp_shortcuts.measures.registry import default_measures
        from interp_shortcuts.timelines.tracker import CircuitTracker

        trajectory = run.trajectory()
        measures = [*default_measures(trajectory.task, trajectory.spec), *also] if also else None
        with _torch_threads(threads):
            timeline = CircuitTracker(trajectory, measures=measures, cadence=cadence).track()
        phases = None if _without_phases(timeline) else timeline.phases()
        return TrackedRun(path, config, timeline, phases, unfinished, excluded)
    except Exception as error:  # kept with the run; the others go on
        return TrackedRun(path, config, unfinished=unfinished, excluded=excluded, error=error)


def write_page(run: TrackedRun, *, index: Path | None = None, name: str = INDEX) -> Path:
    """Writes a tracked run's report into its folder, linked to the index page if there is one.

    Args:
        run: The run.
        index: The folder of the page over runs that it belongs to.
        name: What that page is called.

    Raises:
        ValueError: If the run could not be tracked.
    """
    from interp_shortcuts.reports.gap_report import write_gap_report
    from interp_shortcuts.reports.modular_report import write_modular_report
    from interp_shortcuts.reports.report import write_report

    if run.timeline is None:
        raise ValueError(f"`{run.path}` has no timeline: {run.problem}.")
    up = None if index is None else relative(index / name, run.path)
    if about_label_noise(run.timeline.data):
        return write_modular_report(run.timeline, run.page, index=up, status_note=run.unfinished)
    if about_the_gap(run.timeline.data):
        note, excluded = run.unfinished, run.excluded
        return write_gap_report(
            run.timeline, run.page, index=up, status_note=note, excluded=excluded
        )
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
            href=relative(run.page, folder) if run.timeline is not None else None,
            error=run.problem or None,
        )
        for run in runs
    ]
    return write_index(entries, folder)


def write_indexes(
    runs: Sequence[TrackedRun], folder: Path, names: Mapping[Path, str]
) -> list[Path]:
    """Writes the index over runs with a shortcut, and the pages over runs of other tasks.

    Args:
        runs: Tracked runs.
        folder: Where the pages go.
        names: The page of each run, from `page_names`.
    """
    of_others = [
        *write_seeds_pages(runs, folder, names),
        *write_noise_pages(runs, folder, names),
    ]
    if folder / INDEX in of_others:  # runs that cannot be read are listed there
        return of_others
    with_shortcut = [
        run for run in runs if not is_of_sequences(run.config) and not is_under_noise(run.config)
    ]
    index = [write_run_index(with_shortcut, folder)] if with_shortcut else []
    return [*index, *of_others]


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


def _without_phases(timeline: Timeline) -> bool:
    return about_label_noise(timeline.data) or about_the_gap(timeline.data)


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
