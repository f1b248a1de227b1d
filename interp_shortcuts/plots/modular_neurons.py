"""The neurons of a two-layer network by frequency and concentration, over training.

What is read of them is chosen in `timelines.neuron_readings`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from interp_shortcuts.plots.frame_canvas import FrameCanvas
from interp_shortcuts.plots.palette import INK, OKABE_ITO, RULE
from interp_shortcuts.plots.sweep_frame import check_drawable
from interp_shortcuts.timelines.neuron_readings import (
    NeuronStates,
    missing_for_neurons,
    neuron_states,
)
from interp_shortcuts.timelines.timeline import Timeline

MOST_NEURONS = 400
"""With more neurons than this, every k-th is drawn as a mark, and the figure says so."""
MOST_FRAMES = 12
"""With more checkpoints than this, the slider has that many of them, evenly spread."""
_PART, _HEAD, _GAP = 130.0, 22.0, 30.0


def neurons_figure(timeline: Timeline) -> go.Figure:
    """How many neurons have each frequency, and how concentrated their vectors are; a slider.

    Above: neurons by joint frequency. Below, for each vector: a mark a neuron, its dominant
    frequency (marks are spread around it) and the share of the vector there.

    Args:
        timeline: What was measured.

    Raises:
        ConfigError: If the spectra were not measured.
    """
    check_drawable(missing_for_neurons(timeline.data))
    states = neuron_states(timeline.data)
    frames, marks = evenly(len(states.steps), MOST_FRAMES), every_kth(states, MOST_NEURONS)
    rows = 1 + len(states.vectors)
    head = 40.0 + (14.0 if len(marks) < len(states.neurons) else 0.0)
    height = head + rows * (_HEAD + _PART) + (rows - 1) * _GAP + 50
    canvas = FrameCanvas(
        [states.steps[place] for place in frames], active=len(frames) - 1, height=height
    )
    canvas.title(
        "Neurons by frequency", "a mark is a neuron; drag the slider to see them settle", 0.0
    )
    if len(marks) < len(states.neurons):
        every = marks[1] - marks[0]
        note = f"marks: 1 in {every} of {len(states.neurons):,} neurons; the counts have all"
        canvas.note(note, 34.0)
    x = {
        "range": [-0.2, states.last_frequency + 0.8],
        "gridcolor": RULE,
        "tickmode": "auto",
        "nticks": 10,
    }
    top = head
    for number, name in enumerate(["", *states.vectors]):
        canvas.label(f"vector {name}" if name else "neurons by joint frequency", top)
        last = number == rows - 1
        below = {"title": {"text": "frequency (turns a circle)", "standoff": 6}} if last else {}
        y = (
            {"range": [-0.04, 1.04], "tickvals": [0, 0.5, 1], "title": {"text": "concentration"}}
            if name
            else {"range": [0, _ceiling(states.counts[list(frames)])], "title": {"text": "count"}}
        )
        axes = canvas.axes(
            (0.0, 1.0),
            top + _HEAD,
            top + _HEAD + _PART,
            x={**x, **below},
            y={**y, "gridcolor": RULE},
        )
        if name:
            _add_marks(canvas, states, frames, marks, number - 1, axes)
        else:
            _add_counts(canvas, states, frames, axes)
        top += _HEAD + _PART + _GAP
    return canvas.figure()


def _add_counts(
    canvas: FrameCanvas, states: NeuronStates, frames: Sequence[int], axes: dict[str, str]
) -> None:
    trace = {
        "type": "scatter",
        "x": list(range(states.last_frequency + 2)),
        "mode": "lines",
        "line": {"color": INK, "width": 1.5, "shape": "hvh"},
        "fill": "tozeroy",
        "fillcolor": "rgba(31,41,51,0.16)",
        "name": "neurons",
        "showlegend": False,
        "hovertemplate": "frequency %{x}: %{y} of n = "
        f"{len(states.neurons):,} neurons<extra></extra>",
        **axes,
    }
    counts = states.counts[list(frames)]
    canvas.add(trace, "y", np.pad(counts, ((0, 0), (0, 1))))  # so that the last one has its end


def _add_marks(
    canvas: FrameCanvas,
    states: NeuronStates,
    frames: Sequence[int],
    marks: Sequence[int],
    vector: int,
    axes: dict[str, str],
) -> None:
    at = np.ix_(list(frames), [vector], list(marks))
    dominant = states.dominant[at][:, 0]
    aside = 0.28 * np.sin(2.4 * np.arange(len(marks)))  # marks of one frequency side by side
    numbers = np.broadcast_to(np.array(states.neurons)[list(marks)], dominant.shape)
    joint = states.joint[np.ix_(list(frames), list(marks))]
    name = states.vectors[vector]
    trace = {
        "type": "scatter",
        "mode": "markers",
        "marker": {"size": 6, "color": OKABE_ITO[vector % len(OKABE_ITO)], "opacity": 0.5},
        "name": f"vector {name}",
        "showlegend": False,
        "hovertemplate": f"<b>neuron %{{customdata[0]:d}}</b>, vector {name}<br>dominant frequency "
        "%{customdata[1]:d}, joint %{customdata[2]:d}<br>concentration %{y:.3f}<extra></extra>",
        **axes,
    }
    canvas.add_moving(
        trace,
        {
            "x": dominant + aside,
            "y": states.concentration[at][:, 0],
            "customdata": np.stack([numbers, dominant, joint], axis=-1),
        },
    )


def evenly(n: int, most: int) -> list[int]:
    """At most so many of n places, evenly spread, the first and the last among them."""
    return sorted({round(place) for place in np.linspace(0, n - 1, min(n, most)).tolist()})


def every_kth(states: NeuronStates, most: int) -> list[int]:
    """Every k-th neuron, so that there are at most so many."""
    n = len(states.neurons)
    return list(range(0, n, -(-n // most) or 1))


def _ceiling(counts: np.ndarray) -> float:
    return 1.08 * max(int(counts.max()), 1)


def whole(value: float) -> str:
    return f"{value:.0f}" if np.isfinite(value) else "none"
