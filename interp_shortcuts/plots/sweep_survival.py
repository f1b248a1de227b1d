"""When phase 2 begins, over seeds: survival curves of the cells of a sweep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import cell_style
from interp_shortcuts.plots.sweep_frame import AXIS, RATE_AXIS, check_drawable, framed
from interp_shortcuts.plots.sweep_rates import missing_for_rates
from interp_shortcuts.sweeps.settings import groups
from interp_shortcuts.sweeps.survival import checked_event, survival_curves, survival_summary

_FEW = 4
_WORDS = {
    "onset": ("When phase 2 begins", "whose phase 2 has not begun"),
    "completion": ("When the rule is complete", "whose rule was not complete yet"),
}


def missing_for_survival(table: pd.DataFrame, *, event: str = "onset") -> str:
    """Why there is no figure of survival; empty if there is one."""
    checked_event(event)
    if reason := missing_for_rates(table):
        return reason
    if not any(survival_summary(table, event=event)["events"].tolist()):
        return f"no {event} among the runs that have ended"
    return ""


def survival_figure(table: pd.DataFrame, *, event: str = "onset") -> go.Figure:
    """The share of runs in which the event has not come, over steps, one line a cell.

    Steps down are runs that had it, ticks runs that ended (or left) without it. The band is the
    95% interval, drawn for up to four cells.

    Args:
        table: The runs of a sweep, as `results` gives them.
        event: `"onset"` or `"completion"`.

    Raises:
        ConfigError: If the event is unknown, or no run had it.
    """
    check_drawable(missing_for_survival(table, event=event))
    curves = survival_curves(table, event=event)
    summary = {row["cell"]: row for row in survival_summary(table, event=event).to_dict("records")}
    last = max(curves["step"].tolist())
    shown = list(groups(curves, ["cell"]))
    order = {cell: index for index, cell in enumerate(summary)}
    traces: list[dict[str, Any]] = []
    if len(shown) <= _FEW:
        for (cell,), curve in shown:
            traces += _band(curve, order[cell], last)
    for (cell,), curve in shown:
        traces += _line(curve, summary[cell], order[cell], last)
    heading, without = _WORDS[event]
    return framed(
        traces,
        title=heading,
        reading=f"share of runs {without} (Kaplan-Meier); ticks: runs that ended without it; "
        "in the legend: how many of n had it",
        height=260.0,
        x={
            **AXIS,
            "range": [-0.01 * last, 1.03 * last],
            "nticks": 6,
            "title": {"text": "training step", "standoff": 6},
        },
        y={**RATE_AXIS, "title": {"text": "share of runs", "standoff": 6}},
        left=60,
    )


def _line(
    curve: pd.DataFrame, summary: dict[str, Any], index: int, last: int
) -> list[dict[str, Any]]:
    style = cell_style(index)
    cell = plain(summary["cell"])
    steps, surviving = curve["step"].tolist(), curve["surviving"].tolist()
    group = {"legendgroup": cell}
    hover = "<b>" + cell + "</b> · step %{x:,d}<br>share without %{y:.3f}"
    line = {
        "type": "scatter",
        "x": [*steps, last],
        "y": [*surviving, surviving[-1]],
        "mode": "lines",
        "line": {"shape": "hv", "color": style.colour, "width": 2.2, "dash": style.dash},
        "name": f"{cell}: {summary['events']} of {summary['n']}",
        "showlegend": True,
        "hovertemplate": f"{hover}<br>{_median(summary)}<extra></extra>",
        **group,
    }
    marks = []
    for column, symbol, words in (("events", style.symbol, "had it"), ("censored", "", "left")):
        rows = [row for row in curve.to_dict("records") if row[column]]
        marks.append(
            {
                "type": "scatter",
                "x": [row["step"] for row in rows],
                "y": [row["surviving"] for row in rows],
                "mode": "markers",
                "marker": {
                    "symbol": symbol or "line-ns-open",
                    "size": 6 if symbol else 11,
                    "color": style.colour,
                    "line": {"width": 2, "color": style.colour},
                },
                "name": f"{cell}, {column}",
                "showlegend": False,
                "customdata": [[row[column], row["at_risk"]] for row in rows],
                "hovertemplate": f"{hover}<br>%{{customdata[0]}} of %{{customdata[1]}} {words}"
                "<extra></extra>",
                **group,
            }
        )
    return [line, *marks]


def _median(summary: dict[str, Any]) -> str:
    if pd.isna(summary["median"]):
        return "median not reached"
    ends = [
        "not reached" if pd.isna(summary[name]) else f"{int(summary[name]):,}"
        for name in ("median_low", "median_high")
    ]
    return f"median {int(summary['median']):,} (95% interval {ends[0]} to {ends[1]})"


def _band(curve: pd.DataFrame, index: int, last: int) -> list[dict[str, Any]]:
    known = np.isfinite(curve["low"].to_numpy(dtype=np.float64))
    if not known.any():
        return []
    steps = curve["step"].to_numpy()
    rows = np.flatnonzero(known)
    end = int(steps[rows[-1] + 1]) if rows[-1] + 1 < len(steps) else last
    style = cell_style(index)
    cell = plain(curve["cell"].iloc[0])
    x = [*steps[rows].tolist(), end]
    found = []
    for bound, fill in (("high", "none"), ("low", "tonexty")):
        values = curve[bound].to_numpy()[rows].tolist()
        found.append(
            {
                "type": "scatter",
                "x": x,
                "y": [*values, values[-1]],
                "mode": "lines",
                "line": {"shape": "hv", "width": 0, "color": style.colour},
                "fill": fill,
                "fillcolor": style.band(0.12),
                "name": f"{cell}, {bound}",
                "legendgroup": cell,
                "showlegend": False,
                "hoverinfo": "skip",
            }
        )
    return found
