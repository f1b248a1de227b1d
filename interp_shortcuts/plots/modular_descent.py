"""Test accuracy against the width of the network: a double descent, a line for each noise level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.modular_progress import GROUP_NAMES
from interp_shortcuts.plots.palette import Style, cell_style
from interp_shortcuts.plots.stacked import Part, stacked
from interp_shortcuts.plots.sweep_frame import RATE_AXIS, check_drawable

PARTS = (
    ("full", "trained", "The network itself"),
    ("G", "trained", "Network G"),
    ("G", "quadratic", "Network G with the quadratic activation"),
)


def missing_for_descent(table: pd.DataFrame, group: str = "test") -> str:
    """Why accuracy cannot be drawn over the width; empty if it can."""
    own = [r for r in table.to_dict("records") if r["group"] == group and np.isfinite(r["mean"])]
    widths = {row["width"] for row in own}
    if len(widths) > 1:
        return ""
    return "the runs have one width only" if widths else f"no accuracy on {group} was measured"


def descent_figure(table: pd.DataFrame, *, group: str = "test") -> go.Figure:
    """Final accuracy over the width, for the network itself and for network G.

    Args:
        table: A row for each `line` (a setting of everything but the width), `width`, `network`,
            `acting` and `group`, with `mean`, `low` and `high` (95% t interval; NaN for one seed)
            and `n` seeds, as `sweeps.hidden_cells` gives it.
        group: The group of examples.

    Raises:
        ConfigError: If there are not two widths.
    """
    check_drawable(missing_for_descent(table, group))
    rows = [r for r in table.to_dict("records") if r["group"] == group and np.isfinite(r["mean"])]
    lines = list(dict.fromkeys(str(row["line"]) for row in rows))
    parts = []
    for network, acting, name in PARTS:
        own = [row for row in rows if (row["network"], row["acting"]) == (network, acting)]
        traces: list[dict[str, Any]] = []
        for index, line in enumerate(lines):
            points = sorted((r for r in own if r["line"] == line), key=lambda row: row["width"])
            if points:
                traces += _line(points, line, cell_style(index), name, first=not parts)
        if traces:
            y = {**RATE_AXIS, "title": {"text": "accuracy", "standoff": 6}}
            parts.append(Part(name, traces, y))
    widths = sorted({int(row["width"]) for row in rows})
    return stacked(
        parts,
        title=f"{GROUP_NAMES[group]}: accuracy against width",
        reading="means over seeds at the end of training, a line a setting; bands: 95% t intervals",
        x={
            "type": "log",
            "tickmode": "array",
            "tickvals": widths,
            "ticktext": [f"{width:,}" for width in widths],
            "tickangle": -45 if len(widths) > 6 else 0,
            "title": {"text": "width M (neurons)", "standoff": 10},
        },
        right=22,
        bottom=62 if len(widths) > 6 else 46,
    )


def band(
    x: Sequence[Any], low: Sequence[float], high: Sequence[float], style: Style
) -> dict[str, Any] | None:
    """A filled band where both of its ends are known; None if they never are."""
    known = [i for i in range(len(x)) if np.isfinite(low[i]) and np.isfinite(high[i])]
    if not known:
        return None
    there, back = [x[i] for i in known], [x[i] for i in reversed(known)]
    return {
        "type": "scatter",
        "x": [*there, *back],
        "y": [*(high[i] for i in known), *(low[i] for i in reversed(known))],
        "mode": "lines",
        "fill": "toself",
        "fillcolor": style.band(),
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def interval_words(row: dict[Any, Any]) -> str:
    """`95% t interval 0.123 to 0.456, n = 3 seeds`; that there is none of one seed."""
    n = int(row["n"])
    size = f"n = {n} seed{'' if n == 1 else 's'}"
    if not np.isfinite(row["low"]):
        return f"no interval, {size}"
    return f"95% t interval {row['low']:.3f} to {row['high']:.3f}, {size}"


def _line(
    rows: Sequence[dict[Any, Any]], line: str, style: Style, what: str, *, first: bool
) -> list[dict[str, Any]]:
    x = [int(row["width"]) for row in rows]
    low, high = ([float(row[end]) for row in rows] for end in ("low", "high"))
    behind = band(x, low, high, style)
    common = {"name": plain(line), "legendgroup": line}
    drawn = {
        **common,
        "type": "scatter",
        "x": x,
        "y": [float(row["mean"]) for row in rows],
        "mode": "lines+markers",
        "line": {"color": style.colour, "width": 2, "dash": style.dash},
        "marker": {"symbol": style.symbol, "size": 7, "color": style.colour},
        "showlegend": first,
        "customdata": [interval_words(row) for row in rows],
        "hovertemplate": f"<b>{plain(line)}</b> · M = %{{x:,d}}<br>{what}: mean accuracy %{{y:.3f}}"
        "<br>%{customdata}<extra></extra>",
    }
    return [drawn] if behind is None else [{**behind, **common}, drawn]
