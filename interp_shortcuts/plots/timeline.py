"""The circuit timeline: panels stacked over one step axis, with events and phases.

Every component and split has one colour and one legend entry for all panels. What a panel shows
is chosen in `panels.py`; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.plots.event_marks import dated, phase_spans, shades, strip_traces
from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.page_style import (
    NOTE_ROW,
    base_layout,
    heading,
    legend,
    legend_rows,
    title,
    wrap,
)
from interp_shortcuts.plots.palette import INK, MUTED, RULE
from interp_shortcuts.plots.panels import Choice, Panel, Reference, select_panels
from interp_shortcuts.plots.step_axis import StepAxis, StepScale
from interp_shortcuts.plots.traces import (
    StepTrace,
    band_trace,
    half_way_trace,
    line_trace,
    reference_trace,
)
from interp_shortcuts.timelines.phases import Phases
from interp_shortcuts.timelines.timeline import Timeline

_MARGIN = {"l": 42, "r": 12, "t": 42, "b": 30, "pad": 0}
_TITLE, _LEGEND_ROW, _PLOT, _TICKS = 42.0, 22.0, 190.0, 44.0
_EVENTS_TITLE, _EVENT_ROW, _EVENTS_GAP = 24.0, 19.0, 26.0
_LEGENDS = {"split": "legend", "component": "legend2"}
_DECADES = {
    "tickmode": "array",
    "tickvals": [10.0**exponent for exponent in range(-12, 4)],
    "ticktext": [f"10<sup>{n}</sup>" for n in range(-12, -2)]
    + ["0.01", "0.1", "1", "10", "100", "1000"],
}
_HALF_WAY = {
    "qk": "qk_spearman",
    "ov_fraction": "ov_class_fraction",
    "ov_spearman": "ov_spearman",
    "attention_to_max": "attention_to_max",
}


def timeline_figure(
    timeline: Timeline,
    *,
    phases: Phases | None = None,
    panels: Sequence[str] | None = None,
    feature: str | None = None,
    label_feature: str | None = None,
    split: str = "validation",
    activation_form: bool = True,
    step_scale: StepScale | str = "linear",
) -> go.Figure:
    """Behaviour and circuits over training, on one step axis.

    Rings mark where a head's measure stands half way between its phase-1 and its final level.

    Args:
        timeline: What was measured.
        phases: Events to mark; None asks the timeline for them with its default rules.
        panels: Keys of `interp_shortcuts.plots.panels.PANELS`; None for all that apply.
        feature: Feature of the QK panel; None for the first that was measured.
        label_feature: Feature of the OV panels; None for the first that was measured.
        split: Split of the panels that read activations.
        activation_form: Whether to draw the activation form of QK Spearman, dashed.
        step_scale: The step axis at first sight; a switch changes it. On the logarithmic axis
            step 0 is drawn at half of the first positive step, labelled 0.

    Returns:
        A figure as wide as its container. Panels that cannot be drawn are named below the others,
        each with the reason.

    Raises:
        ConfigError: If the timeline has no step, or a name is unknown.
    """
    data = timeline.data
    if "step" not in data.dims or data.sizes["step"] == 0:
        raise ConfigError("A timeline figure needs at least one step; this timeline has none.")
    if step_scale != "linear" and step_scale != "log":
        raise ConfigError(f"`step_scale` must be 'linear' or 'log'; got {step_scale!r}.")
    phases = timeline.phases() if phases is None else phases
    axis = StepAxis(tuple(int(step) for step in data["step"].values))
    choice = Choice(feature, label_feature, split, activation_form)
    return _Drawing(axis, select_panels(data, choice, panels), phases, step_scale).figure()


@dataclass(frozen=True)
class _Slot:
    """Where a panel lies, in pixels from the top of the plotting area."""

    panel: Panel
    number: int
    heading: float
    legend: float | None
    top: float
    bottom: float


class _Drawing:
    """Collects traces and layout, from top to bottom."""

    def __init__(
        self, axis: StepAxis, panels: Sequence[Panel], phases: Phases, scale: StepScale
    ) -> None:
        self.axis = axis
        self.scale: StepScale = scale
        self.phases = phases
        self.drawn = [panel for panel in panels if panel.missing is None]
        self.absent = [panel for panel in panels if panel.missing is not None]
        self.events = dated(phases)
        self.spans = phase_spans(phases, axis.steps[-1])
        self.traces: list[StepTrace] = []
        self.shapes: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []
        self.layout: dict[str, Any] = {}
        self.in_legend: set[str] = set()
        self.height = 0.0

    def figure(self) -> go.Figure:
        """Measure all blocks first, since positions are fractions of the whole height."""
        strip = _EVENT_ROW * len(self.events) + 8
        begin = _EVENTS_TITLE + strip + _EVENTS_GAP if self.events else 0.0
        slots = self._slots(begin)
        notes = self._notes()
        end = slots[-1].bottom + _TICKS if slots else begin
        self.height = max(end + NOTE_ROW * len(notes), 80.0)
        if self.events:
            self._event_strip(_EVENTS_TITLE, _EVENTS_TITLE + strip)
        for slot in slots:
            self._panel(slot)
        for row, note in enumerate(notes):
            self._text(note, end + NOTE_ROW * row, size=11, colour=MUTED)
        if slots:
            self.layout[f"xaxis{slots[-1].number}"]["title"] = {
                "text": "training step",
                "font": {"size": 11, "color": MUTED},
                "standoff": 4,
            }
        return self._assemble()

    def _slots(self, cursor: float) -> list[_Slot]:
        slots: list[_Slot] = []
        seen: set[str] = set()
        for number, panel in enumerate(self.drawn, start=2):
            start, legend_top = cursor, None
            cursor += _TITLE
            if panel.legend not in seen:
                seen.add(panel.legend)
                legend_top = cursor
                same = [other for other in self.drawn if other.legend == panel.legend]
                cursor += _LEGEND_ROW * legend_rows({x.group for p in same for x in p.lines})
            slots.append(_Slot(panel, number, start, legend_top, cursor, cursor + _PLOT))
            cursor += _PLOT + _TICKS
        return slots

    def _notes(self) -> list[str]:
        texts = [f"Left out: {panel.title}: {panel.missing}." for panel in self.absent]
        texts += [f"{panel.title}: {note}." for panel in self.drawn for note in panel.notes]
        return [line for text in texts for line in wrap(text)]

    def _paper(self, pixels: float) -> float:
        return 1 - pixels / self.height

    def _text(self, text: str, top: float, *, size: int, colour: str) -> None:
        y, shift = self._paper(top), 4.0 - _MARGIN["l"]
        self.annotations.append(heading(text, y, size=size, colour=colour, shift=shift))

    def _axes(self, number: int, top: float, bottom: float, **y: Any) -> None:
        suffix = "" if number == 1 else str(number)
        common = {"gridcolor": RULE, "zeroline": False, "tickfont": {"size": 11}}
        self.layout[f"yaxis{suffix}"] = {
            **common,
            "domain": [self._paper(bottom), self._paper(top)],
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

    def _event_strip(self, top: float, bottom: float) -> None:
        """One row per event, so that labels never overlap at any width."""
        self._text("<b>Events</b>", top - _EVENTS_TITLE + 2, size=13, colour=INK)
        rows = [-len(self.events) + 0.4, 0.6]
        self._axes(1, top, bottom, range=rows, showgrid=False, showticklabels=False)
        self.layout["xaxis"].update(showticklabels=False, ticks="")
        self.traces += strip_traces(self.events, self.spans, self.axis)
        self.shapes += shades(self.events, self.spans, xref="x", yref="y domain")
        self.layout["legend3"] = {
            **legend(self._paper(top - 1)),
            "yanchor": "bottom",
            "x": 1,
            "xanchor": "right",
            "itemclick": False,
            "itemdoubleclick": False,
        }

    def _panel(self, slot: _Slot) -> None:
        panel, suffix = slot.panel, str(slot.number)
        self._text(title(panel.title, panel.reading), slot.heading, size=13, colour=INK)
        name = _LEGENDS[panel.legend]
        if slot.legend is not None:
            self.layout[name] = legend(self._paper(slot.legend - 3))
        vertical: dict[str, Any] = {"range": list(panel.span)} if panel.span else {}
        if panel.log:
            vertical = {"type": "log", **_DECADES}
        self._axes(slot.number, slot.top, slot.bottom, **vertical)
        self.shapes += shades(self.events, self.spans, xref=f"x{suffix}", yref=f"y{suffix} domain")
        axes = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "legend": name}
        steps = self.axis.steps
        bands = [band_trace(line, panel, steps, axes) for line in panel.lines]
        self.traces += [band for band in bands if band is not None]
        for reference in panel.references:
            self.traces.append(reference_trace(reference, steps, axes))
            self._reference_label(reference, slot)
        for line in panel.lines:
            first = line.group not in self.in_legend and not line.faint
            if first:
                self.in_legend.add(line.group)
            self.traces.append(line_trace(line, panel, steps, axes, in_legend=first))
        self._half_ways(panel, axes)

    def _half_ways(self, panel: Panel, axes: dict[str, str]) -> None:
        lines = {line.group: line for line in panel.lines if not line.faint}
        for event in self.phases.circuit_events:
            line = lines.get(event.component)
            same = event.measure == _HALF_WAY.get(panel.key) and panel.about in ("", event.feature)
            if line is None or not same or event.step not in self.axis.steps:
                continue
            text = f"phase 1: {event.phase1_level:.3g}, at the end: {event.final_level:.3g}"
            self.traces.append(
                half_way_trace(line, panel, self.axis.steps, axes, step=event.step, text=text)
            )

    def _reference_label(self, reference: Reference, slot: _Slot) -> None:
        finite = reference.values[np.isfinite(reference.values)]
        if not reference.text or not finite.size:
            return
        self.annotations.append(
            {
                "text": plain(reference.text),
                "x": 1,
                "xref": f"x{slot.number} domain",
                "xanchor": "right",
                "y": float(finite[-1]),
                "yref": f"y{slot.number}",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 10, "color": MUTED},
                "bgcolor": "rgba(255,255,255,0.75)",
                "borderpad": 0,
            }
        )

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

    def _assemble(self) -> go.Figure:
        switch = {
            "type": "buttons",
            "direction": "left",
            "buttons": [self._switch("linear"), self._switch("log")],
            "active": 0 if self.scale == "linear" else 1,
            "x": 0,
            "xanchor": "left",
            "y": 1,
            "yanchor": "bottom",
            "pad": {"b": 8, "l": 4 - _MARGIN["l"], "t": 0, "r": 0},
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
            **base_layout(self.height, _MARGIN),
            "shapes": placed,
            "annotations": self.annotations,
            "updatemenus": [switch] if self.traces else [],
        }
        return go.Figure([trace.drawn(self.axis, self.scale) for trace in self.traces], layout)
