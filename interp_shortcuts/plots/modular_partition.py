"""Whole neurons kept by participation ratio, strength or chance, beside the frequency filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.modular_progress import GROUP_NAMES, line_name
from interp_shortcuts.plots.palette import Style, cell_style, network_style, score_style
from interp_shortcuts.plots.stacked import Part, stacked
from interp_shortcuts.plots.sweep_frame import RATE_AXIS, check_drawable
from interp_shortcuts.timelines.hidden_progress import HiddenProgress

SCORE_NAMES = {"ipr": "by IPR", "strength": "by strength", "random": "at random, mean"}
KEPT = {
    "top": ("Top neurons kept", "G", "those that rank highest"),
    "bottom": ("Bottom neurons kept", "R", "those that rank lowest"),
}
"""For each end: the heading, the network by frequency that is its counterpart, and the words."""
_GROUPS = ("test", "clean", "noisy")
_ACCURACY = {"text": "accuracy", "standoff": 6}


def missing_for_partition(table: pd.DataFrame, keep: str = "top") -> str:
    """Why the partitions cannot be drawn; empty if they can."""
    if not len(table):
        return "partition_accuracy was not measured"
    return "" if keep in set(table["keep"]) else f"no {keep} neurons were kept"


def partition_figure(table: pd.DataFrame, found: HiddenProgress, keep: str) -> go.Figure:
    """Accuracy over the share of neurons that is kept, a line a score, the random band behind.

    Dotted lines are the network by frequency that is its counterpart: G of the top, R of the
    bottom.

    Args:
        table: What `timelines.hidden_tables.partition_table` gave.
        found: The events of the run, for the networks by frequency.
        keep: `"top"` or `"bottom"`.

    Raises:
        ConfigError: If nothing of the kind was measured.
    """
    check_drawable(missing_for_partition(table, keep))
    rows = [row for row in table.to_dict("records") if row["keep"] == keep]
    words, network, which = KEPT[keep]
    shares = sorted({float(row["share"]) for row in rows})
    scores = list(dict.fromkeys(row["score"] for row in rows))
    order = sorted(scores, key=lambda score: score != "random")  # the control lies behind
    parts = []
    for group in _GROUPS:
        own = [row for row in rows if row["group"] == group and np.isfinite(row["accuracy"])]
        if not own:
            continue
        traces = []
        for index, score in enumerate(order):
            line = sorted((r for r in own if r["score"] == score), key=lambda row: row["share"])
            style = score_style(score) if score in SCORE_NAMES else cell_style(index)
            traces += _line(line, score, style, group, first=not parts)
        for acting in ("trained", "quadratic"):
            value = found.final(network, group, acting)
            if np.isfinite(value):
                traces.append(_filter(shares, value, network, acting, group, first=not parts))
        parts.append(
            Part(GROUP_NAMES[group], traces, {**RATE_AXIS, "title": _ACCURACY}, height=130.0)
        )
    check_drawable("" if parts else "no group has an accuracy")
    return stacked(
        parts,
        title=words,
        reading=f"of all neurons, the share kept is {which}; the others are set to zero; band: "
        f"range of the random draws; thin lines: network {network} by frequency",
        x={
            "range": [0, 1.03],
            "tickvals": [0, 0.25, 0.5, 0.75, 1],
            "title": {"text": "share of the neurons kept", "standoff": 6},
        },
    )


def _line(
    rows: Sequence[dict[Any, Any]], score: str, style: Style, group: str, *, first: bool
) -> list[dict[str, Any]]:
    if not rows:
        return []
    x = [float(row["share"]) for row in rows]
    ends = [[float(row[end]) for row in rows] for end in ("low", "high")]
    bounded = bool(np.isfinite(ends).all())
    name = SCORE_NAMES.get(score, plain(score))
    common = {"legendgroup": score, "name": name}
    band = {
        **common,
        "type": "scatter",
        "x": [*x, *reversed(x)],
        "y": [*ends[1], *reversed(ends[0])],
        "mode": "lines",
        "fill": "toself",
        "fillcolor": style.band(),
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    spread = "<br>draws from %{customdata[0]:.3f} to %{customdata[1]:.3f}" if bounded else ""
    line = {
        **common,
        "type": "scatter",
        "x": x,
        "y": [float(row["accuracy"]) for row in rows],
        "mode": "lines+markers",
        "line": {"color": style.colour, "width": 2, "dash": style.dash},
        "marker": {"symbol": style.symbol, "size": 7, "color": style.colour},
        "showlegend": first,
        "customdata": np.array(ends).T.tolist(),
        "hovertemplate": f"<b>{name}</b> · share %{{x:g}}<br>{GROUP_NAMES[group].lower()}: "
        f"accuracy %{{y:.3f}}{spread}<extra></extra>",
    }
    return [band, line] if bounded else [line]


def _filter(
    shares: Sequence[float], value: float, network: str, acting: str, group: str, *, first: bool
) -> dict[str, Any]:
    style = network_style(network, acting)
    name = f"network {line_name(network, acting)}"
    return {
        "type": "scatter",
        "x": [0, *shares, 1.03],
        "y": [value] * (len(shares) + 2),
        "mode": "lines",
        "line": {"color": style.colour, "width": 1.6, "dash": style.dash},
        "name": name,
        "legendgroup": name,
        "showlegend": first,
        "hovertemplate": f"<b>{name}</b> by frequency<br>{GROUP_NAMES[group].lower()}: accuracy "
        "%{y:.3f}<extra></extra>",
    }


def unembedding_figure(table: pd.DataFrame) -> go.Figure:
    """Accuracy when k frequencies of the unembedding are kept, a line for each end and group.

    Args:
        table: What `timelines.hidden_tables.unembedding_table` gave.

    Raises:
        ConfigError: If it was not measured.
    """
    check_drawable(missing_for_unembedding(table))
    rows = [row for row in table.to_dict("records") if np.isfinite(row["accuracy"])]
    parts = []
    for group in _GROUPS:
        traces = []
        for index, keep in enumerate(dict.fromkeys(row["keep"] for row in rows)):
            own = [row for row in rows if (row["keep"], row["group"]) == (keep, group)]
            if own:
                traces.append(_kept(own, str(keep), cell_style(index), group, first=not parts))
        if traces:
            y = {**RATE_AXIS, "title": _ACCURACY}
            parts.append(Part(GROUP_NAMES[group], traces, y, height=130.0))
    check_drawable("" if parts else "no group has an accuracy")
    return stacked(
        parts,
        title="Frequencies of the unembedding kept",
        reading="the other frequencies of the unembedding along its answers are set to zero",
        x={"title": {"text": "frequencies kept (k)", "standoff": 6}},
    )


def missing_for_unembedding(table: pd.DataFrame) -> str:
    """Why the filtered unembedding cannot be drawn; empty if it can."""
    return "" if len(table) else "unembedding_accuracy was not measured"


def _kept(
    rows: Sequence[dict[Any, Any]], keep: str, style: Style, group: str, *, first: bool
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": [row["k"] for row in rows],
        "y": [float(row["accuracy"]) for row in rows],
        "mode": "lines+markers",
        "line": {"color": style.colour, "width": 2, "dash": style.dash},
        "marker": {"symbol": style.symbol, "size": 7, "color": style.colour},
        "name": plain(keep),
        "legendgroup": keep,
        "showlegend": first,
        "hovertemplate": f"<b>{plain(keep)}</b> · k = %{{x}}<br>{GROUP_NAMES[group].lower()}: "
        "accuracy %{y:.3f}<extra></extra>",
    }
