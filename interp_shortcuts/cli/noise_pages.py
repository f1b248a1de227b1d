"""Pages over runs under label noise: the seeds of a setting, or the cells of a sweep.

The statistics are `sweeps.hidden_cells`'s, the page `modular_seeds_report`'s; runs are tracked in
`tracked`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interp_shortcuts.cli.page_names import is_under_noise, relative

if TYPE_CHECKING:
    from interp_shortcuts.cli.tracked import TrackedRun
    from interp_shortcuts.sweeps.hidden_cells import HiddenCells


def write_noise_pages(
    runs: Sequence[TrackedRun], folder: Path, names: Mapping[Path, str], **options: Any
) -> list[Path]:
    """Writes a page over the runs of each kind of task with label noise; problems are listed on it.

    Args:
        runs: Tracked runs; those of other tasks are passed over. A run that cannot be read is
            listed as excluded on its page.
        folder: Where the pages go.
        names: The page of each run, from `page_names`.
        options: Those of `sweeps.hidden_cells`.
    """
    from interp_shortcuts.reports.modular_seeds_report import write_modular_seeds_report

    pages = {names[run.path] for run in runs if is_under_noise(run.config)}
    groups: dict[str, list[TrackedRun]] = {}
    for run in runs:
        unreadable = run.config is None and names[run.path] in pages
        if is_under_noise(run.config) or unreadable:
            groups.setdefault(names[run.path], []).append(run)
    titles = {name: _title(group) for name, group in groups.items()}
    return [
        write_modular_seeds_report(
            over_cells(group, **options),
            folder / name,
            title=titles[name],
            links={run.path.name: relative(run.page, folder) for run in group if run.timeline},
            others={titles[other]: other for other in groups if other != name},
        )
        for name, group in groups.items()
    ]


def over_cells(runs: Sequence[TrackedRun], **options: Any) -> HiddenCells:
    """The statistics over runs under label noise; a run with a problem is excluded with it.

    Args:
        runs: Tracked runs of a task with label noise.
        options: Those of `sweeps.hidden_cells`.
    """
    from interp_shortcuts.sweeps.hidden_cells import hidden_cells

    return hidden_cells(
        {run.path.name: run.timeline for run in runs if run.timeline is not None},
        excluded={run.path.name: run.problem for run in runs if run.problem},
        **options,
    )


def _title(group: Sequence[TrackedRun]) -> str:
    """The task in words; of several, the first and how many more there are."""
    labels = list(dict.fromkeys(run.config.task.label for run in group if run.config is not None))
    more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
    return f"{labels[0][:1].upper()}{labels[0][1:]}{more}"
