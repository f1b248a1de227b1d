"""Pages over the seeds of sequence tasks, and which runs are excluded from them.

Which runs share a page is decided in `page_names`. The statistics are `gap_over_seeds`'s, the page
`gap_seeds_report`'s; runs are tracked in `tracked`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interp_shortcuts.cli.page_names import is_of_sequences, relative
from interp_shortcuts.runs.run import Run
from interp_shortcuts.tasks.ood_length import OOD_RANGE

if TYPE_CHECKING:
    from interp_shortcuts.cli.tracked import TrackedRun
    from interp_shortcuts.measures.base import Measure
    from interp_shortcuts.timelines.gap_over_seeds import GapOverSeeds


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


def _titles(groups: Mapping[str, Sequence[TrackedRun]]) -> dict[str, str]:
    """`Sequence sorting`, and a number where two settings have the same task."""
    titles: dict[str, str] = {}
    for name, group in groups.items():
        label = next(run.config.task.label for run in group if run.config is not None)
        count = sum(title.startswith(label.capitalize()) for title in titles.values())
        titles[name] = label.capitalize() + (f" ({count + 1})" if count else "")
    return titles


def measured(*, every: int, shapley: float | None) -> tuple[list[Measure], dict[str, int]]:
    """What is measured of sequence runs beside the default, and how often everything is.

    Args:
        every: Every how many checkpoints; the first and the last always.
        shapley: Shapley values too, at the first and the last checkpoint, to this standard error.
    """
    from interp_shortcuts.measures.attribution.shapley import ShapleyImportance
    from interp_shortcuts.measures.registry import REGISTRY
    from interp_shortcuts.tasks.target_task import TargetTask
    from interp_shortcuts.timelines.cadence import ONLY_THE_ENDS

    names = [kind.name for kind in REGISTRY.values() if kind.asks is TargetTask and kind.by_default]
    cadence = dict.fromkeys(names, every)
    if shapley is None:
        return [], cadence
    return [ShapleyImportance(precision=shapley)], {
        **cadence,
        ShapleyImportance.name: ONLY_THE_ENDS,
    }
