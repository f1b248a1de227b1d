"""The pictures of a page by section, each drawn or left out with its reason, and writing the page.

What the pages show is left to those that write them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from interp_shortcuts.reports.page import figure_json, plotly_js
from interp_shortcuts.runs.store import write_text


@dataclass(frozen=True, eq=False)
class PageFigure:
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


def drawn_or_missing(*figures: tuple[str, str, str, Callable[[], go.Figure]]) -> list[PageFigure]:
    """Draws those of which nothing is missing.

    Args:
        figures: Of each its name, its section, why it is left out (empty if it is not), and what
            draws it.
    """
    return [
        PageFigure(name, section, None if missing else draw(), missing)
        for name, section, missing, draw in figures
    ]


def figure_values(figures: list[PageFigure]) -> dict[str, Any]:
    """What the templates need to show the pictures: by section, with reasons, heights and data."""
    sections: dict[str, list[PageFigure]] = {}
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
