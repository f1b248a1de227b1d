"""Writes the page of one run on attribution and causal importance: one HTML file, and its facts.

The facts are gathered in `gap_facts.py`, the pictures drawn in `plots/`; many seeds are laid side
by side in `gap_seeds_report.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from interp_shortcuts.measures.attribution.gap import THRESHOLD
from interp_shortcuts.plots.gap_course import gap_course_figure, missing_for_course
from interp_shortcuts.plots.gap_joint import joint_figure, missing_for_joint
from interp_shortcuts.plots.gap_maps import gap_map_figure
from interp_shortcuts.plots.gap_pruning import missing_for_pruning, pruning_figure
from interp_shortcuts.plots.gap_scatter import missing_for_gap, rank_scatter_figure
from interp_shortcuts.reports.gap_facts import gap_facts
from interp_shortcuts.reports.gap_reading import GAP_DEFINITIONS
from interp_shortcuts.reports.page import figure_json, plotly_js, render
from interp_shortcuts.runs.store import write_text
from interp_shortcuts.timelines.attribution_gap import AttributionGap, find_gap
from interp_shortcuts.timelines.gap_readings import LOSS_REFERENCE, METHOD, REFERENCE, why_not_asked
from interp_shortcuts.timelines.gap_tables import joint_table, pruning_table
from interp_shortcuts.timelines.timeline import Timeline


@dataclass(frozen=True, eq=False)
class GapFigure:
    """One picture of a page, or the reason why it is left out."""

    name: str
    """The id of its place on the page is `figure-` and the name."""
    section: str
    """The heading that it stands below."""
    figure: go.Figure | None = None
    missing: str = ""

    @property
    def height(self) -> int:
        """Pixels of the figure; 0 without one."""
        layout: Any = {"height": 0} if self.figure is None else self.figure.layout
        return round(layout["height"])


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


def gap_figures(timeline: Timeline, gap: AttributionGap) -> list[GapFigure]:
    """Every picture of a run in the order of the page, those without data with the reason."""
    joint, pruning = joint_table(timeline.data), pruning_table(timeline.data)
    beside = _against_loss(timeline, gap)
    no_order = missing_for_gap(gap)
    drawn: list[tuple[str, str, str, Callable[[], go.Figure]]] = [
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
    ]
    return [
        GapFigure(name, section, None if missing else draw(), missing)
        for name, section, missing, draw in drawn
    ] + pruning_figures(pruning)


def _against_loss(timeline: Timeline, gap: AttributionGap) -> AttributionGap | None:
    """The same attribution against the rise of the loss; None if that is what is compared."""
    if gap.reference.name == LOSS_REFERENCE:
        return None
    options = {"method": gap.method.name, "threshold": gap.threshold}
    return find_gap(timeline, reference=LOSS_REFERENCE, **options)


def pruning_figures(table: pd.DataFrame) -> list[GapFigure]:
    """A picture for each split of a pruning table."""
    if missing := missing_for_pruning(table):
        return [GapFigure("pruning", "pruning", missing=missing)]
    splits = list(dict.fromkeys(table["split"].tolist()))
    return [
        GapFigure(f"pruning-{place}", "pruning", pruning_figure(table, split))
        for place, split in enumerate(splits, start=1)
    ]


def figure_values(figures: list[GapFigure]) -> dict[str, Any]:
    """What the templates need to show the pictures: by section, with reasons, heights and data."""
    sections: dict[str, list[GapFigure]] = {}
    for one in figures:
        sections.setdefault(one.section, []).append(one)
    drawn = {f"figure-{one.name}": one.figure for one in figures if one.figure is not None}
    return {
        "sections": sections,
        "figures": {name: figure_json(figure) for name, figure in drawn.items()},
        "plotly_js": plotly_js(),
    }


def page_path(path: str | Path, name: str) -> Path:
    """The HTML file that is meant: a folder gets the name, a file without an ending `.html`."""
    path = Path(path)
    if path.is_dir():
        return path / name
    return path if path.suffix.lower() in (".html", ".htm") else path.with_name(f"{path.name}.html")


def write_page(path: Path, html: str, facts: dict[str, Any]) -> None:
    """Writes a page, and its facts beside it as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path.with_suffix(".json"), text + "\n")
    write_text(path, html)
