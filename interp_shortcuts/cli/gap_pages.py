"""Pages over the seeds of sequence tasks: which runs belong together, and which are excluded.

Runs that differ in nothing but the seed share a page. The statistics are `gap_over_seeds`'s,
the page `gap_seeds_report`'s; runs are tracked in `tracked`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interp_shortcuts.canonical import canonical_json
from interp_shortcuts.errors import InterpShortcutsError
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.run import Run
from interp_shortcuts.tasks.ood_length import OOD_RANGE
from interp_shortcuts.tasks.sequence_config import SequenceConfig

if TYPE_CHECKING:
    from interp_shortcuts.cli.tracked import TrackedRun
    from interp_shortcuts.timelines.gap_over_seeds import GapOverSeeds

INDEX = "index.html"


def why_excluded(run: Run) -> str:
    """Why a run of a sequence task counts in no number over seeds; empty if it does."""
    if not is_of_sequences(run.config) or run.status != "finished" or run.ood_length is not None:
        return ""
    found = ", ".join(f"{value:.2f} at length {n}" for n, value in run.ood_accuracies.items())
    low, high = OOD_RANGE
    return (
        f"no held-out length has an exact match from {low:.2f} to {high:.2f}: "
        f"{found or 'none is held out'}"
    )


def is_of_sequences(config: RunConfig | None) -> bool:
    """Whether a run is one of a sequence task."""
    return config is not None and isinstance(config.task, SequenceConfig)


def page_names(paths: Sequence[Path]) -> dict[Path, str]:
    """The page over seeds that each run belongs to, by its folder.

    Returns:
        `index.html` for runs that cannot be read, for those of other tasks, and, if there are none
        of these, for the runs of the first sequence setting; `sorting.html`, `sorting-2.html` and
        so on for others.
    """
    configs = {path: _config(path) for path in paths}
    others = any(config is not None and not is_of_sequences(config) for config in configs.values())
    names: dict[str, str] = {}
    for config in configs.values():
        if config is None or not isinstance(config.task, SequenceConfig):
            continue
        key = _setting(config)
        if key in names:
            continue
        number = 1 + sum(name.startswith(config.task.operation) for name in names.values())
        suffix = "" if number == 1 else f"-{number}"
        first = not names and not others
        names[key] = INDEX if first else f"{config.task.operation}{suffix}.html"
    return {
        path: names.get(_setting(config), INDEX) if config is not None else INDEX
        for path, config in configs.items()
    }


def write_seeds_pages(
    runs: Sequence[TrackedRun], folder: Path, names: Mapping[Path, str], **options: Any
) -> list[Path]:
    """Writes a page over seeds for each setting of a sequence task; problems are listed on it.

    Args:
        runs: Tracked runs; those of other tasks are passed over. A run that cannot be read is
            listed as excluded on its page.
        folder: Where the pages go.
        names: The page of each run, from `page_names`.
        options: Those of `timelines.gaps_over_seeds`.
    """
    from interp_shortcuts.reports.gap_seeds_report import write_gap_seeds_report

    pages = {names[run.path] for run in runs if is_of_sequences(run.config)}
    groups: dict[str, list[TrackedRun]] = {}
    for run in runs:
        unreadable = run.config is None and names[run.path] in pages
        if is_of_sequences(run.config) or unreadable:
            groups.setdefault(names[run.path], []).append(run)
    titles = _titles(groups)
    written = []
    for name, group in groups.items():
        page = write_gap_seeds_report(
            over_seeds(group, **options),
            folder / name,
            title=titles[name],
            links={run.path.name: relative(run.page, folder) for run in group if run.timeline},
            others={titles[other]: other for other in groups if other != name},
        )
        written.append(page)
    return written


def over_seeds(runs: Sequence[TrackedRun], **options: Any) -> GapOverSeeds:
    """The statistics over runs of one setting; a run with a problem is excluded with it.

    Args:
        runs: Tracked runs of a sequence task.
        options: Those of `timelines.gaps_over_seeds`.
    """
    from interp_shortcuts.timelines.gap_over_seeds import gaps_over_seeds

    reasons = {run.path.name: "; ".join(filter(None, (run.excluded, run.problem))) for run in runs}
    return gaps_over_seeds(
        {run.path.name: run.timeline for run in runs if run.timeline is not None},
        excluded={name: reason for name, reason in reasons.items() if reason},
        **options,
    )


def relative(target: Path, start: Path) -> str:
    """The address of a page as seen from a folder."""
    return Path(os.path.relpath(target, start)).as_posix()


def _titles(groups: Mapping[str, Sequence[TrackedRun]]) -> dict[str, str]:
    """`Sequence sorting`, and a number where two settings have the same task."""
    titles: dict[str, str] = {}
    for name, group in groups.items():
        label = next(run.config.task.label for run in group if run.config is not None)
        count = sum(title.startswith(label.capitalize()) for title in titles.values())
        titles[name] = label.capitalize() + (f" ({count + 1})" if count else "")
    return titles


def _config(path: Path) -> RunConfig | None:
    try:
        return Run.open(path).config
    except (InterpShortcutsError, OSError):
        return None


def _setting(config: RunConfig) -> str:
    return canonical_json(config.model_copy(update={"seed": 0, "name": ""}))
