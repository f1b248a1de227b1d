"""Where in the residual stream the answer lies: transfers by site and position, before and after.

The evaluation *before* is the last one measured up to the onset of phase 2, the one *after* is the
last; values are only selected.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.page_style import NOTE_ROW, base_layout, heading, title, wrap
from interp_shortcuts.plots.palette import INK, MUTED, RULE_SCALE, SHORTCUT_SCALE, UNDEFINED
from interp_shortcuts.plots.panel_lines import measured, why_missing
from interp_shortcuts.timelines.component_curves import DIRECTION
from interp_shortcuts.timelines.layout import measured_part
from interp_shortcuts.timelines.phases import Phases
from interp_shortcuts.timelines.timeline import Timeline

_MARGIN = {"l": 92, "r": 12, "t": 8, "b": 8, "pad": 0}
_TITLE, _MOMENT, _LABEL, _ROW, _TICKS, _BETWEEN = 46.0, 22.0, 20.0, 26.0, 44.0, 0.05
_PARTS = (
    ("residual_rule_transfer", "rule transfer", RULE_SCALE),
    ("residual_shortcut_transfer", "shortcut transfer", SHORTCUT_SCALE),
)
_MOST_POSITIONS = 8
"""With more positions, numbers no longer fit into the cells of a page 400 pixels wide."""


def missing_for_residual_map(data: xr.Dataset) -> str:
    """Why there can be no map; empty if there can."""
    for name, _, _ in _PARTS:
        reason = why_missing(data, name, "CrossSplitPatching")
        if reason:
            return reason
        if DIRECTION not in measured(data[name], "direction"):
            return f"the direction {DIRECTION!r} was not measured"
    return ""


def residual_map_figure(timeline: Timeline, *, phases: Phases | None = None) -> go.Figure:
    """Rule and shortcut transfer when the residual stream is patched at one site and position.

    Args:
        timeline: What was measured.
        phases: The onset of phase 2; None asks the timeline for it with its default rules.

    Returns:
        A figure as wide as its container; without the measure, only a note with the reason.
    """
    data = timeline.data
    phases = timeline.phases() if phases is None else phases
    reason = missing_for_residual_map(data)
    if reason:
        lines = wrap(f"Left out: residual stream: {reason}.")
        texts = [
            heading(line, 1 - row / len(lines), size=11, colour=MUTED, shift=4.0 - _MARGIN["l"])
            for row, line in enumerate(lines)
        ]
        layout = base_layout(max(NOTE_ROW * len(lines), 40.0), _MARGIN)
        hidden = {"visible": False}
        return go.Figure(layout={**layout, "annotations": texts, "xaxis": hidden, "yaxis": hidden})
    array = measured_part(data[_PARTS[0][0]])
    sites = [plain(site) for site in array["site"].values]
    places = [str(place) for place in array["position"].values[:-1]] + ["="]
    moments = _moments([int(step) for step in array["step"].values], phases)
    block = _MOMENT + _LABEL + _ROW * len(sites) + _TICKS
    height = _TITLE + block * len(moments)
    layout: dict[str, Any] = {}
    words = "Residual stream, one site and position patched"
    reading = "darker: the prediction follows the patch; across: position"
    annotations = [
        heading(title(words, reading), 1.0, size=13, colour=INK, shift=4.0 - _MARGIN["l"])
    ]
    traces, number = [], 0
    width = (1 - _BETWEEN) / 2
    for row, (moment, step) in enumerate(moments):
        begin = _TITLE + block * row
        text, shift = f"<b>{moment}</b>, step {step:,}", 4.0 - _MARGIN["l"]
        annotations.append(heading(text, 1 - begin / height, size=12, colour=INK, shift=shift))
        top = begin + _MOMENT
        for column, (name, what, scale) in enumerate(_PARTS):
            number += 1
            suffix = "" if number == 1 else str(number)
            left = column * (width + _BETWEEN)
            annotations.append(heading(what, 1 - top / height, size=12, colour=MUTED, x=left))
            bottom = top + _LABEL + _ROW * len(sites)
            layout[f"xaxis{suffix}"] = {
                **_axis(places, f"y{suffix}"),
                "domain": [left, left + width],
            }
            layout[f"yaxis{suffix}"] = {
                **_axis(sites, f"x{suffix}"),
                "domain": [1 - bottom / height, 1 - (top + _LABEL) / height],
                "showticklabels": column == 0,
            }
            traces.append(_trace(data, name, what, scale, step, sites, places, suffix))
    layout = {**layout, **base_layout(height, _MARGIN), "annotations": annotations}
    return go.Figure(traces, {**layout, "plot_bgcolor": UNDEFINED, "dragmode": False})


def _moments(steps: list[int], phases: Phases) -> list[tuple[str, int]]:
    """The evaluations that are shown; the first only if there is an onset."""
    before = [step for step in steps if phases.onset is not None and step <= phases.onset]
    found = [("phase 1", before[-1])] if before else []
    return [*found, ("at the end", steps[-1])]


def _axis(labels: list[str], anchor: str) -> dict[str, Any]:
    return {
        "anchor": anchor,
        "fixedrange": True,
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "tickmode": "array",
        "tickvals": list(range(len(labels))),
        "ticktext": labels,
        "tickfont": {"size": 11},
        "range": [len(labels) - 0.5, -0.5] if anchor.startswith("x") else [-0.5, len(labels) - 0.5],
    }


def _trace(
    data: xr.Dataset,
    name: str,
    what: str,
    scale: tuple[tuple[float, str], ...],
    step: int,
    sites: list[str],
    places: list[str],
    suffix: str,
) -> dict[str, Any]:
    values = measured_part(data[name]).sel(step=step, direction=DIRECTION)
    shown = values.transpose("site", "position").values.astype(np.float32)
    hovers = [[f"<b>{site}</b> · position {place}" for place in places] for site in sites]
    few = {"texttemplate": "%{z:.2f}", "textfont": {"size": 10}}
    return {
        "type": "heatmap",
        "z": shown,
        "zmin": 0,
        "zmax": 1,
        "colorscale": [list(stop) for stop in scale],
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
        "hovertext": hovers,
        "hoverongaps": False,
        "hovertemplate": f"%{{hovertext}}<br>{what} %{{z:.4~g}}, step {step:,}<extra></extra>",
        "name": f"{what}, step {step}",
        "xaxis": f"x{suffix}",
        "yaxis": f"y{suffix}",
        **(few if len(places) <= _MOST_POSITIONS else {}),
    }
