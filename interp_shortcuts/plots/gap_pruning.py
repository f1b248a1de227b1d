"""What is left when heroes, bloats or random components are taken away, the largest gap first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import Style, cell_style, role_style
from interp_shortcuts.plots.sweep_frame import AXIS, RATE_AXIS, check_drawable, framed

_ROLE = {"heroes": "hero", "bloats": "bloat", "random": "random"}


def missing_for_pruning(table: pd.DataFrame) -> str:
    """Why pruning cannot be drawn; empty if it can."""
    return "" if len(table) else "pruning was not measured"


def pruning_figure(table: pd.DataFrame, split: str) -> go.Figure:
    """Exact match over the number of components that are mean-ablated at once, a line a kind.

    Args:
        table: Of one run as `timelines.gap_tables.pruning_table` gives it, or of many as
            `GapOverSeeds.pruning` does; then points are means over the seeds with that many.
        split: Which of its splits.

    Raises:
        ConfigError: If nothing was measured on that split.
    """
    check_drawable(missing_for_pruning(table))
    own = [row for row in table.to_dict("records") if row["split"] == split]
    check_drawable("" if own else f"pruning was not measured on {split!r}")
    over_seeds = "mean" in table
    kinds = dict.fromkeys(str(row["pruned_kind"]) for row in own)
    traces = []
    for index, kind in enumerate(kinds):
        rows = sorted((r for r in own if r["pruned_kind"] == kind), key=lambda row: row["k"])
        style = role_style(_ROLE[kind]) if kind in _ROLE else cell_style(index)
        traces.append(_line(rows, kind, style, over_seeds=over_seeds))
    what = (
        "means over the seeds with as many, 95% t intervals"
        if over_seeds
        else "95% intervals over examples"
    )
    most = max(int(row["k"]) for row in own)
    return framed(
        traces,
        title=f"Pruned, {plain(split).replace('_', ' ')}",
        reading=f"exact match with the k largest of a kind mean-ablated at once; {what}",
        height=260.0,
        x={
            **AXIS,
            "range": [-0.3, most + 0.3],
            "dtick": 1 if most <= 12 else 5,
            "title": {"text": "components taken away (k)", "standoff": 6},
        },
        y={**RATE_AXIS, "title": {"text": "exact match", "standoff": 6}},
        left=58,
    )


def _line(
    rows: list[dict[Any, Any]], kind: str, style: Style, *, over_seeds: bool
) -> dict[str, Any]:
    values = np.array([row["mean" if over_seeds else "exact_match"] for row in rows], dtype=float)
    low, high = (np.array([row[end] for row in rows], dtype=float) for end in ("low", "high"))
    unit = "seeds" if over_seeds else "examples"
    return {
        "type": "scatter",
        "x": [int(row["k"]) for row in rows],
        "y": values,
        "mode": "lines+markers",
        "line": {"color": style.colour, "width": 2, "dash": style.dash},
        "marker": {"symbol": style.symbol, "size": 8, "color": style.colour},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": np.nan_to_num(high - values),
            "arrayminus": np.nan_to_num(values - low),
            "thickness": 1.3,
            "width": 4,
            "color": style.colour,
        },
        "name": plain(kind),
        "showlegend": True,
        "customdata": [[_ends(row), _count(row["n"], unit)] for row in rows],
        "hovertemplate": f"<b>{plain(kind)}</b> · k = %{{x}}<br>exact match %{{y:.3f}}"
        "%{customdata[0]}<br>%{customdata[1]}<extra></extra>",
    }


def _ends(row: dict[Any, Any]) -> str:
    if not np.isfinite(row["low"]):
        return ", no interval"
    return f", 95% interval {row['low']:.3f} to {row['high']:.3f}"


def _count(n: Any, unit: str) -> str:
    return "n not recorded" if n is None or pd.isna(n) else f"n = {int(n)} {unit}"
