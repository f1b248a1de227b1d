"""The spectrum of every neuron as a row of a map, the neurons by joint frequency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from interp_shortcuts.plots.menu import menu
from interp_shortcuts.plots.modular_neurons import evenly, whole
from interp_shortcuts.plots.palette import SPECTRUM_SCALE, UNDEFINED
from interp_shortcuts.plots.sweep_frame import AXIS, check_drawable, framed
from interp_shortcuts.timelines.neuron_readings import (
    SortedSpectra,
    missing_for_neurons,
    sorted_spectra,
)
from interp_shortcuts.timelines.timeline import Timeline

MOST_ROWS = 600
"""With more neurons than this, so many of them are rows, and the figure says so."""
_MOST_TICKS = 15


def missing_for_spectra(data: xr.Dataset) -> str:
    """Why the spectra cannot be drawn; empty if they can."""
    return missing_for_neurons(data, "power")


def spectra_figure(timeline: Timeline) -> go.Figure:
    """The spectrum of every neuron at the last step, sorted by joint frequency; a menu of vectors.

    Args:
        timeline: What was measured.

    Raises:
        ConfigError: If the powers were not measured.
    """
    check_drawable(missing_for_neurons(timeline.data, "power"))
    found = sorted_spectra(timeline.data)
    rows = evenly(len(found.neurons), MOST_ROWS)
    traces = [_heat(found, rows, place) for place in range(len(found.vectors))]
    some = (
        ""
        if len(rows) == len(found.neurons)
        else f"; {len(rows)} of {len(found.neurons)} are drawn"
    )
    buttons = [
        {
            "label": f"vector {name}",
            "method": "restyle",
            "args": [{"visible": [place == other for other in range(len(traces))]}],
        }
        for place, name in enumerate(found.vectors)
    ]
    return framed(
        traces,
        title=f"Spectra of the neurons at step {found.step:,}",
        reading="a row is a neuron, sorted by joint frequency; darker: more of the vector’s "
        f"squared length at that frequency; grey: the vector is zero{some}",
        height=360.0,
        x={
            **AXIS,
            "showgrid": False,
            "title": {"text": "frequency (turns a circle)", "standoff": 6},
        },
        y={
            **AXIS,
            "showgrid": False,
            "autorange": "reversed",
            "type": "category",
            **_ticks(found, rows),
            "title": {"text": "joint frequency of the neuron", "standoff": 6},
        },
        left=58,
        right=70,
        above=38,
        plot_bgcolor=UNDEFINED,
        updatemenus=[menu(buttons, active=len(traces) - 1)],
    )


def _heat(found: SortedSpectra, rows: Sequence[int], vector: int) -> dict[str, Any]:
    name = found.vectors[vector]
    share = np.round(found.share[vector][list(rows)], 3)
    return {
        "type": "heatmap",
        "z": np.where(np.isfinite(share), share, np.array(None, dtype=object)).tolist(),
        "y": [_row_name(found, row) for row in rows],
        "zmin": 0,
        "zmax": 1,
        "colorscale": [list(stop) for stop in SPECTRUM_SCALE],
        "colorbar": {
            "title": {"text": "share", "side": "top"},
            "thickness": 12,
            "len": 1.0,
            "x": 1.02,
            "tickvals": [0, 0.5, 1],
            "outlinewidth": 0,
        },
        "hoverongaps": False,
        "hovertemplate": f"<b>%{{y}}</b><br>vector {name}, frequency %{{x}}: share %{{z:.3f}}"
        "<extra></extra>",
        "visible": vector == len(found.vectors) - 1,
        "name": f"vector {name}",
        "showlegend": False,
    }


def _row_name(found: SortedSpectra, row: int) -> str:
    return f"neuron {found.neurons[row]}, joint frequency {whole(found.joint[row])}"


def _ticks(found: SortedSpectra, rows: Sequence[int]) -> dict[str, Any]:
    """A tick in the middle of the rows of each joint frequency; of some if there are many."""
    blocks: dict[str, list[int]] = {}
    for row in rows:
        blocks.setdefault(whole(found.joint[row]), []).append(row)
    labels = list(blocks)
    shown = [labels[place] for place in evenly(len(labels), _MOST_TICKS)]
    middle = [blocks[label][len(blocks[label]) // 2] for label in shown]
    return {
        "tickmode": "array",
        "tickvals": [_row_name(found, row) for row in middle],
        "ticktext": shown,
        "tickfont": {"size": 10},
    }
