"""Writes one figure as a small HTML file, to be shown inside a page of the documentation.

plotly.js is not part of it: many figures share one file beside them. Whole pages, which are
self-contained, are written in `report`, `index` and `sweep`.
"""

from __future__ import annotations

from pathlib import Path

import plotly.graph_objects as go

from interp_shortcuts.reports.page import figure_json, render
from interp_shortcuts.runs.store import write_text

PLOTLY_FILE = "plotly.min.js"
"""Where the figure looks for plotly.js: this file in its own folder."""


def write_figure(figure: go.Figure, path: str | Path, *, title: str) -> Path:
    """Writes a figure that is as wide as the frame it is shown in, and returns the file.

    The same figure gives the same bytes. Nothing is fetched from a network: `plotly.min.js` must
    lie in the same folder.

    Args:
        figure: A figure of this package.
        path: The HTML file; missing folders are made.
        title: What it shows, for readers who cannot see it.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(
        path,
        render(
            "figure.html",
            title=title,
            figure=figure_json(figure),
            height=figure.layout["height"],
            plotly_file=PLOTLY_FILE,
        ),
    )
    return path
