"""Events and phases on a figure: the strip with one row per event, dotted lines, shaded phases.

Events are found in `timelines`; here they are only drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.page_style import wrap
from interp_shortcuts.plots.palette import HANDOVER_PHASE, INK, SHORTCUT_PHASE
from interp_shortcuts.plots.step_axis import StepAxis, StepScale
from interp_shortcuts.plots.traces import StepTrace
from interp_shortcuts.timelines.events import Event
from interp_shortcuts.timelines.phases import Phases


@dataclass(frozen=True)
class Span:
    """A phase: its name, colour, first and last step."""

    name: str
    colour: str
    begin: int
    end: int


def dated(phases: Phases) -> list[Event]:
    """The events that happened, by step."""
    happened = [event for event in phases.events if event.step is not None]
    return sorted(happened, key=lambda event: event.step or 0)


def phase_spans(phases: Phases, last: int) -> list[Span]:
    """The shortcut phase and the hand-over, where they were seen.

    Args:
        phases: The events.
        last: The last step, where a phase that did not end is cut off.
    """
    at = {event.name: event.step for event in phases.events if event.step is not None}
    learned, onset, complete = at.get("shortcut_learned"), at.get("onset"), at.get("generalised")
    end = last if complete is None else complete
    spans = []
    if learned is not None:
        spans.append(
            Span("shortcut phase", SHORTCUT_PHASE, learned, end if onset is None else onset)
        )
    if onset is not None:
        spans.append(Span("hand-over", HANDOVER_PHASE, onset, end))
    return [span for span in spans if span.end > span.begin]


def shades(
    events: Sequence[Event], spans: Sequence[Span], *, xref: str, yref: str
) -> list[dict[str, Any]]:
    """Shapes behind a panel: phases as rectangles, events as dotted lines; x in steps."""
    common = {"xref": xref, "yref": yref, "y0": 0, "y1": 1, "layer": "below"}
    rectangles = [
        {
            "type": "rect",
            "x0": span.begin,
            "x1": span.end,
            "fillcolor": span.colour,
            "line": {"width": 0},
            **common,
        }
        for span in spans
    ]
    lines = [
        {
            "type": "line",
            "x0": event.step,
            "x1": event.step,
            "line": {"width": 1, "color": "#9AA5B1", "dash": "dot"},
            **common,
        }
        for event in events
    ]
    return rectangles + lines


def strip_traces(events: Sequence[Event], spans: Sequence[Span], axis: StepAxis) -> list[StepTrace]:
    """The strip's marks: event number i at height -i, then a legend entry per phase."""
    marks = []
    for row, event in enumerate(events):
        step = int(event.step or 0)
        name = plain(event.name.replace("_", " "))
        value = event.value
        shown = "" if value is None or not np.isfinite(value) else f"<br>value there {value:.4g}"
        description = "<br>".join(wrap(plain(event.description), 46))
        trace = {
            "y": [-row],
            "mode": "markers+text",
            "marker": {"symbol": "diamond", "size": 9, "color": INK},
            "text": [f"{name} · step {step:,}"],
            "textfont": {"size": 12, "color": INK},
            "name": name,
            "cliponaxis": False,
            "showlegend": False,
            "hovertemplate": (
                f"<b>{name}</b> · step {step:,}<br>{description}{shown}<extra></extra>"
            ),
        }
        sides: dict[StepScale, str] = {
            "linear": _roomier_side(step, axis, "linear"),
            "log": _roomier_side(step, axis, "log"),
        }
        marks.append(StepTrace(trace, (step,), sides))
    for span in spans:
        trace = {
            "y": [None],
            "mode": "markers",
            "name": span.name,
            "legend": "legend3",
            "legendgroup": f"phase: {span.name}",
            "marker": {"symbol": "square", "size": 12, "color": span.colour},
            "hoverinfo": "skip",
        }
        marks.append(StepTrace(trace, (None,)))
    return marks


def _roomier_side(step: int, axis: StepAxis, scale: StepScale) -> str:
    low, high = axis.layout(scale)["range"]
    place = axis.positions([step], scale)[0] or 0.0
    if scale == "log":
        place = float(np.log10(place))
    return "middle right" if (place - low) / (high - low) < 0.5 else "middle left"
