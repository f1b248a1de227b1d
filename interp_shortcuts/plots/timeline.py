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
from interp_shortcuts.plots.event_marks import shades
from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.page_style import NOTE_ROW, legend, legend_rows, title, wrap
from interp_shortcuts.plots.palette import INK, MUTED
from interp_shortcuts.plots.panel import Choice, Line, Panel, Reference
from interp_shortcuts.plots.panels import select_panels
from interp_shortcuts.plots.step_axis import StepAxis, StepScale
from interp_shortcuts.plots.step_drawing import StepDrawing, checked_scale
from interp_shortcuts.plots.traces import (
    band_trace,
    half_way_trace,
    line_trace,
    reference_trace,
)
from interp_shortcuts.timelines.component_curves import ABLATION, DIRECTION
from interp_shortcuts.timelines.phases import Phases
from interp_shortcuts.timelines.timeline import Timeline

_LEFT = 42
_TITLE, _LEGEND_ROW, _PLOT, _TICKS = 42.0, 22.0, 190.0, 44.0
_LEGENDS = {"split": "legend", "component": "legend2", "causal": "legend4"}


def timeline_figure(
    timeline: Timeline,
    *,
    phases: Phases | None = None,
    panels: Sequence[str] | None = None,
    feature: str | None = None,
    label_feature: str | None = None,
    split: str = "validation",
    activation_form: bool = True,
    direction: str = DIRECTION,
    ablation: str = ABLATION,
    part: str = "model",
    step_scale: StepScale | str = "linear",
) -> go.Figure:
    """Behaviour and circuits over training, on one step axis.

    Rings mark where a component's measure stands half way between its phase-1 and its final level.

    Args:
        timeline: What was measured.
        phases: Events to mark; None asks the timeline for them with its default rules.
        panels: Keys of `interp_shortcuts.plots.panels.PANELS`; None for behaviour, the first
            fingerprints, the transfers and the gradients.
        feature: Feature of the QK panel; None for the first that was measured.
        label_feature: Feature of the OV panels; None for the first that was measured.
        split: Split of the panels that read activations.
        activation_form: Whether to draw the activation form of QK Spearman, dashed.
        direction: Direction (target<-source) of the transfer panels.
        ablation: Ablation of the panels that show what it costs.
        part: Part of the model whose gradients are shown.
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
    scale = checked_scale(step_scale)
    phases = timeline.phases() if phases is None else phases
    axis = StepAxis(tuple(int(step) for step in data["step"].values))
    choice = Choice(feature, label_feature, split, activation_form, direction, ablation, part)
    return _Drawing(axis, select_panels(data, choice, panels), phases, scale).figure()


@dataclass(frozen=True)
class _Slot:
    """Where a panel lies, in pixels from the top of the plotting area."""

    panel: Panel
    number: int
    heading: float
    legend: float | None
    top: float
    bottom: float


class _Drawing(StepDrawing):
    """Panels below the strip of events, each with its heading and, for the first, its legend."""

    def __init__(
        self, axis: StepAxis, panels: Sequence[Panel], phases: Phases, scale: StepScale
    ) -> None:
        super().__init__(axis, phases, scale, left=_LEFT)
        self.drawn = [panel for panel in panels if panel.missing is None]
        self.absent = [panel for panel in panels if panel.missing is not None]
        self.in_legend: set[tuple[str, str]] = set()

    def figure(self) -> go.Figure:
        """Measure all blocks first, since positions are fractions of the whole height."""
        begin = self.strip_height
        slots = self._slots(begin)
        notes = self._notes()
        end = slots[-1].bottom + _TICKS if slots else begin
        self.height = max(end + NOTE_ROW * len(notes), 80.0)
        self.event_strip()
        for slot in slots:
            self._panel(slot)
        for row, note in enumerate(notes):
            self.text(note, end + NOTE_ROW * row, size=11, colour=MUTED)
        if slots:
            self.step_title(slots[-1].number)
        return self.assemble()

    def _slots(self, cursor: float) -> list[_Slot]:
        slots: list[_Slot] = []
        seen: set[str] = set()
        for number, panel in enumerate(self.drawn, start=2):
            start, legend_top = cursor, None
            cursor += _TITLE
            if panel.legend is not None and panel.legend not in seen:
                seen.add(panel.legend)
                legend_top = cursor
                same = [other for other in self.drawn if other.legend == panel.legend]
                cursor += _LEGEND_ROW * legend_rows({x.group for p in same for x in p.lines})
            slots.append(_Slot(panel, number, start, legend_top, cursor, cursor + _PLOT))
            cursor += _PLOT + _TICKS
        return slots

    def _notes(self) -> list[str]:
        reasons: dict[str, list[str]] = {}
        for panel in self.absent:
            reasons.setdefault(panel.missing or "", []).append(panel.title)
        texts = [f"Left out: {'; '.join(titles)}: {why}." for why, titles in reasons.items()]
        texts += [f"{panel.title}: {note}." for panel in self.drawn for note in panel.notes]
        return [line for text in texts for line in wrap(text)]

    def _panel(self, slot: _Slot) -> None:
        panel, suffix = slot.panel, str(slot.number)
        self.text(title(panel.title, panel.reading), slot.heading, size=13, colour=INK)
        name = _LEGENDS.get(panel.legend or "", "legend")
        if slot.legend is not None:
            self.layout[name] = legend(self.paper(slot.legend - 3))
        vertical: dict[str, Any] = {"range": list(panel.span)} if panel.span else {}
        if panel.log:
            vertical = {"type": "log", **_log_ticks(panel)}
        axes = {**self.axes(slot.number, slot.top, slot.bottom, **vertical), "legend": name}
        self.shapes += shades(self.events, self.spans, xref=f"x{suffix}", yref=f"y{suffix} domain")
        bands = [band_trace(line, panel, axes) for line in panel.lines if not line.hidden]
        bands += [band_trace(line, panel, axes) for line in panel.lines if line.hidden]
        self.traces += [band for band in bands if band is not None]
        for reference in panel.references:
            self.traces.append(reference_trace(reference, self.axis.steps, axes))
            self._reference_label(reference, slot)
        for line in panel.lines:
            self.traces.append(line_trace(line, panel, axes, in_legend=self._first(panel, line)))
        self._half_ways(panel, axes)

    def _first(self, panel: Panel, line: Line) -> bool:
        """Whether the line makes the legend entry of its group."""
        if panel.legend is None or line.faint or (panel.legend, line.group) in self.in_legend:
            return False
        self.in_legend.add((panel.legend, line.group))
        return True

    def _half_ways(self, panel: Panel, axes: dict[str, str]) -> None:
        lines = {line.group: line for line in panel.lines if not line.faint}
        for event in (*self.phases.circuit_events, *self.phases.causal_events):
            line = lines.get(event.component)
            if line is None or event.step not in line.steps or event.measure != panel.measure:
                continue
            if panel.about not in ("", event.feature) or panel.on != event.split:
                continue
            text = f"phase 1: {event.phase1_level:.3g}, at the end: {event.final_level:.3g}"
            self.traces.append(half_way_trace(line, panel, axes, step=event.step, text=text))

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
                "y": float(np.log10(finite[-1]) if slot.panel.log else finite[-1]),
                "yref": f"y{slot.number}",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 10, "color": MUTED},
                "bgcolor": "rgba(255,255,255,0.75)",
                "borderpad": 0,
            }
        )


def _log_ticks(panel: Panel) -> dict[str, Any]:
    """Decades on a logarithmic axis; also 2 and 5 times them where the lines span few."""
    values = [line.values for line in panel.lines] + [level.values for level in panel.references]
    every = np.concatenate(values)
    positive = every[np.isfinite(every) & (every > 0)]
    wide = positive.size == 0 or positive.max() > 200 * positive.min()
    multiples = (1,) if wide else (1, 2, 5)
    places = [(multiple, exponent) for exponent in range(-12, 5) for multiple in multiples]
    return {
        "tickmode": "array",
        "tickvals": [multiple * 10.0**exponent for multiple, exponent in places],
        "ticktext": [_tick(multiple, exponent) for multiple, exponent in places],
    }


def _tick(multiple: int, exponent: int) -> str:
    if exponent >= -2:
        return f"{multiple * 10.0**exponent:.{max(-exponent, 0)}f}"
    factor = "" if multiple == 1 else f"{multiple}·"
    return f"{factor}10<sup>{exponent}</sup>"
