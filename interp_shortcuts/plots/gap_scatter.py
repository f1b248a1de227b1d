"""Attribution against causal importance, rank by rank: who lies far off the diagonal."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import INK, MUTED, role_style
from interp_shortcuts.plots.sweep_frame import AXIS, check_drawable, framed
from interp_shortcuts.timelines.attribution_gap import AttributionGap

MANY = 30
"""With more components than this, only heroes and bloats are named on the picture."""
_ROLE_NAMES = {"hero": "hidden hero", "aligned": "aligned", "bloat": "gradient bloat"}


def missing_for_gap(gap: AttributionGap) -> str:
    """Why the ranks of a run cannot be drawn; empty if they can."""
    return gap.why_no_rho()


def rank_scatter_figure(gap: AttributionGap) -> go.Figure:
    """One mark a component at the last step: its rank by importance, and by attribution.

    Dotted lines lie the threshold above and below the diagonal.

    Args:
        gap: What `timelines.find_gap` gave.

    Raises:
        ConfigError: If there is no order to compare.
    """
    check_drawable(missing_for_gap(gap))
    n, threshold = len(gap.components), gap.threshold
    ends = (0.2, n + 0.8)
    traces = [
        _line(ends, 0.0, "rank by attribution = rank by importance", "solid"),
        _line(ends, threshold, f"{threshold:g} ranks apart", "dot"),
        {**_line(ends, -threshold, f"{threshold:g} ranks apart", "dot"), "showlegend": False},
    ]
    traces += [_marks(gap, role) for role in _ROLE_NAMES]
    axis = {**AXIS, "range": [0, n + 1], "tickvals": _ticks(n)}
    return framed(
        traces,
        title=f"Ranks at step {gap.steps[-1]:,}",
        reading="a mark is a head or MLP; above the diagonal it has more attribution than its "
        "ablation warrants, below it less",
        height=430.0,
        x={
            **axis,
            "title": {"text": f"rank by {plain(gap.reference.name)} (1: least)", "standoff": 6},
        },
        y={
            **axis,
            "title": {"text": f"rank by {plain(gap.method.name)} (1: least)", "standoff": 6},
        },
        left=50,
    )


def _line(ends: tuple[float, float], shift: float, name: str, dash: str) -> dict[str, Any]:
    low, high = max(ends[0], ends[0] - shift), min(ends[1], ends[1] - shift)
    return {
        "type": "scatter",
        "x": [low, high],
        "y": [low + shift, high + shift],
        "mode": "lines",
        "line": {"color": MUTED, "width": 1.2, "dash": dash},
        "name": name,
        "showlegend": True,
        "hoverinfo": "skip",
    }


def _marks(gap: AttributionGap, role: str) -> dict[str, Any]:
    style = role_style(role)
    final = gap.gaps[-1]
    own = [i for i, name in enumerate(gap.components) if gap.final_roles[name] == role]
    named = role != "aligned" or len(gap.components) <= MANY
    names = [plain(gap.components[i]) for i in own]
    x = [float(final.importance_rank[i]) for i in own]
    right = len(gap.components) * 0.8
    return {
        "type": "scatter",
        "x": x,
        "y": [float(final.attribution_rank[i]) for i in own],
        "mode": "markers+text" if named else "markers",
        "text": names,
        "textposition": ["middle left" if place > right else "middle right" for place in x],
        "textfont": {"size": 10, "color": style.colour if role != "aligned" else INK},
        "marker": {"symbol": style.symbol, "size": 9, "color": style.colour},
        "cliponaxis": False,
        "name": f"{_ROLE_NAMES[role]} ({len(own)})",
        "showlegend": True,
        "customdata": [
            [
                names[place],
                float(gap.attribution[-1, i]),
                float(gap.importance[-1, i]),
                *_interval(gap, i),
                float(final.delta[i]),
            ]
            for place, i in enumerate(own)
        ],
        "hovertemplate": f"<b>%{{customdata[0]}}</b> · {_ROLE_NAMES[role]}<br>"
        f"{plain(gap.method.name)} %{{customdata[1]:.4~g}}, rank %{{y:g}}<br>"
        f"{plain(gap.reference.name)} %{{customdata[2]:.4~g}}%{{customdata[3]}}, rank %{{x:g}}<br>"
        f"gap %{{customdata[4]:+g}} of n = {len(gap.components)} components<extra></extra>",
    }


def _interval(gap: AttributionGap, index: int) -> list[str]:
    low, high = float(gap.importance_low[-1, index]), float(gap.importance_high[-1, index])
    return [f" ({low:.3g} to {high:.3g})" if low == low else ""]


def _ticks(n: int) -> list[int]:
    step = 5 if n <= 40 else 10
    return [1, *range(step, n + 1, step)]
