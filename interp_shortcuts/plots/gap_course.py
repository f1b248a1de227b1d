"""How the gap comes about over training: rho over steps, and the gaps of heroes and bloats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import INK, MUTED, RULE, Style, cell_style, role_style
from interp_shortcuts.plots.step_axis import StepAxis, StepScale
from interp_shortcuts.plots.step_drawing import checked_scale
from interp_shortcuts.plots.sweep_frame import AXIS, check_drawable, framed
from interp_shortcuts.timelines.attribution_gap import AttributionGap
from interp_shortcuts.timelines.gap_over_seeds import GapOverSeeds

_RHO_AXIS = {**AXIS, "range": [-1.05, 1.05], "tickvals": [-1, -0.5, 0, 0.5, 1]}
_HEIGHT = 430.0


def missing_for_course(gap: AttributionGap) -> str:
    """Why a run's course cannot be drawn; empty if it can."""
    if gap.reason:
        return gap.reason
    return "" if np.isfinite(gap.rho).any() else gap.why_no_rho()


def gap_course_figure(
    gap: AttributionGap,
    *,
    beside: AttributionGap | None = None,
    step_scale: StepScale | str = "linear",
) -> go.Figure:
    """Above: rho at each step. Below: the gap of each component, heroes and bloats in colour.

    A vertical line marks the step at which heroes and bloats first stand apart for good.

    Args:
        gap: What `timelines.find_gap` gave.
        beside: Another one, whose rho is drawn beside it, such as that against the rise of the
            loss, which has an order before the model answers anything.
        step_scale: `"linear"` or `"log"`.

    Raises:
        ConfigError: If rho is defined at no step, or the scale is unknown.
    """
    check_drawable(missing_for_course(gap))
    scale = checked_scale(step_scale)
    more = beside if beside is not None and np.isfinite(beside.rho).any() else None
    axis = StepAxis(tuple(sorted({*gap.steps, *(more.steps if more is not None else ())})))
    traces: list[dict[str, Any]] = [_rho_line(gap, axis, scale)]
    if more is not None:
        traces[0]["showlegend"] = True
        look = {"line": {"color": MUTED, "width": 1.8, "dash": "dot"}, "showlegend": True}
        name = f"rho against {plain(more.reference.name)}"
        marker = {"color": MUTED, "size": 5, "symbol": "diamond"}
        traces.append({**_rho_line(more, axis, scale, name), **look, "marker": marker})
    order = {"aligned": 0, "undefined": 0, "bloat": 1, "hero": 2}
    for index in sorted(
        range(len(gap.components)), key=lambda i: order[gap.final_roles[gap.components[i]]]
    ):
        traces.append(_gap_line(gap, index, axis, scale))
    shapes = [_level(value) for value in (-gap.threshold, gap.threshold)]
    note = ""
    if (step := gap.separation.step) is not None:
        (x,) = axis.positions([step], scale)
        shapes.append(_upright(x))
        note = f"; dotted upright: heroes and bloats stand apart for good from step {step:,}"
    reach = max(len(gap.components) - 1, 1)
    return framed(
        traces,
        title="Over training",
        reading="above: Spearman's rho of attribution and importance; below: rank by attribution "
        f"minus rank by importance, a line a component, coloured by its role at the end{note}",
        height=_HEIGHT,
        x={
            **AXIS,
            **axis.layout(scale),
            "anchor": "y2",
            "title": {"text": "training step", "standoff": 6},
        },
        y={**_RHO_AXIS, "domain": [0.7, 1.0], "title": {"text": "rho", "standoff": 6}},
        left=58,
        yaxis2={
            **AXIS,
            "domain": [0.0, 0.63],
            "anchor": "x",
            "range": [-reach - 1, reach + 1],
            "title": {"text": "gap (ranks)", "standoff": 6},
        },
        shapes=[*shapes, _zero("y"), _zero("y2")],
    )


def rho_course_figure(found: GapOverSeeds, *, step_scale: StepScale | str = "linear") -> go.Figure:
    """rho over steps: a line a run, and the median over the runs that were measured there.

    Args:
        found: What `timelines.gaps_over_seeds` gave.
        step_scale: `"linear"` or `"log"`.

    Raises:
        ConfigError: If rho is defined nowhere, or the scale is unknown.
    """
    check_drawable(missing_for_rho_course(found))
    scale = checked_scale(step_scale)
    course = [row for row in found.course.to_dict("records") if row["n"]]
    axis = StepAxis(tuple(int(step) for step in found.course["step"].tolist()))
    traces = []
    for index, (name, gap) in enumerate(found.gaps.items()):
        if np.isfinite(gap.rho).any():
            traces.append(_seed_line(name, gap, index, axis, scale))
    steps = [int(row["step"]) for row in course]
    traces.append(
        {
            "type": "scatter",
            "x": axis.positions(steps, scale),
            "y": [row["median"] for row in course],
            "mode": "lines+markers",
            "line": {"color": INK, "width": 3},
            "marker": {"color": INK, "size": 7},
            "name": "median over seeds",
            "showlegend": True,
            "customdata": [
                [row[name] for name in ("step", "low", "high", "n", "n_undefined")]
                for row in course
            ],
            "hovertemplate": "<b>median</b> · step %{customdata[0]:,d}<br>rho %{y:.3f}, quartiles "
            "%{customdata[1]:.3f} to %{customdata[2]:.3f}<br>n = %{customdata[3]:d} seeds, "
            "%{customdata[4]:d} undefined<extra></extra>",
        }
    )
    return framed(
        traces,
        title="rho of every seed over training",
        reading="Spearman's rho over components; thin: a seed, up to where it stopped; thick: "
        "median over the seeds measured at a step",
        height=300.0,
        x={**AXIS, **axis.layout(scale), "title": {"text": "training step", "standoff": 6}},
        y={**_RHO_AXIS, "title": {"text": "rho", "standoff": 6}},
        left=58,
        shapes=[_zero("y")],
    )


def missing_for_rho_course(found: GapOverSeeds) -> str:
    """Why rho over steps cannot be drawn; empty if it can."""
    return "" if any(found.course["n"].tolist()) else "rho is defined at no step of any seed"


def _rho_line(
    gap: AttributionGap, axis: StepAxis, scale: StepScale, name: str = "rho"
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": axis.positions(gap.steps, scale),
        "y": gap.rho,
        "mode": "lines+markers",
        "line": {"color": INK, "width": 2.2},
        "marker": {"color": INK, "size": 6},
        "name": name,
        "showlegend": False,
        "customdata": list(gap.steps),
        "hovertemplate": f"step %{{customdata:,d}}<br>{name} %{{y:.3f}}, "
        f"n = {len(gap.components)} components<extra></extra>",
    }


def _gap_line(gap: AttributionGap, index: int, axis: StepAxis, scale: StepScale) -> dict[str, Any]:
    name = gap.components[index]
    role = gap.final_roles[name]
    style = role_style(role) if role in ("hero", "bloat") else Style("#D5DAE0")
    plain_line = role not in ("hero", "bloat")
    since = f"<br>{role} for good from step {gap.settled[name]:,}" if name in gap.settled else ""
    return {
        "type": "scatter",
        "x": axis.positions(gap.steps, scale),
        "y": gap.delta[:, index],
        "yaxis": "y2",
        "mode": "lines" if plain_line else "lines+markers",
        "line": {
            "color": style.colour,
            "width": 1 if plain_line else 2,
            "dash": "solid" if plain_line else style.dash,
        },
        "marker": {"symbol": style.symbol, "size": 7, "color": style.colour},
        "name": f"{plain(name)}, {role}",
        "showlegend": not plain_line,
        "customdata": _details(gap, index),
        "hovertemplate": f"<b>{plain(name)}</b> · {role} at the end · step %{{customdata[0]:,d}}"
        f"<br>gap %{{y:+g}}: {plain(gap.method.name)} %{{customdata[1]:.3~g}}, "
        f"{plain(gap.reference.name)} %{{customdata[2]:.3~g}}{since}<extra></extra>",
    }


def _details(gap: AttributionGap, index: int) -> np.ndarray:
    columns: Sequence[Any] = (gap.steps, gap.attribution[:, index], gap.importance[:, index])
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)


def _seed_line(
    name: str, gap: AttributionGap, index: int, axis: StepAxis, scale: StepScale
) -> dict[str, Any]:
    style = cell_style(index)
    return {
        "type": "scatter",
        "x": axis.positions(gap.steps, scale),
        "y": gap.rho,
        "mode": "lines",
        "line": {"color": style.colour, "width": 1.3, "dash": style.dash},
        "opacity": 0.75,
        "name": plain(name),
        "showlegend": True,
        "customdata": list(gap.steps),
        "hovertemplate": f"<b>{plain(name)}</b> · step %{{customdata:,d}}<br>rho %{{y:.3f}}, "
        f"n = {len(gap.components)} components<extra></extra>",
    }


def _level(value: float) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "yref": "y2",
        "y0": value,
        "y1": value,
        "line": {"color": MUTED, "width": 1, "dash": "dot"},
    }


def _zero(axis: str) -> dict[str, Any]:
    return {
        **_level(0.0),
        "yref": axis,
        "layer": "below",
        "line": {"color": RULE, "width": 2},
    }


def _upright(x: Any) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "x",
        "x0": x,
        "x1": x,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"color": INK, "width": 1.2, "dash": "dot"},
    }
