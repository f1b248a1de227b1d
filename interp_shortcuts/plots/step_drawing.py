"""A drawing over training steps: blocks from top to bottom, the strip of events, the step switch.

What the blocks show is left to `timeline` and `carrier_map`.
"""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.plots.event_marks import dated, phase_spans, shades, strip_traces
from interp_shortcuts.plots.page_style import base_layout, heading, legend
from interp_shortcuts.plots.palette import INK, MUTED, RULE
from interp_shortcuts.plots.step_axis import StepAxis, StepScale
from interp_shortcuts.plots.traces import StepTrace
from interp_shortcuts.timelines.phases import Phases

_EVENTS_TITLE, _EVENT_ROW, _EVENTS_GAP = 24.0, 19.0, 26.0
_TOP, _RIGHT, _BOTTOM = 42, 12, 30


def checked_scale(scale: str) -> StepScale:
    """The scale of the step axis.

    Raises:
        ConfigError: If it is neither linear nor logarithmic.
    """
    if scale == "linear" or scale == "log":
        return scale
    raise ConfigError(f"`step_scale` must be 'linear' or 'log'; got {scale!r}.")


class StepDrawing:
    """Collects traces and layout of a figure whose blocks share one step axis.

    Positions are fractions of the whole height, so `height` must be set before anything is drawn.

    Args:
        axis: The recorded steps.
        phases: Events to mark.
        scale: The step axis at first sight.
        left: Pixels of the left margin.
    """

    def __init__(self, axis: StepAxis, phases: Phases, scale: StepScale, *, left: int) -> None:
        self.axis = axis
        self.scale: StepScale = scale
        self.phases = phases
        self.events = dated(phases)
        self.spans = phase_spans(phases, axis.steps[-1])
        self.traces: list[StepTrace] = []
        self.shapes: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []
        self.layout: dict[str, Any] = {}
        self.height = 0.0
        self._margin = {"l": left, "r": _RIGHT, "t": _TOP, "b": _BOTTOM, "pad": 0}

    @property
    def strip_height(self) -> float:
        """Pixels of the strip of events and the gap below it."""
        if not self.events:
            return 0.0
        return _EVENTS_TITLE + self._rows + _EVENTS_GAP

    @property
    def _rows(self) -> float:
        return _EVENT_ROW * len(self.events) + 8

    def paper(self, pixels: float) -> float:
        """Pixels from the top as a fraction of the plotting area."""
        return 1 - pixels / self.height

    def text(self, text: str, top: float, *, size: int, colour: str) -> None:
        """A text at the left edge of the page."""
        y, shift = self.paper(top), 4.0 - self._margin["l"]
        self.annotations.append(heading(text, y, size=size, colour=colour, shift=shift))

    def axes(self, number: int, top: float, bottom: float, **y: Any) -> dict[str, str]:
        """New axes from `top` to `bottom`; returns the names that a trace needs."""
        suffix = "" if number == 1 else str(number)
        common = {"gridcolor": RULE, "zeroline": False, "tickfont": {"size": 11}}
        self.layout[f"yaxis{suffix}"] = {
            **common,
            "domain": [self.paper(bottom), self.paper(top)],
            "anchor": f"x{suffix}",
            "fixedrange": True,
            **y,
        }
        self.layout[f"xaxis{suffix}"] = {
            **common,
            "domain": [0, 1],
            "anchor": f"y{suffix}",
            "ticks": "outside",
            "ticklen": 3,
            "tickcolor": RULE,
            **({} if number == 1 else {"matches": "x"}),
            **self.axis.layout(self.scale),
        }
        return {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}

    def step_title(self, number: int) -> None:
        """Names the step axis below the block of that number."""
        self.layout[f"xaxis{number}"]["title"] = {
            "text": "training step",
            "font": {"size": 11, "color": MUTED},
            "standoff": 4,
        }

    def event_strip(self) -> None:
        """One row per event, so that labels never overlap at any width."""
        if not self.events:
            return
        top = _EVENTS_TITLE
        self.text("<b>Events</b>", top - _EVENTS_TITLE + 2, size=13, colour=INK)
        rows = [-len(self.events) + 0.4, 0.6]
        self.axes(1, top, top + self._rows, range=rows, showgrid=False, showticklabels=False)
        self.layout["xaxis"].update(showticklabels=False, ticks="")
        self.traces += strip_traces(self.events, self.spans, self.axis)
        self.shapes += shades(self.events, self.spans, xref="x", yref="y domain")
        self.layout["legend3"] = {
            **legend(self.paper(top - 1)),
            "yanchor": "bottom",
            "x": 1,
            "xanchor": "right",
            "itemclick": False,
            "itemdoubleclick": False,
        }

    def _switch(self, scale: StepScale) -> dict[str, Any]:
        """A button: moves step 0, the ticks, and the side of the event labels."""
        axes = [key for key in self.layout if key.startswith("xaxis")]
        changes = self.axis.layout(scale)
        relayout = {f"{axis}.{key}": value for axis in axes for key, value in changes.items()}
        for index, shape in enumerate(self.shapes):
            for end in ("x0", "x1"):
                if shape[end] == 0:
                    relayout[f"shapes[{index}].{end}"] = self.axis.positions([0], scale)[0]
        sides = [t.text_side[scale] if t.text_side else "middle right" for t in self.traces]
        restyle = {
            "x": [self.axis.positions(trace.steps, scale) for trace in self.traces],
            "textposition": sides,
        }
        return {"label": f"{scale} steps", "method": "update", "args": [restyle, relayout]}

    def assemble(self) -> go.Figure:
        """The figure of all that was collected, with the switch of the step axis."""
        switch = {
            "type": "buttons",
            "direction": "left",
            "buttons": [self._switch("linear"), self._switch("log")],
            "active": 0 if self.scale == "linear" else 1,
            "x": 0,
            "xanchor": "left",
            "y": 1,
            "yanchor": "bottom",
            "pad": {"b": 8, "l": 4 - self._margin["l"], "t": 0, "r": 0},
            "font": {"size": 11},
            "bgcolor": "white",
            "bordercolor": "#CBD2D9",
        }
        placed = [
            {**shape, **{e: self.axis.positions([shape[e]], self.scale)[0] for e in ("x0", "x1")}}
            for shape in self.shapes
        ]
        layout = {
            **self.layout,
            **base_layout(self.height, self._margin),
            "shapes": placed,
            "annotations": self.annotations,
            "updatemenus": [switch] if self.traces else [],
        }
        return go.Figure([trace.drawn(self.axis, self.scale) for trace in self.traces], layout)
