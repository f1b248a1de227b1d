"""Phase errors as a wheel: how far every neuron is from the analytic solution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from interp_shortcuts.plots.modular_neurons import MOST_NEURONS, every_kth, whole
from interp_shortcuts.plots.palette import MUTED, OKABE_ITO, RULE
from interp_shortcuts.plots.sweep_frame import check_drawable, framed
from interp_shortcuts.timelines.neuron_readings import (
    NeuronStates,
    missing_for_neurons,
    neuron_states,
)
from interp_shortcuts.timelines.timeline import Timeline


def missing_for_phases(data: xr.Dataset) -> str:
    """Why the phases cannot be drawn; empty if they can."""
    return missing_for_neurons(data, "phase_error")


def phase_figure(timeline: Timeline) -> go.Figure:
    """A wheel of neurons: the angle is the phase error, the radius how concentrated they are.

    Filled marks are the last step, open ones the first. In the analytic solution all are at 0.

    Args:
        timeline: What was measured.

    Raises:
        ConfigError: If the phases were not measured.
    """
    check_drawable(missing_for_neurons(timeline.data, "phase_error"))
    states = neuron_states(timeline.data)
    marks = every_kth(states, MOST_NEURONS)
    first, last = 0, len(states.steps) - 1
    places = [last] if first == last else [first, last]
    some = (
        ""
        if len(marks) == len(states.neurons)
        else (f"; {len(marks)} of {len(states.neurons)} neurons are drawn")
    )
    return framed(
        [_wheel(states, marks, place, end=place == last) for place in places],
        title="Phase errors",
        reading="angle: phase error of a neuron, 0 in the analytic solution; radius: "
        f"concentration, mean over its vectors{some}",
        height=330.0,
        x={"visible": False},
        y={"visible": False},
        left=40,
        right=40,
        bottom=34,
        above=16,
        polar={
            "bgcolor": "white",
            "radialaxis": {
                "range": [0, 1],
                "tickvals": [0, 0.5, 1],
                "angle": 90,
                "tickangle": 90,
                "gridcolor": RULE,
                "tickfont": {"size": 10, "color": MUTED},
            },
            "angularaxis": {
                "thetaunit": "radians",
                "tickmode": "array",
                "tickvals": [0, 90, 180, 270],
                "ticktext": ["0", "π/2", "±π", "−π/2"],
                "gridcolor": RULE,
            },
        },
    )


def _wheel(states: NeuronStates, marks: Sequence[int], place: int, *, end: bool) -> dict[str, Any]:
    own = list(marks)
    radius = np.nan_to_num(states.concentration[place][:, own]).mean(axis=0)
    colour = OKABE_ITO[0] if end else MUTED
    step = states.steps[place]
    return {
        "type": "scatterpolar",
        "thetaunit": "radians",
        "theta": np.round(states.phase_error[place][own], 4),
        "r": np.round(radius, 4),
        "mode": "markers",
        "marker": {
            "size": 7 if end else 6,
            "symbol": "circle" if end else "circle-open",
            "color": colour,
            "opacity": 0.6,
        },
        "name": f"step {step:,}",
        "showlegend": True,
        "customdata": [[states.neurons[index], whole(states.joint[place][index])] for index in own],
        "hovertemplate": "<b>neuron %{customdata[0]}</b> at step "
        f"{step:,}<br>joint frequency %{{customdata[1]}}<br>phase error %{{theta:.2f}} rad, mean "
        "concentration %{r:.3f}<extra></extra>",
    }
