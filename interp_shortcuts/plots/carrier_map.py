"""Who carries what, when: maps of components over steps, of what patching each of them moves.

Rule transfer, shortcut transfer and, to read both against, disruption. Verdicts are given in
`timelines.carriers`; here values are only selected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.plots.event_marks import shades
from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.page_style import NOTE_ROW, title, wrap
from interp_shortcuts.plots.palette import (
    DISRUPTION_SCALE,
    INK,
    MUTED,
    RULE_SCALE,
    SHORTCUT_SCALE,
    UNDEFINED,
    component_styles,
)
from interp_shortcuts.plots.panel import components
from interp_shortcuts.plots.panel_lines import measured, why_missing
from interp_shortcuts.plots.step_axis import StepAxis, StepScale
from interp_shortcuts.plots.step_drawing import StepDrawing, checked_scale
from interp_shortcuts.plots.traces import StepTrace
from interp_shortcuts.timelines.component_curves import DIRECTION
from interp_shortcuts.timelines.layout import measured_part
from interp_shortcuts.timelines.phases import Phases
from interp_shortcuts.timelines.timeline import Timeline

_LEFT = 84
_TITLE, _ROW, _TICKS = 42.0, 20.0, 46.0
_PATCHING = "CrossSplitPatching"
_MAPS = (
    ("rule_transfer", "Rule transfer", "moves to the source's true label", RULE_SCALE),
    (
        "shortcut_transfer",
        "Shortcut transfer",
        "moves to the source's shortcut label",
        SHORTCUT_SCALE,
    ),
    (
        "disruption",
        "Disruption, to read both against",
        "changes though both labels are the same",
        DISRUPTION_SCALE,
    ),
)


@dataclass(frozen=True, eq=False)
class _Map:
    name: str
    title: str
    reading: str
    scale: tuple[tuple[float, str], ...]
    rows: tuple[str, ...]
    steps: tuple[int, ...]
    values: np.ndarray  # component step
    details: np.ndarray  # component step (step, low, high, n)

    @property
    def height(self) -> float:
        return _TITLE + _ROW * len(self.rows) + _TICKS


def carrier_map_figure(
    timeline: Timeline,
    *,
    phases: Phases | None = None,
    direction: str = DIRECTION,
    step_scale: StepScale | str = "linear",
) -> go.Figure:
    """What each head, MLP and set carries over training: one row each, darker for more.

    Args:
        timeline: What was measured.
        phases: Events to mark; None asks the timeline for them with its default rules.
        direction: Direction of the patching, target<-source.
        step_scale: The step axis at first sight; a switch changes it.

    Returns:
        A figure as wide as its container. Maps that cannot be drawn are named below the others,
        each with the reason.

    Raises:
        ConfigError: If the timeline has no step, or the scale is unknown.
    """
    data = timeline.data
    if "step" not in data.dims or data.sizes["step"] == 0:
        raise ConfigError("A carrier map needs at least one step; this timeline has none.")
    scale = checked_scale(step_scale)
    phases = timeline.phases() if phases is None else phases
    axis = StepAxis(tuple(int(step) for step in data["step"].values))
    maps, notes = [], []
    for name, heading, reading, colours in _MAPS:
        reason = why_missing(data, name, _PATCHING)
        if reason is None and direction not in measured(data[name], "direction"):
            reason = f"the direction {plain(direction)!r} was not measured"
        if reason is None:
            maps.append(_map(data, name, heading, reading, colours, direction))
        else:
            notes += wrap(f"Left out: {heading}: {reason}.")
    return _Drawing(axis, phases, scale, left=_LEFT).figure(data, maps, notes)


def _map(
    data: xr.Dataset,
    name: str,
    heading: str,
    reading: str,
    colours: tuple[tuple[float, str], ...],
    direction: str,
) -> _Map:
    part = measured_part(data[name]).sel(direction=direction).transpose("component", "step")
    steps = tuple(int(step) for step in part["step"].values)
    details = np.full((*part.shape, 4), np.nan)
    details[..., 0] = steps
    for column, bound in ((1, "low"), (2, "high")):
        if f"{name}_interval" in data:
            interval = measured_part(data[f"{name}_interval"]).sel(direction=direction, bound=bound)
            details[..., column] = interval.transpose("component", "step").values
    if f"{name}_n" in data:
        pairs = measured_part(data[f"{name}_n"]).sel(direction=direction)
        details[..., 3] = pairs.transpose("component", "step").values
    rows = tuple(str(component) for component in part["component"].values)
    values = part.values.astype(np.float32)
    return _Map(name, heading, reading, colours, rows, steps, values, details.astype(np.float32))


class _Drawing(StepDrawing):
    """Maps below the strip of events."""

    def figure(self, data: xr.Dataset, maps: list[_Map], notes: list[str]) -> go.Figure:
        """Measures all blocks first, since positions are fractions of the whole height."""
        tops = [self.strip_height]
        for drawn in maps:
            tops.append(tops[-1] + drawn.height)
        self.height = max(tops[-1] + NOTE_ROW * len(notes), 80.0)
        if maps:
            self.event_strip()
        styles = component_styles(components(data))
        colours = {name: style.colour for name, style in styles.items()}
        for number, (drawn, top) in enumerate(zip(maps, tops, strict=False), start=2):
            self._map(drawn, number, top, colours)
        if maps:
            self.step_title(len(maps) + 1)
        for row, note in enumerate(notes):
            self.text(note, tops[-1] + NOTE_ROW * row, size=11, colour=MUTED)
        return self.assemble()

    def _map(self, drawn: _Map, number: int, top: float, colours: dict[str, str]) -> None:
        reading = f"{drawn.reading}; white 0, darkest 1"
        self.text(title(drawn.title, reading), top, size=13, colour=INK)
        begin = top + _TITLE
        names = [
            f"{plain(name)} <span style='color:{colours[name]}'>■</span>" for name in drawn.rows
        ]
        axes = self.axes(
            number,
            begin,
            begin + _ROW * len(names),
            range=[len(names) - 0.5, -0.5],
            showgrid=False,
            ticks="",
            tickmode="array",
            tickvals=list(range(len(names))),
            ticktext=names,
        )
        self.layout[f"xaxis{number}"]["showgrid"] = False
        self.shapes.append(
            {
                "type": "rect",
                "xref": f"x{number}",
                "x0": drawn.steps[0],
                "x1": drawn.steps[-1],
                "yref": f"y{number} domain",
                "y0": 0,
                "y1": 1,
                "fillcolor": UNDEFINED,
                "line": {"width": 0},
                "layer": "below",
            }
        )
        for line in shades(self.events, [], xref=f"x{number}", yref=f"y{number} domain"):
            pen = {"width": 1.2, "color": INK, "dash": "dot"}
            self.shapes.append({**line, "layer": "above", "line": pen})
        trace: dict[str, Any] = {
            "type": "heatmap",
            "y": list(range(len(names))),
            "z": drawn.values,
            "zmin": 0,
            "zmax": 1,
            "colorscale": [list(stop) for stop in drawn.scale],
            "showscale": False,
            "ygap": 1,
            "customdata": drawn.details,
            "text": [[plain(name)] * len(drawn.steps) for name in drawn.rows],
            "name": drawn.title,
            "hoverongaps": False,
            "hovertemplate": (
                "<b>%{text}</b> · step %{customdata[0]:,d}<br>"
                f"{drawn.name.replace('_', ' ')} %{{z:.4~g}}"
                "<br>95% interval %{customdata[1]:.4~g} to %{customdata[2]:.4~g}"
                "<br>n = %{customdata[3]:,d}<extra></extra>"
            ),
            **axes,
        }
        self.traces.append(StepTrace(trace, drawn.steps))
