"""Is a set worth more than its members? The joint drop beside the sum of the single drops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import MUTED, OKABE_ITO
from interp_shortcuts.plots.sweep_frame import AXIS, check_drawable, framed

_BARS = (
    ("sum_of_drops", "sum", "sum of the single drops", "#B7C0CB"),
    ("joint_drop", "joint", "joint drop", OKABE_ITO[0]),
)
_ROW, _MANY = 54.0, 46.0


def missing_for_joint(table: pd.DataFrame) -> str:
    """Why joint ablations cannot be drawn; empty if they can."""
    if not len(table):
        return "joint ablations were not measured"
    known = [np.isfinite(table[_column(table, *bar[:2])]).any() for bar in _BARS]
    return "" if any(known) else "no set has a member in any run"


def joint_figure(table: pd.DataFrame) -> go.Figure:
    """Two bars a set: what its members cost one by one, added up, and what it costs at once.

    Args:
        table: Of one run as `timelines.gap_tables.joint_table` gives it, or of many as
            `GapOverSeeds.joint` does; then bars are means over seeds with t intervals.

    Raises:
        ConfigError: If nothing was measured.
    """
    check_drawable(missing_for_joint(table))
    over_seeds = "joint_mean" in table
    column = _column(table, *_BARS[1][:2])
    rows = [row for row in table.to_dict("records") if np.isfinite(row[column])]
    sets = [_label(row, over_seeds=over_seeds) for row in rows]
    traces = [_bar(rows, sets, *bar, over_seeds=over_seeds) for bar in _BARS]
    what = "means over seeds, 95% t intervals" if over_seeds else "95% intervals over examples"
    return framed(
        traces,
        title="What a set costs at once, and one by one",
        reading=f"drop of exact match, paired with the unablated run; {what}; in brackets: "
        "joint drop / sum",
        height=max(_MANY, _ROW * len(sets)),
        x={
            **AXIS,
            "title": {"text": "drop of exact match (fraction)", "standoff": 6},
            "zeroline": True,
            "zerolinecolor": MUTED,
            "zerolinewidth": 1,
        },
        y={**AXIS, "showgrid": False, "ticks": "", "autorange": "reversed"},
        left=118,
        barmode="group",
        bargap=0.3,
        bargroupgap=0.08,
    )


def _bar(
    rows: list[dict[Any, Any]],
    sets: list[str],
    column: str,
    prefix: str,
    words: str,
    colour: str,
    *,
    over_seeds: bool,
) -> dict[str, Any]:
    value = f"{prefix}_mean" if over_seeds else column
    values, low, high = (
        np.array([row[name] for row in rows], dtype=float)
        for name in (value, f"{prefix}_low", f"{prefix}_high")
    )
    n = [_float(row[f"{prefix}_n" if over_seeds else "n"]) for row in rows]
    unit = "seeds" if over_seeds else "examples"
    return {
        "type": "bar",
        "orientation": "h",
        "x": values,
        "y": sets,
        "marker": {"color": colour},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": np.nan_to_num(high - values),
            "arrayminus": np.nan_to_num(values - low),
            "thickness": 1.4,
            "width": 4,
            "color": "#3E4C59",
        },
        "name": words,
        "showlegend": True,
        "customdata": [
            [
                plain(row["component_set"]),
                _ends(one, two),
                f"n = {count:g} {unit}" if count == count else "",
            ]
            for row, one, two, count in zip(rows, low, high, n, strict=True)
        ],
        "hovertemplate": f"<b>%{{customdata[0]}}</b><br>{words} %{{x:.3f}}"
        "%{customdata[1]}<br>%{customdata[2]}<extra></extra>",
    }


def _column(table: pd.DataFrame, column: str, prefix: str) -> str:
    return f"{prefix}_mean" if f"{prefix}_mean" in table else column


def _label(row: dict[Any, Any], *, over_seeds: bool) -> str:
    ratio = float(row["ratio_of_means"] if over_seeds else row["super_additivity"])
    text = "undefined" if np.isnan(ratio) else "∞" if np.isinf(ratio) else f"{ratio:.1f}×"
    return f"{plain(row['component_set'])}<br>({text.replace('-', '−')})"


def _ends(low: float, high: float) -> str:
    return f", 95% interval {low:.3f} to {high:.3f}" if low == low and high == high else ""


def _float(value: Any) -> float:
    return float("nan") if value is None or pd.isna(value) else float(value)
