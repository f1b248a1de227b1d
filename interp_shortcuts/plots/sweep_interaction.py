"""The effect of one field at two levels of another: four rates, two lines, every run as a dot."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import cell_style
from interp_shortcuts.plots.sweep_frame import (
    AXIS,
    MANY_RUNS,
    RATE_AXIS,
    check_drawable,
    fewer_than_two,
    framed,
    spread,
)
from interp_shortcuts.sweeps.interaction import Interaction, InteractionCell
from interp_shortcuts.sweeps.interaction_text import p_value
from interp_shortcuts.sweeps.settings import shown_value

_EDGE = 0.07  # of the rate axis, between its ends and the rows of dots


def missing_for_interaction(
    table: pd.DataFrame, *, effect: str = "ratio", between: str = "n_layers"
) -> str:
    """Why there is no interaction to show; empty if there is."""
    for field in (effect, between):
        if reason := fewer_than_two(table, field):
            return reason
    return ""


def interaction_figure(found: Interaction) -> go.Figure:
    """The four rates of an interaction with exact 95% intervals, a line for each depth.

    Dots above the top are the runs that generalised, dots below the bottom those that did not.

    Args:
        found: What `sweeps.interactions` gave.

    Raises:
        ConfigError: If it has no numbers.
    """
    check_drawable(found.reason)
    traces: list[dict[str, Any]] = []
    for index in (0, 1):
        pair = found.cells[2 * index : 2 * index + 2]
        traces.append(_line(found, pair, index))
        if all(cell.n <= MANY_RUNS for cell in found.cells):
            traces.append(_dots(found, pair, index))
    levels = [shown_value(cell.effect) for cell in found.cells[:2]]
    question = f"Does the effect of {plain(found.effect)} depend on {plain(found.between)}?"
    return framed(
        traces,
        title=question,
        reading=(f"{plain(found.setting)}: " if found.setting else "")
        + f"difference of differences {found.difference:+.2f} ({found.low:.2f} to "
        f"{found.high:.2f}), exact permutation p {plain(p_value(found.p_value))}; parallel lines: "
        "no interaction; dots: runs that generalised (top) or did not (bottom)".replace("-", "−"),
        height=300.0,
        x={
            **AXIS,
            "range": [-0.4, 1.4],
            "tickvals": [0, 1],
            "ticktext": [f"{plain(found.effect)} {level}" for level in levels],
        },
        y={
            **RATE_AXIS,
            "range": [-3 * _EDGE, 1 + 3 * _EDGE],
            "title": {"text": "fraction of seeds that generalise", "standoff": 6},
        },
        left=60,
        bottom=34,
    )


def _x(index: int) -> list[float]:
    side = (index - 0.5) * 0.05
    return [side, 1 + side]


def _line(found: Interaction, pair: tuple[InteractionCell, ...], index: int) -> dict[str, Any]:
    style = cell_style(index)
    rates = [cell.rate for cell in pair]
    ends = [cell.interval for cell in pair]
    name = f"{plain(found.between)} {shown_value(pair[0].between)}"
    return {
        "type": "scatter",
        "x": _x(index),
        "y": rates,
        "mode": "lines+markers",
        "line": {"color": style.colour, "width": 2.5, "dash": style.dash},
        "marker": {"symbol": style.symbol, "size": 11, "color": style.colour},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [high - rate for (_, high), rate in zip(ends, rates, strict=True)],
            "arrayminus": [rate - low for (low, _), rate in zip(ends, rates, strict=True)],
            "thickness": 1.5,
            "width": 5,
            "color": style.colour,
        },
        "name": name,
        "legendgroup": name,
        "showlegend": True,
        "customdata": [
            [shown_value(cell.effect), cell.generalised, cell.n, *end]
            for cell, end in zip(pair, ends, strict=True)
        ],
        "hovertemplate": f"<b>{name}, {plain(found.effect)} %{{customdata[0]}}</b><br>rate "
        "%{y:.3f}, 95% interval %{customdata[3]:.3f} to %{customdata[4]:.3f}<br>%{customdata[1]} "
        "of n = %{customdata[2]}<extra></extra>",
    }


def _dots(found: Interaction, pair: tuple[InteractionCell, ...], index: int) -> dict[str, Any]:
    style = cell_style(index)
    name = f"{plain(found.between)} {shown_value(pair[0].between)}"
    x, y = [], []
    for level, cell in enumerate(pair):
        for count, side in ((cell.generalised, 1), (cell.n - cell.generalised, 0)):
            x += [level + place for place in spread(count, 0.045, 0.7)]
            edge = _EDGE * (1 + index)
            y += [1 + edge if side else -edge] * count
    return {
        "type": "scatter",
        "x": x,
        "y": y,
        "mode": "markers",
        "marker": {"symbol": style.symbol, "size": 5, "color": style.colour, "opacity": 0.75},
        "name": f"{name}, runs",
        "legendgroup": name,
        "showlegend": False,
        "hoverinfo": "skip",
    }
