"""Writes the report of one run: a self-contained HTML page, and its facts as JSON and Markdown.

The facts are gathered in `facts.py`, the pictures drawn in `plots/`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from interp_shortcuts.plots.carrier_map import carrier_map_figure
from interp_shortcuts.plots.checkpoints import checkpoint_figure
from interp_shortcuts.plots.panels import ABLATION_PANELS
from interp_shortcuts.plots.residual_map import missing_for_residual_map, residual_map_figure
from interp_shortcuts.plots.timeline import timeline_figure
from interp_shortcuts.reports.facts import report_facts
from interp_shortcuts.reports.page import figure_json, plotly_js, render
from interp_shortcuts.reports.reading import (
    CARRIER_READING,
    CHECKPOINT_READING,
    GRADIENT_READING,
    SPLIT_MEANINGS,
    TIMELINE_READING,
)
from interp_shortcuts.runs.store import write_text
from interp_shortcuts.timelines.phases import Phases
from interp_shortcuts.timelines.timeline import Timeline


def write_report(
    timeline: Timeline,
    path: str | Path,
    *,
    phases: Phases | None = None,
    index: str | None = None,
    status_note: str = "",
) -> Path:
    """Writes one HTML page that works offline, and the same facts beside it as JSON and Markdown.

    The same timeline gives the same bytes.

    Args:
        timeline: What was measured.
        path: The HTML file, or a folder that there is, where it is called `report.html`; `.json`
            and `.md` get the same stem. Missing folders are made.
        phases: Events and outcome; None asks the timeline for them with its default rules.
        index: Address of the index page that this page belongs to, relative to it.
        status_note: Why the run was not trained to its end, shown at the top; empty if it was.

    Returns:
        The HTML file.

    Raises:
        ConfigError: If the timeline has no step.
    """
    path = Path(path)
    if path.is_dir():
        path = path / "report.html"
    elif path.suffix.lower() not in (".html", ".htm"):
        path = path.with_name(f"{path.name}.html")
    phases = timeline.phases() if phases is None else phases
    facts = report_facts(timeline, phases=phases, status_note=status_note)
    figures = _figures(timeline, phases, facts)
    html = render(
        "report.html",
        facts=facts,
        index=index,
        plotly_js=plotly_js(),
        figures={name: figure_json(figure) for name, figure in figures.items()},
        heights={name: figure.layout["height"] for name, figure in figures.items()},
        timeline_reading=TIMELINE_READING,
        carrier_reading=CARRIER_READING,
        gradient_reading=GRADIENT_READING,
        checkpoint_reading=CHECKPOINT_READING,
        split_meanings=SPLIT_MEANINGS,
        asides=_asides(timeline),
        json_name=path.with_suffix(".json").name,
        markdown_name=path.with_suffix(".md").name,
    )
    markdown = render("report.md", facts=facts, gradient_reading=GRADIENT_READING)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path.with_suffix(".json"), text + "\n")
    write_text(path.with_suffix(".md"), markdown)
    write_text(path, html)
    return path


def _figures(timeline: Timeline, phases: Phases, facts: dict[str, Any]) -> dict[str, go.Figure]:
    """The figures of the page by name; those with nothing to show are left out.

    Which panels are left out, and why, is among the facts.
    """
    found = {
        "timeline": timeline_figure(timeline, phases=phases),
        "checkpoint": checkpoint_figure(timeline),
    }
    absent = {row["panel"] for row in facts["left_out"]}
    if not absent.issuperset(ABLATION_PANELS):
        found["ablation"] = timeline_figure(timeline, phases=phases, panels=ABLATION_PANELS)
    if not facts["phases"]["carriers_reason"]:
        found["carriers"] = carrier_map_figure(timeline, phases=phases)
    if not missing_for_residual_map(timeline.data):
        found["residual"] = residual_map_figure(timeline, phases=phases)
    return found


def _asides(timeline: Timeline) -> list[str]:
    """The variables that say how sure another one is: intervals and counts."""
    ends = ("_interval", "_n", "_undefined", "_left_out")
    return [str(name) for name in timeline.data.data_vars if str(name).endswith(ends)]
