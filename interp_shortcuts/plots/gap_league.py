"""Which attribution is closest to causal importance: mean rho with its interval, pair by pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import INK, MUTED, cell_style
from interp_shortcuts.plots.sweep_frame import AXIS, check_drawable, framed

_ROW, _HEAD = 20.0, 30.0


def missing_for_league(table: pd.DataFrame) -> str:
    """Why methods cannot be compared; empty if they can."""
    return "" if any(table["n"].tolist()) else "no method and reference were both measured"


def league_figure(table: pd.DataFrame) -> go.Figure:
    """A row a method below each reference: mean of Spearman's rho over seeds, 95% t interval.

    A ring marks the method that is closest to that reference. Pairs that no seed defines are not
    drawn; the table of the page names them.

    Args:
        table: What `timelines.gap_league.method_league` gave.

    Raises:
        ConfigError: If no pair is defined.
    """
    check_drawable(missing_for_league(table))
    rows = [row for row in table.to_dict("records") if row["n"]]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    places, texts, top, before = [], [], 0.0, ""
    for row in rows:
        if row["reference"] != before:
            before = row["reference"]
            texts.append(_heading(f"<b>against {plain(before)}</b>", top))
            top += _HEAD
        places.append(top + _ROW / 2)
        texts.append(_heading(plain(row["method"]), top + 3, size=11, x=-6, anchor="right"))
        top += _ROW
    traces = [_trace(rows, places, method, index) for index, method in enumerate(methods)]
    traces.append(_rings(rows, places))
    least = min(0.0, *(_end(row, "low") for row in rows))
    most = max(1.0, *(_end(row, "high") for row in rows))
    return framed(
        traces,
        title="Every attribution against every importance",
        reading="Spearman's rho over components: mean over seeds with its 95% t interval; 1: the "
        "same order; 0: no relation; ring: the closest to that reference",
        height=top,
        x={
            **AXIS,
            "range": [least - 0.06, most + 0.06],
            "zeroline": True,
            "zerolinecolor": MUTED,
            "zerolinewidth": 1,
            "title": {"text": "mean rho over seeds", "standoff": 6},
        },
        y={**AXIS, "range": [top, 0], "showgrid": False, "ticks": "", "showticklabels": False},
        left=160,
        annotations=texts,
    )


def _heading(
    text: str, top: float, *, size: int = 12, x: int = -154, anchor: str = "left"
) -> dict[str, Any]:
    return {
        "text": text,
        "x": 0,
        "xref": "paper",
        "xanchor": anchor,
        "xshift": x,
        "y": top + (8 if anchor == "left" else 0),
        "yref": "y",
        "yanchor": "top",
        "align": anchor,
        "showarrow": False,
        "borderpad": 0,
        "font": {"size": size, "color": INK},
    }


def _trace(
    rows: list[dict[Any, Any]], places: list[float], method: str, index: int
) -> dict[str, Any]:
    own = [(row, y) for row, y in zip(rows, places, strict=True) if row["method"] == method]
    style = cell_style(index)
    means = np.array([row["mean"] for row, _ in own])
    return {
        "type": "scatter",
        "x": means,
        "y": [y for _, y in own],
        "mode": "markers",
        "marker": {"symbol": style.symbol, "size": 9, "color": style.colour},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [_end(row, "high") - row["mean"] for row, _ in own],
            "arrayminus": [row["mean"] - _end(row, "low") for row, _ in own],
            "thickness": 2,
            "width": 0,
            "color": style.colour,
        },
        "cliponaxis": False,
        "name": plain(method),
        "showlegend": False,
        "customdata": [
            [plain(row["reference"]), _interval(row), row["n"], row["n_undefined"], _behind(row)]
            for row, _ in own
        ],
        "hovertemplate": f"<b>{plain(method)}</b> against %{{customdata[0]}}<br>mean rho %{{x:.3f}}"
        "%{customdata[1]}<br>n = %{customdata[2]} seeds, %{customdata[3]} undefined"
        "%{customdata[4]}<extra></extra>",
    }


def _rings(rows: list[dict[Any, Any]], places: list[float]) -> dict[str, Any]:
    own = [(row["mean"], y) for row, y in zip(rows, places, strict=True) if row["best"]]
    return {
        "type": "scatter",
        "x": [mean for mean, _ in own],
        "y": [y for _, y in own],
        "mode": "markers",
        "marker": {
            "symbol": "circle-open",
            "size": 17,
            "color": INK,
            "line": {"width": 1.5, "color": INK},
        },
        "cliponaxis": False,
        "name": "closest",
        "showlegend": False,
        "hoverinfo": "skip",
    }


def _end(row: dict[Any, Any], name: str) -> float:
    """An end of the interval; the mean itself where there is none."""
    return float(row[name] if np.isfinite(row[name]) else row["mean"])


def _interval(row: dict[Any, Any]) -> str:
    if not np.isfinite(row["low"]):
        return ", no interval"
    return f", 95% interval {row['low']:.3f} to {row['high']:.3f}"


def _behind(row: dict[Any, Any]) -> str:
    if row["best"]:
        return "<br>closest to this reference"
    if not np.isfinite(row["behind"]):
        return ""
    ends = (
        f" ({row['behind_low']:.3f} to {row['behind_high']:.3f})"
        if np.isfinite(row["behind_low"])
        else ""
    )
    return f"<br>behind the closest by {row['behind']:.3f}{ends}"
