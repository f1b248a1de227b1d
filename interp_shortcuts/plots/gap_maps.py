"""Where in the network: ranks by attribution and by importance and their gap, layer by head."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import plotly.graph_objects as go

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.sites import Component
from interp_shortcuts.plots.gap_scatter import missing_for_gap
from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import GAP_SCALE, INK, RANK_SCALE, UNDEFINED
from interp_shortcuts.plots.sweep_frame import AXIS, check_drawable, framed
from interp_shortcuts.timelines.attribution_gap import AttributionGap

MapOf = Literal["attribution", "importance", "gap"]
_ROW = 34.0


def gap_map_figure(gap: AttributionGap, what: MapOf | str) -> go.Figure:
    """One cell a component at the last step; the MLPs are the last column.

    Args:
        gap: What `timelines.find_gap` gave.
        what: `"attribution"` or `"importance"` for ranks, `"gap"` for their difference.

    Raises:
        ConfigError: If there is no order to compare, or `what` is unknown.
    """
    if what not in get_args(MapOf):
        raise ConfigError(f"`what` must be 'attribution', 'importance' or 'gap'; got {what!r}.")
    check_drawable(missing_for_gap(gap))
    parts = [Component.parse(name) for name in gap.components]
    n_heads = 1 + max((part.head for part in parts if part.head is not None), default=-1)
    mlps = any(part.kind == "mlp" for part in parts)
    layers = sorted({part.layer for part in parts})
    columns = [*(f"H{head}" for head in range(n_heads)), *(["MLP"] if mlps else [])]
    final, n = gap.gaps[-1], len(parts)
    ranks = {
        "attribution": final.attribution_rank,
        "importance": final.importance_rank,
        "gap": final.delta,
    }
    table = np.full((len(layers), len(columns)), np.nan)
    about = np.full((*table.shape, 6), "", dtype=object)
    for index, part in enumerate(parts):
        place = layers.index(part.layer), part.head if part.head is not None else n_heads
        table[place] = ranks[what][index]
        about[place] = _about(gap, index)
    title, reading = _words(gap, what)
    reach = {"zmin": -n + 1, "zmax": n - 1} if what == "gap" else {"zmin": 1, "zmax": n}
    trace = {
        "type": "heatmap",
        "x": columns,
        "y": [f"L{layer}" for layer in layers],
        "z": table,
        **reach,
        "colorscale": [list(stop) for stop in (GAP_SCALE if what == "gap" else RANK_SCALE)],
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "text": [[_number(value, what) for value in row] for row in table.tolist()],
        "texttemplate": "%{text}",
        "textfont": {"size": 12, "color": INK},
        "customdata": about,
        "hoverongaps": False,
        "hovertemplate": "<b>%{customdata[0]}</b> · %{customdata[1]}<br>"
        f"{plain(gap.method.name)} %{{customdata[2]}}<br>"
        f"{plain(gap.reference.name)} %{{customdata[3]}}<br>"
        f"gap %{{customdata[4]}} of n = {n} components<extra></extra>",
        "name": what,
        "showlegend": False,
    }
    axis = {**AXIS, "showgrid": False, "ticks": ""}
    return framed(
        [trace],
        title=title,
        reading=reading,
        height=_ROW * len(layers),
        x={**axis, "side": "bottom"},
        y={**axis, "autorange": "reversed"},
        left=34,
        bottom=26,
        plot_bgcolor=UNDEFINED if np.isnan(table).any() else "white",
    )


def _about(gap: AttributionGap, index: int) -> list[Any]:
    final = gap.gaps[-1]
    values = (gap.attribution[-1, index], gap.importance[-1, index])
    ranks = (final.attribution_rank[index], final.importance_rank[index])
    texts = [f"{v:.3g}, rank {r:g}" for v, r in zip(values, ranks, strict=True)]
    name = gap.components[index]
    return [plain(name), gap.final_roles[name], *texts, _number(final.delta[index], "gap"), ""]


def _words(gap: AttributionGap, what: str) -> tuple[str, str]:
    if what == "gap":
        return (
            "Gap between the two ranks",
            f"at most −{gap.threshold:g}: hidden hero (blue); at least {gap.threshold:g}: gradient "
            "bloat (orange)",
        )
    name = gap.method.name if what == "attribution" else gap.reference.name
    return f"Rank by {plain(name)}", f"1: least, {len(gap.components)}: most (dark)"


def _number(value: float, what: str) -> str:
    if not np.isfinite(value):
        return ""
    return f"{value:+g}".replace("-", "−") if what == "gap" and value else f"{value:g}"
