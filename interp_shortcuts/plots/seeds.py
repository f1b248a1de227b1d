"""One small picture per seed, for pages that compare many: accuracies over steps, with events.

Axes are the same for all seeds of a page. Rates over seeds are left to `reports`.
"""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from interp_shortcuts.plots.event_marks import dated, phase_spans, shades
from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.page_style import base_layout
from interp_shortcuts.plots.palette import RULE, split_style
from interp_shortcuts.timelines.phases import Phases
from interp_shortcuts.timelines.timeline import Timeline

SHOWN = ("validation", "adversarial")


def accuracy_figure(
    timeline: Timeline, *, phases: Phases | None = None, last_step: int | None = None
) -> go.Figure:
    """Validation and adversarial accuracy of one seed, small, without a legend.

    Args:
        timeline: What was measured.
        phases: Events to mark; None asks the timeline for them with its default rules.
        last_step: Where the step axis ends; None for this seed's own last step.
    """
    phases = timeline.phases() if phases is None else phases
    data = timeline.data
    steps = [int(step) for step in data["step"].values]
    last = max([*steps, 1] if last_step is None else [last_step, 1])
    traces = []
    present = data["split"].values if "accuracy" in data else ()
    for split in (name for name in SHOWN if name in present):
        style = split_style(split)
        trace = {
            "type": "scatter",
            "x": steps,
            "y": data["accuracy"].sel(split=split).values.astype(np.float32),
            "mode": "lines",
            "line": {"color": style.colour, "width": 2},
            "name": plain(split),
            "hovertemplate": (
                f"<b>{plain(split)}</b> · step %{{x:,d}}<br>accuracy %{{y:.4~g}}<extra></extra>"
            ),
        }
        traces.append(trace)
    spans = phase_spans(phases, steps[-1]) if steps else []
    axis = {"gridcolor": RULE, "zeroline": False, "fixedrange": True, "tickfont": {"size": 10}}
    layout = {
        **base_layout(120.0, {"l": 30, "r": 8, "t": 6, "b": 24, "pad": 0}),
        "showlegend": False,
        "dragmode": False,
        "xaxis": {**axis, "range": [-0.02 * last, 1.02 * last], "nticks": 5},
        "yaxis": {**axis, "range": [-0.05, 1.05], "tickvals": [0, 0.5, 1]},
        "shapes": shades(dated(phases), spans, xref="x", yref="y domain"),
    }
    return go.Figure(traces, layout)
