"""Are heroes and bloats the same over seeds? How often each component or layer has a role."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from interp_shortcuts.measures.attribution.stability import RoleStability
from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import INK, MUTED, role_style
from interp_shortcuts.plots.sweep_frame import AXIS, check_drawable, framed

_ROW = 19.0
_SIGN = {"hero": -1, "bloat": 1}


def missing_for_roles(found: RoleStability | None) -> str:
    """Why roles over seeds cannot be drawn; empty if they can."""
    return "" if found is not None and found.n_seeds else "no seed has ranks to compare"


def identity_roles_figure(found: RoleStability) -> go.Figure:
    """In how many seeds each component is a hero (to the left) or a bloat (to the right).

    Args:
        found: What `measures.attribution.stability.role_stability` gave.

    Raises:
        ConfigError: If no seed counts.
    """
    check_drawable(missing_for_roles(found))
    return _figure(
        found,
        found.identities,
        labels=found.identities["component"].tolist(),
        count="seeds",
        title=f"Roles by identity, over {found.n_seeds} seeds",
        axis="seeds in which it is a hero (left) or a bloat (right)",
    )


def layer_roles_figure(found: RoleStability) -> go.Figure:
    """How many heroes (to the left) and bloats (to the right) each layer has over all seeds.

    Args:
        found: What `measures.attribution.stability.role_stability` gave.

    Raises:
        ConfigError: If no seed counts.
    """
    check_drawable(missing_for_roles(found))
    return _figure(
        found,
        found.layers,
        labels=[f"L{layer}" for layer in found.layers["layer"]],
        count="count",
        title=f"Roles by layer, over {found.n_seeds} seeds",
        axis="heroes (left) and bloats (right) over all seeds",
    )


def _figure(
    found: RoleStability,
    table: pd.DataFrame,
    *,
    labels: list[str],
    count: str,
    title: str,
    axis: str,
) -> go.Figure:
    rows = [
        {**row, "label": plain(label)}
        for row, label in zip(table.to_dict("records"), labels, strict=True)
    ]
    most = max(1.0, *(max(float(row[count]), float(row["expected"])) for row in rows))
    places = list(dict.fromkeys(row["label"] for row in rows))
    ticks = _ticks(most)
    return framed(
        [
            *(_bars(rows, side, count) for side in _SIGN),
            _expected(rows, count),
        ],
        title=title,
        reading=f"gap of at least {found.threshold:g} ranks at the end; tick: mean over "
        f"{found.n_permutations:,} shuffles of the importance ranks; hover: p",
        height=_ROW * len(places) + 8,
        x={
            **AXIS,
            "range": [-1.08 * most, 1.08 * most],
            "tickvals": [*(-tick for tick in reversed(ticks)), 0, *ticks],
            "ticktext": [*(str(tick) for tick in reversed(ticks)), "0", *map(str, ticks)],
            "zeroline": True,
            "zerolinecolor": MUTED,
            "zerolinewidth": 1,
            "title": {"text": axis, "standoff": 6},
        },
        y={
            **AXIS,
            "showgrid": False,
            "ticks": "",
            "range": [len(places) - 0.5, -0.5],
            "tickvals": list(range(len(places))),
            "ticktext": places,
        },
        left=58,
        bottom=54,
        barmode="overlay",
        bargap=0.25,
    )


def _bars(rows: list[dict[Any, Any]], side: str, count: str) -> dict[str, Any]:
    own = [row for row in rows if row["side"] == side]
    return {
        "type": "bar",
        "orientation": "h",
        "x": [_SIGN[side] * int(row[count]) for row in own],
        "y": list(range(len(own))),
        "marker": {"color": role_style(side).colour},
        "name": {"hero": "hidden hero", "bloat": "gradient bloat"}[side],
        "showlegend": True,
        "customdata": [
            [row["label"], int(row[count]), int(row["of"]), row["expected"], row["p"], row["p_any"]]
            for row in own
        ],
        "hovertemplate": f"<b>%{{customdata[0]}}</b> · {side} in %{{customdata[1]}} of n = "
        "%{customdata[2]}<br>shuffled ranks: %{customdata[3]:.2f} on average<br>p for this one "
        "%{customdata[4]:.4f}<br>p that any has as many %{customdata[5]:.4f}<extra></extra>",
    }


def _expected(rows: list[dict[Any, Any]], count: str) -> dict[str, Any]:
    index = {label: place for place, label in enumerate(dict.fromkeys(r["label"] for r in rows))}
    return {
        "type": "scatter",
        "x": [_SIGN[row["side"]] * float(row["expected"]) for row in rows],
        "y": [index[row["label"]] for row in rows],
        "mode": "markers",
        "marker": {
            "symbol": "line-ns-open",
            "size": 11,
            "color": INK,
            "line": {"width": 2, "color": INK},
        },
        "name": "shuffled ranks, mean",
        "showlegend": True,
        "hoverinfo": "skip",
        "meta": count,
    }


def _ticks(most: float) -> list[int]:
    step = next(size for size in (1, 2, 5, 10, 20, 50, 100, 1000) if most / size <= 5)
    return list(range(step, int(most) + 1, step))
