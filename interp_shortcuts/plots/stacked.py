"""Parts below each other that share one x axis, each with its name above it.

Heading, legend and the margins are `sweep_frame`'s; what the parts show is left to others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import plotly.graph_objects as go

from interp_shortcuts.plots.page_style import heading
from interp_shortcuts.plots.palette import INK, MUTED
from interp_shortcuts.plots.sweep_frame import AXIS, framed

NAME_ROW, GAP = 19.0, 12.0


@dataclass(frozen=True)
class Part:
    """One pair of axes.

    Attributes:
        name: What stands above it; markup-safe.
        traces: Plotly traces without axes.
        y: The y axis.
        levels: Heights at which a dotted line is drawn.
        height: Pixels of its plotting area.
    """

    name: str
    traces: Sequence[Mapping[str, Any]]
    y: Mapping[str, Any]
    levels: Sequence[float] = field(default=())
    height: float = 150.0


def stacked(
    parts: Sequence[Part],
    *,
    title: str,
    reading: str,
    x: Mapping[str, Any],
    left: int = 58,
    uprights: Iterable[Any] = (),
    **layout: Any,
) -> go.Figure:
    """A figure of parts from top to bottom; traces of one legend group are toggled together.

    Args:
        parts: At least one.
        title: Heading, markup-safe.
        reading: How to read it, markup-safe.
        x: The x axis that they share; drawn below the last.
        left: Pixels left of the plotting area.
        uprights: Places on the x axis at which a dotted upright goes through all parts.
        layout: Further parts of the layout, and options of `framed`.
    """
    height = sum(NAME_ROW + part.height for part in parts) + GAP * (len(parts) - 1)
    traces: list[dict[str, Any]] = []
    shapes = [_upright(place) for place in uprights]
    names, axes, top = [], {}, 0.0
    for number, part in enumerate(parts, start=1):
        suffix = "" if number == 1 else str(number)
        names.append(heading(part.name, 1 - top / height, size=12, colour=INK))
        ends = [top + NAME_ROW + part.height, top + NAME_ROW]
        axes[f"yaxis{suffix}"] = {
            **AXIS,
            **part.y,
            "domain": [max(1 - end / height, 0.0) for end in ends],
            "anchor": "x",
        }
        traces += [{**trace, "yaxis": f"y{suffix}"} for trace in part.traces]
        shapes += [_level(value, f"y{suffix}") for value in part.levels]
        top = ends[0] + GAP
    last = f"y{len(parts)}" if len(parts) > 1 else "y"
    first = axes.pop("yaxis")
    return framed(
        traces,
        title=title,
        reading=reading,
        height=height,
        x={**AXIS, **x, "anchor": last},
        y=first,
        left=left,
        annotations=[*names, *layout.pop("annotations", ())],
        shapes=[*shapes, *layout.pop("shapes", ())],
        **axes,
        **layout,
    )


def _level(value: float, axis: str) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "yref": axis,
        "y0": value,
        "y1": value,
        "layer": "below",
        "line": {"color": MUTED, "width": 1, "dash": "dot"},
    }


def _upright(place: Any) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "x",
        "x0": place,
        "x1": place,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"color": MUTED, "width": 1.2, "dash": "dot"},
    }
