"""Writes the page of one run on attribution and causal importance: one HTML file, and its facts.

The facts are gathered in `gap_facts.py`, the pictures drawn in `plots/`; many seeds are laid side
by side in `gap_seeds_report.py`.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from interp_shortcuts.measures.attribution.gap import THRESHOLD
from interp_shortcuts.plots.gap_course import gap_course_figure, missing_for_course
from interp_shortcuts.plots.gap_joint import joint_figure, missing_for_joint
from interp_shortcuts.plots.gap_maps import gap_map_figure
from interp_shortcuts.plots.gap_pruning import missing_for_pruning, pruning_figure
from interp_shortcuts.plots.gap_scatter import missing_for_gap, rank_scatter_figure
from interp_shortcuts.reports.gap_facts import gap_facts
from interp_shortcuts.reports.gap_reading import GAP_DEFINITIONS
from interp_shortcuts.reports.page import render
from interp_shortcuts.reports.page_figures import (
    PageFigure,
    drawn_or_missing,
    figure_values,
    page_path,
    write_page,
)
from interp_shortcuts.timelines.attribution_gap import AttributionGap, find_gap
from interp_shortcuts.timelines.gap_readings import LOSS_REFERENCE, METHOD, REFERENCE, why_not_asked
from interp_shortcuts.timelines.gap_tables import joint_table, pruning_table
from interp_shortcuts.timelines.timeline import Timeline


def write_gap_report(
    timeline: Timeline,
    path: str | Path,
    *,
    method: str = METHOD,
    reference: str = REFERENCE,
    threshold: float = THRESHOLD,
    index: str | None = None,
    status_note: str = "",
    excluded: str = "",
) -> Path:
    """Writes one HTML page that works offline, and the same facts beside it as JSON.

    The same timeline gives the same bytes.

    Args:
        timeline: What was measured.
        path: The HTML file, or a folder that there is, where it is called `report.html`; the JSON
            gets the same stem. Missing folders are made.
        method: The attribution; a name in `timelines.gap_readings.METHODS`.
        reference: The causal importance; a name in `REFERENCES`.
        threshold: Ranks that make a hero or a bloat.
        index: Address of the page over seeds that this page belongs to, relative to it.
        status_note: Why the run was not trained to its end, shown at the top; empty if it was.
        excluded: Why the run is in no number over seeds, shown at the top; empty if it is.

    Returns:
        The HTML file.

    Raises:
        MeasureError: If a name is unknown, or the threshold is not positive.
    """
    path = page_path(path, "report.html")
    gap = find_gap(timeline, method=method, reference=reference, threshold=threshold)
    excluded = excluded or why_not_asked(timeline.data)
    facts = gap_facts(timeline, gap) | {"status_note": status_note, "excluded": excluded}
    figures = gap_figures(timeline, gap)
    html = render(
        "gap.html",
        facts=facts,
        index=index,
        reading=GAP_DEFINITIONS,
        json_name=path.with_suffix(".json").name,
        **figure_values(figures),
    )
    write_page(path, html, facts)
    return path


def gap_figures(timeline: Timeline, gap: AttributionGap) -> list[PageFigure]:
    """Every picture of a run in the order of the page, those without data with the reason."""
    joint, pruning = joint_table(timeline.data), pruning_table(timeline.data)
    beside = _against_loss(timeline, gap)
    no_order = missing_for_gap(gap)
    found = drawn_or_missing(
        ("scatter", "ranks", no_order, lambda: rank_scatter_figure(gap)),
        ("attribution", "maps", no_order, lambda: gap_map_figure(gap, "attribution")),
        ("importance", "maps", no_order, lambda: gap_map_figure(gap, "importance")),
        ("gap", "maps", no_order, lambda: gap_map_figure(gap, "gap")),
        (
            "course",
            "training",
            missing_for_course(gap),
            lambda: gap_course_figure(gap, beside=beside),
        ),
        ("joint", "joint", missing_for_joint(joint), lambda: joint_figure(joint)),
    )
    return [*found, *pruning_figures(pruning)]


def _against_loss(timeline: Timeline, gap: AttributionGap) -> AttributionGap | None:
    """The same attribution against the rise of the loss; None if that is what is compared."""
    if gap.reference.name == LOSS_REFERENCE:
        return None
    options = {"method": gap.method.name, "threshold": gap.threshold}
    return find_gap(timeline, reference=LOSS_REFERENCE, **options)


def pruning_figures(table: pd.DataFrame) -> list[PageFigure]:
    """A picture for each split of a pruning table."""
    if missing := missing_for_pruning(table):
        return [PageFigure("pruning", "pruning", missing=missing)]
    splits = list(dict.fromkeys(table["split"].tolist()))
    return [
        PageFigure(f"pruning-{place}", "pruning", pruning_figure(table, split))
        for place, split in enumerate(splits, start=1)
    ]
