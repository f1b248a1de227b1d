"""A menu above a figure: which of its traces are shown. What they are is left to others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def menu(buttons: Sequence[dict[str, Any]], *, active: int = 0) -> dict[str, Any]:
    """A menu above the plotting area, of which one entry is on."""
    return {
        "type": "dropdown",
        "direction": "down",
        "active": active,
        "x": 0,
        "xanchor": "left",
        "y": 1,
        "yanchor": "bottom",
        "pad": {"t": 0, "l": 0, "r": 0, "b": 6},
        "font": {"size": 12},
        "bgcolor": "white",
        "bordercolor": "#CBD2D9",
        "buttons": list(buttons),
    }
