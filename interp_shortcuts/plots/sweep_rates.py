"""How many seeds of each cell generalised: the rate with its interval, and every run as a dot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.page_style import wrap
from interp_shortcuts.plots.palette import INK, MUTED, outcome_style
from interp_shortcuts.plots.sweep_frame import AXIS, MANY_RUNS, RATE_AXIS, check_drawable, framed
from interp_shortcuts.sweeps.counted import NOT_COUNTED, counted, not_counted
from interp_shortcuts.sweeps.rates import generalisation_rates

_LABEL, _BAR, _DOTS, _GAP = 17.0, 22.0, 17.0, 14.0
_LABEL_WIDTH = 42
_ORDER = (
    *("generalised", "direct", "transient", "partial"),
    *("shortcut", "memorised", "never learned"),
)


def missing_for_rates(table: pd.DataFrame) -> str:
    """Why there is no figure of rates; empty if there is one."""
    if len(counted(table)):
        return ""
    lost = _lost(not_counted(table))
    return f"no run counts: {lost}" if lost else "no run has ended yet"


def rate_figure(table: pd.DataFrame) -> go.Figure:
    """One row a cell: the generalisation rate with its exact 95% interval, and its runs.

    The runs lie side by side from 0 to 1, those that generalised first, so that the filled part
    ends at the rate.

    Args:
        table: The runs of a sweep, as `results` gives them.

    Raises:
        ConfigError: If no run counts.
    """
    check_drawable(missing_for_rates(table))
    rates = generalisation_rates(table)
    traces: list[dict[str, Any]] = []
    texts, places = [], []
    top = 0.0
    for row in rates.to_dict("records"):
        lines = wrap(plain(row["cell"]), _LABEL_WIDTH)
        texts.append(_text("<br>".join(lines), top, "left", INK))
        texts.append(_text(_count(row), top, "right", MUTED if not row["n"] else INK))
        places.append(top + _LABEL * len(lines) + _BAR / 2)
        top = places[-1] + _BAR / 2 + _DOTS + _GAP
    traces += _dots(table, rates, places)
    traces.append(_bars(rates, places))
    return framed(
        traces,
        title="How many seeds generalise",
        reading="adversarial accuracy 1.0 at any evaluation; bar: exact 95% interval; "
        "dots: the runs, those that generalised first",
        height=top,
        x={**RATE_AXIS, "title": {"text": "fraction of seeds", "standoff": 6}},
        y={**AXIS, "range": [top, 0], "showgrid": False, "ticks": "", "showticklabels": False},
        left=12,
        annotations=texts,
    )


def _text(text: str, top: float, side: str, colour: str) -> dict[str, Any]:
    return {
        "text": text,
        "x": 0 if side == "left" else 1,
        "xref": "paper",
        "xanchor": side,
        "y": top,
        "yref": "y",
        "yanchor": "top",
        "align": side,
        "showarrow": False,
        "borderpad": 0,
        "font": {"size": 12, "color": colour},
    }


def _count(row: dict[str, Any]) -> str:
    if row["n"]:
        return f"<b>{row['generalised']} of {row['n']}</b>"
    lost = _lost(row)
    return f"no run counts: {lost}" if lost else "no run ended"


def _lost(numbers: Mapping[str, Any]) -> str:
    """How many runs ended and still do not count, by reason; empty if none."""
    return ", ".join(
        f"{numbers[name]} {name}" for name in NOT_COUNTED if name != "unfinished" and numbers[name]
    )


def _bars(rates: pd.DataFrame, places: list[float]) -> dict[str, Any]:
    rate = rates["generalised_rate"]
    return {
        "type": "scatter",
        "x": rate.tolist(),
        "y": places,
        "mode": "markers",
        "marker": {"size": 11, "color": INK, "symbol": "line-ns", "line": {"width": 4}},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": (rates["generalised_high"] - rate).tolist(),
            "arrayminus": (rate - rates["generalised_low"]).tolist(),
            "thickness": 5,
            "width": 0,
            "color": "#A9B4C0",
        },
        "name": "rate",
        "showlegend": False,
        "customdata": [
            [
                plain(row["cell"]),
                row["generalised"],
                row["n"],
                row["generalised_low"],
                row["generalised_high"],
                row["lasting"],
                row["transient"],
                ", ".join(f"{row[name]} {name}" for name in NOT_COUNTED if row[name]) or "none",
            ]
            for row in rates.to_dict("records")
        ],
        "hovertemplate": "<b>%{customdata[0]}</b><br>rate %{x:.3f}, 95% interval "
        "%{customdata[3]:.3f} to %{customdata[4]:.3f}<br>%{customdata[1]} of n = %{customdata[2]}: "
        "%{customdata[5]} lasting, %{customdata[6]} transient<br>runs not counted: "
        "%{customdata[7]}<extra></extra>",
    }


def _dots(table: pd.DataFrame, rates: pd.DataFrame, places: list[float]) -> list[dict[str, Any]]:
    """One trace per outcome, so that the legend names them."""
    found: dict[str, dict[str, list[Any]]] = {}
    place = dict(zip(rates["cell"], places, strict=True))
    runs = counted(table)
    for cell, top in place.items():
        rows = [row for row in runs.to_dict("records") if row["cell"] == cell]
        rows.sort(key=lambda row: (_rank(row["outcome"]), row["seed"]))
        for index, row in enumerate(rows if len(rows) <= MANY_RUNS else []):
            points = found.setdefault(row["outcome"], {"x": [], "y": [], "customdata": []})
            points["x"].append((index + 0.5) / len(rows))
            points["y"].append(top + _BAR / 2 + _DOTS / 2)
            about = (row["seed"], _step(row["onset"]), _step(row["completion"]))
            points["customdata"].append([*about, _accuracy(row["final_adversarial"])])
    traces = []
    for outcome in sorted(found, key=_rank):
        style = outcome_style(outcome)
        traces.append(
            {
                "type": "scatter",
                **found[outcome],
                "mode": "markers",
                "marker": {
                    "symbol": style.symbol,
                    "size": 9,
                    "color": style.colour,
                    "line": {"width": 1.5, "color": style.colour},
                },
                "name": outcome,
                "showlegend": True,
                "hovertemplate": f"<b>{outcome}</b> · seed %{{customdata[0]}}<br>onset "
                "%{customdata[1]}, rule complete %{customdata[2]}<br>adversarial accuracy at the "
                "end %{customdata[3]}<extra></extra>",
            }
        )
    return traces


def _rank(outcome: str) -> int:
    return _ORDER.index(outcome) if outcome in _ORDER else len(_ORDER)


def _accuracy(value: Any) -> str:
    return "not known" if pd.isna(value) else f"{float(value):.4g}"


def _step(value: Any) -> str:
    return "never" if pd.isna(value) else f"{int(value):,}"
