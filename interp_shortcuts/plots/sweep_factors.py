"""Rates along one field of a sweep: the ratio's distance from chance, and the weight decay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from interp_shortcuts.plots.palette import Style, cell_style
from interp_shortcuts.plots.sweep_frame import (
    AXIS,
    RATE_AXIS,
    check_drawable,
    fewer_than_two,
    framed,
    series_labels,
)
from interp_shortcuts.plots.sweep_rates import missing_for_rates
from interp_shortcuts.sweeps.rates import chance_distances, generalisation_rates
from interp_shortcuts.sweeps.settings import shown_value

_SHIFT = 0.008


def missing_for_chance_distance(table: pd.DataFrame) -> str:
    """Why there is no figure over the distance from chance; empty if there is one."""
    return missing_for_rates(table) or fewer_than_two(table, "ratio")


def chance_distance_figure(table: pd.DataFrame) -> go.Figure:
    """The generalisation rate against |ratio - chance|, with exact 95% intervals.

    Filled marks lie at or above chance, open ones below; a line joins cells that differ in the
    ratio alone, one on each side.

    Args:
        table: The runs of a sweep, as `results` gives them.

    Raises:
        ConfigError: If no run has ended, or all have the same ratio.
    """
    check_drawable(missing_for_chance_distance(table))
    rates = chance_distances(table)
    labels = series_labels(table, rates, ("ratio",))
    names = list(dict.fromkeys(labels))
    traces = []
    for index, name in enumerate(names):
        own = [
            r for r, label in zip(rates.to_dict("records"), labels, strict=True) if label == name
        ]
        for below in (False, True):
            rows = [row for row in own if row["n"] and (row["side"] == "below") == below]
            rows.sort(key=lambda row: row["distance"])
            style = cell_style(index)
            symbol = f"{style.symbol}-open" if below else style.symbol
            x = [row["distance"] + _SHIFT * (index - (len(names) - 1) / 2) for row in rows]
            words = f"{name}, below chance" if below else name
            if rows:
                traces.append(
                    _rate_trace(
                        rows, x, "generalised", words, Style(style.colour, style.dash, symbol)
                    )
                )
    widest = max(row["distance"] for row in rates.to_dict("records"))
    return framed(
        traces,
        title="Generalisation against the ratio's distance from chance",
        reading="at 0 the shortcut label says nothing on the true one; filled: at or above chance, "
        "open: below; exact 95% intervals",
        height=260.0,
        x={
            **AXIS,
            "range": [-0.04, widest + 0.04],
            "nticks": 6,
            "title": {"text": "|ratio − chance|", "standoff": 6},
        },
        y={**RATE_AXIS, "title": {"text": "fraction of seeds", "standoff": 6}},
        left=60,
    )


def missing_for_weight_decay(table: pd.DataFrame) -> str:
    """Why there is no figure over weight decays; empty if there is one."""
    return missing_for_rates(table) or fewer_than_two(table, "weight_decay")


def weight_decay_figure(table: pd.DataFrame) -> go.Figure:
    """Seeds that generalise for good, and seeds that lose the rule again, over weight decays.

    Args:
        table: The runs of a sweep, as `results` gives them.

    Raises:
        ConfigError: If no run has ended, or all have the same weight decay.
    """
    check_drawable(missing_for_weight_decay(table))
    rates = generalisation_rates(table)
    labels = series_labels(table, rates, ("weight_decay",))
    values = sorted(rates["weight_decay"].dropna().unique().tolist())
    names = list(dict.fromkeys(labels))
    traces = []
    for index, name in enumerate(names):
        own = [
            r for r, label in zip(rates.to_dict("records"), labels, strict=True) if label == name
        ]
        rows = sorted((r for r in own if r["n"]), key=lambda row: row["weight_decay"])
        colour, symbol = cell_style(index).colour, cell_style(index).symbol
        for number, (kind, dash, mark) in enumerate(
            (("lasting", "solid", symbol), ("transient", "dot", f"{symbol}-open"))
        ):
            shift = 0.07 * (2 * index + number - (2 * len(names) - 1) / 2)
            x = [values.index(row["weight_decay"]) + shift for row in rows]
            words = kind if len(names) == 1 else f"{name}: {kind}"
            if rows:
                traces.append(_rate_trace(rows, x, kind, words, Style(colour, dash, mark)))
    return framed(
        traces,
        title="Weight decay: the rule kept, or lost again",
        reading="filled, solid: generalised and kept to the end; open, dotted: generalised, then "
        "lost; exact 95% intervals",
        height=260.0,
        x={
            **AXIS,
            "range": [-0.6, len(values) - 0.4],
            "tickvals": list(range(len(values))),
            "ticktext": [shown_value(value) for value in values],
            "title": {"text": "weight decay", "standoff": 6},
        },
        y={**RATE_AXIS, "title": {"text": "fraction of seeds", "standoff": 6}},
        left=60,
    )


def _rate_trace(
    rows: Sequence[dict[str, Any]], x: list[float], kind: str, name: str, style: Style
) -> dict[str, Any]:
    """One line of rates with intervals; the hover tells the counts."""
    rates = [row[f"{kind}_rate"] for row in rows]
    return {
        "type": "scatter",
        "x": x,
        "y": rates,
        "mode": "lines+markers",
        "line": {"color": style.colour, "width": 1.8, "dash": style.dash},
        "marker": {
            "symbol": style.symbol,
            "size": 10,
            "color": style.colour,
            "line": {"width": 2, "color": style.colour},
        },
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [row[f"{kind}_high"] - rate for row, rate in zip(rows, rates, strict=True)],
            "arrayminus": [
                rate - row[f"{kind}_low"] for row, rate in zip(rows, rates, strict=True)
            ],
            "thickness": 1.4,
            "width": 4,
            "color": style.colour,
        },
        "name": name,
        "showlegend": True,
        "customdata": [
            [
                row["cell"],
                row[kind],
                row["n"],
                row[f"{kind}_low"],
                row[f"{kind}_high"],
            ]
            for row in rows
        ],
        "hovertemplate": f"<b>%{{customdata[0]}}</b><br>{kind}: %{{customdata[1]}} of n = "
        "%{customdata[2]}<br>rate %{y:.3f}, 95% interval %{customdata[3]:.3f} to "
        "%{customdata[4]:.3f}<extra></extra>",
    }
