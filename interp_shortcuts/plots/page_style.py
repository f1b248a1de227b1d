"""The typography that figures share: font, headings placed in pixels, legends, wrapped notes.

Sizes are chosen so that everything is readable on a page 400 pixels wide. Colours are in
`palette.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from interp_shortcuts.plots.palette import INK, MUTED

FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
NOTE_ROW = 18
"""Pixels of one line of a note."""
NARROW = 56
"""Characters of a note that fit a page 400 pixels wide."""


def base_layout(height: float, margin: Mapping[str, int]) -> dict[str, Any]:
    """What all figures have in common.

    Args:
        height: Pixels of the plotting area.
        margin: Plotly margin; added to the height.
    """
    return {
        "height": round(height + margin["t"] + margin["b"]),
        "autosize": True,
        "margin": dict(margin),
        "template": "none",
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "font": {"family": FONT, "size": 12, "color": INK},
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "bgcolor": "white", "font": {"size": 12, "color": INK}},
    }


def title(text: str, reading: str) -> str:
    """A panel's heading: its title, and below it in small how to read it (both markup-safe)."""
    return f"<b>{text}</b><br><span style='font-size:11px;color:{MUTED}'>{reading}</span>"


def heading(
    text: str, y: float, *, size: int, colour: str, x: float = 0.0, shift: float = 0.0
) -> dict[str, Any]:
    """A text whose upper left corner lies at (`x`, `y`), fractions of the plotting area.

    Args:
        text: Markup-safe text.
        y: 1 is the top of the plotting area.
        size: Font size in pixels.
        colour: Hex colour.
        x: 0 is the left edge of the plotting area.
        shift: Pixels to the right of `x`.
    """
    return {
        "text": text,
        "x": x,
        "xref": "paper",
        "xanchor": "left",
        "xshift": shift,
        "y": y,
        "yref": "paper",
        "yanchor": "top",
        "align": "left",
        "showarrow": False,
        "borderpad": 0,
        "font": {"size": size, "color": colour},
    }


def legend(y: float) -> dict[str, Any]:
    """A horizontal legend below `y` whose entries toggle their whole group."""
    return {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "y": y,
        "yanchor": "top",
        "font": {"size": 12},
        "groupclick": "togglegroup",
        "bgcolor": "rgba(255,255,255,0)",
        "tracegroupgap": 0,
    }


def legend_rows(names: Iterable[str], width: float = 310.0) -> int:
    """Rows that a horizontal legend of these names takes on a page 400 pixels wide."""
    rows, used = 1, 0.0
    for name in sorted(names):
        entry = 46 + 6.8 * len(name)
        if used and used + entry > width:
            rows, used = rows + 1, 0.0
        used += entry
    return rows


def wrap(text: str, width: int = NARROW) -> list[str]:
    """The words of `text` on lines of at most `width` characters (longer words stand alone)."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
