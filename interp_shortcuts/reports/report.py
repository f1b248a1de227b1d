"""Writes the report of one run: a self-contained HTML page, and its facts as JSON and Markdown.

The facts are gathered in `facts.py`, the pictures drawn in `plots/`.
"""

from __future__ import annotations

import json
from pathlib import Path

from interp_shortcuts.plots.checkpoints import checkpoint_figure
from interp_shortcuts.plots.timeline import timeline_figure
from interp_shortcuts.reports.facts import report_facts
from interp_shortcuts.reports.page import figure_json, plotly_js, render
from interp_shortcuts.reports.reading import (
    CHECKPOINT_READING,
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
) -> Path:
    """Writes one HTML page that works offline, and the same facts beside it as JSON and Markdown.

    The same timeline gives the same bytes.

    Args:
        timeline: What was measured.
        path: The HTML file; `.json` and `.md` get the same stem. Missing folders are made.
        phases: Events and outcome; None asks the timeline for them with its default rules.
        index: Address of the index page that this page belongs to, relative to it.

    Returns:
        The HTML file.

    Raises:
        ConfigError: If the timeline has no step.
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        path = path.with_name(f"{path.name}.html")
    phases = timeline.phases() if phases is None else phases
    facts = report_facts(timeline, phases=phases)
    html = render(
        "report.html",
        facts=facts,
        index=index,
        plotly_js=plotly_js(),
        timeline_figure=figure_json(timeline_figure(timeline, phases=phases)),
        checkpoint_figure=figure_json(checkpoint_figure(timeline)),
        timeline_reading=TIMELINE_READING,
        checkpoint_reading=CHECKPOINT_READING,
        split_meanings=SPLIT_MEANINGS,
        json_name=path.with_suffix(".json").name,
        markdown_name=path.with_suffix(".md").name,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path.with_suffix(".json"), text + "\n")
    write_text(path.with_suffix(".md"), render("report.md", facts=facts))
    write_text(path, html)
    return path
