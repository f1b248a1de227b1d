"""Runs under label noise side by side: final accuracies of every cell, and curves over training."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.menu import menu
from interp_shortcuts.plots.modular_descent import band, interval_words
from interp_shortcuts.plots.modular_progress import GROUP_NAMES, MANY_STEPS, line_name
from interp_shortcuts.plots.page_style import wrap
from interp_shortcuts.plots.palette import network_style
from interp_shortcuts.plots.stacked import Part, stacked
from interp_shortcuts.plots.step_axis import StepAxis, StepScale
from interp_shortcuts.plots.step_drawing import checked_scale
from interp_shortcuts.plots.sweep_frame import AXIS, RATE_AXIS, check_drawable, framed
from interp_shortcuts.sweeps.hidden_cells import HiddenCells

SHOWN = (
    ("full", "trained", "test"),
    ("G", "trained", "test_G"),
    ("G", "quadratic", "test_G_quadratic"),
)
"""Network, activation, and the column of the table of runs with its final test accuracy."""
_LINES = (
    *(("full", "trained"), ("G", "trained"), ("G", "quadratic")),
    *(("R", "trained"), ("R", "quadratic")),
)
_ROW, _LABEL = 26.0, 22


def missing_for_cells(found: HiddenCells) -> str:
    """Why the final accuracies cannot be drawn; empty if they can."""
    test = found.finals[found.finals["group"] == "test"]["mean"] if len(found.finals) else []
    return "" if np.isfinite(np.array(test, dtype=float)).any() else "no run has a test accuracy"


def cells_figure(found: HiddenCells) -> go.Figure:
    """A row a cell: final test accuracy of the network itself and of G, every seed and the mean.

    Args:
        found: What `sweeps.hidden_cells` gave.

    Raises:
        ConfigError: If no run has a test accuracy.
    """
    check_drawable(missing_for_cells(found))
    cells = list(found.cells)
    traces: list[dict[str, Any]] = []
    for place, (network, acting, column) in enumerate(SHOWN):
        aside = 0.24 * (place - 1)
        traces += _cell_marks(found, cells, network, acting, column, aside)
    labels = ["<br>".join(wrap(plain(cell), _LABEL)) for cell in cells]
    deep = max(label.count("<br>") for label in labels)
    row = _ROW + 12 * deep + 8
    return framed(
        traces,
        title="Test accuracy at the end of training",
        reading="a row a cell; small marks: a seed; large marks: mean with its 95% t interval",
        height=row * len(cells) + 10,
        x={**RATE_AXIS, "title": {"text": "test accuracy", "standoff": 6}},
        y={
            **AXIS,
            "showgrid": False,
            "ticks": "",
            "range": [len(cells) - 0.5, -0.5],
            "tickvals": list(range(len(cells))),
            "ticktext": labels,
            "tickfont": {"size": 11},
        },
        left=24 + round(6.2 * max(len(part) for lab in labels for part in lab.split("<br>"))),
        right=16,
    )


def missing_for_cell_courses(found: HiddenCells) -> str:
    """Why curves over training cannot be drawn; empty if they can."""
    return "" if len(found.course) else "no run counts"


def cell_courses_figure(found: HiddenCells, *, step_scale: StepScale | str = "log") -> go.Figure:
    """Mean accuracy over steps on test, clean and noisy examples; a menu chooses the cell.

    Args:
        found: What `sweeps.hidden_cells` gave.
        step_scale: `"linear"` or `"log"`.

    Raises:
        ConfigError: If no run counts, or the scale is unknown.
    """
    check_drawable(missing_for_cell_courses(found))
    scale = checked_scale(step_scale)
    rows = [row for row in found.course.to_dict("records") if row["n"]]
    axis = StepAxis(tuple(sorted({int(row["step"]) for row in rows})))
    cells = list(dict.fromkeys(row["cell"] for row in rows))
    parts = []
    for group in ("test", "clean", "noisy"):
        traces = []
        for cell in cells:
            for network, acting in _LINES:
                key = (cell, network, acting, group)
                own = [
                    row
                    for row in rows
                    if (row["cell"], row["network"], row["acting"], row["group"]) == key
                ]
                if own:
                    first, seen = not parts, cell == cells[0]
                    traces += _course(own, axis, scale, first=first, visible=seen)
        if traces:
            y = {**RATE_AXIS, "title": {"text": "accuracy", "standoff": 6}}
            parts.append(Part(GROUP_NAMES[group], traces, y, (found.threshold,)))
    flat = [trace for part in parts for trace in part.traces]
    buttons = [
        {
            "label": plain(cell),
            "method": "restyle",
            "args": [{"visible": [trace["meta"] == cell for trace in flat]}],
        }
        for cell in cells
    ]
    menus = {"above": 38, "updatemenus": [menu(buttons)]} if len(cells) > 1 else {}
    return stacked(
        parts,
        title="Hidden progress over seeds",
        reading="mean accuracy over the seeds measured at a step, of the network itself (full), of "
        "G and of R; dashed: with the quadratic activation; bands: 95% t intervals; dotted: "
        f"{found.threshold:g}; without noisy labels, the last part is empty",
        x={**axis.layout(scale), "title": {"text": "training step", "standoff": 6}},
        right=22,
        **menus,
    )


def _cell_marks(
    found: HiddenCells, cells: list[str], network: str, acting: str, column: str, aside: float
) -> list[dict[str, Any]]:
    style, name = network_style(network, acting), line_name(network, acting)
    symbol = f"{style.symbol}-open" if acting != "trained" else style.symbol
    runs = [
        row
        for row in found.runs.to_dict("records")
        if row["run"] in found.progress and np.isfinite(row[column])
    ]
    means = [
        row
        for row in found.finals.to_dict("records")
        if (row["network"], row["acting"], row["group"]) == (network, acting, "test") and row["n"]
    ]
    common = {"legendgroup": name, "type": "scatter", "mode": "markers", "name": plain(name)}
    seeds = {
        **common,
        "x": [row[column] for row in runs],
        "y": [cells.index(row["cell"]) + aside for row in runs],
        "marker": {"symbol": symbol, "size": 5, "color": style.colour, "opacity": 0.45},
        "showlegend": False,
        "customdata": [[plain(row["run"]), plain(row["cell"])] for row in runs],
        "hovertemplate": f"<b>%{{customdata[0]}}</b> · {plain(name)}<br>test accuracy %{{x:.3f}}"
        "<br>%{customdata[1]}<extra></extra>",
    }
    widths = [
        [float(row[end]) - float(row["mean"]) if np.isfinite(row[end]) else 0.0 for row in means]
        for end in ("low", "high")
    ]
    middle = {
        **common,
        "x": [row["mean"] for row in means],
        "y": [cells.index(row["cell"]) + aside for row in means],
        "marker": {
            "symbol": symbol,
            "size": 10,
            "color": style.colour,
            "line": {"width": 1.5, "color": style.colour},
        },
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": widths[1],
            "arrayminus": [-low for low in widths[0]],
            "thickness": 1.8,
            "width": 4,
            "color": style.colour,
        },
        "showlegend": True,
        "customdata": [[plain(row["cell"]), interval_words(row)] for row in means],
        "hovertemplate": f"<b>%{{customdata[0]}}</b> · {plain(name)}<br>mean test accuracy "
        "%{x:.3f}<br>%{customdata[1]}<extra></extra>",
    }
    return [seeds, middle]


def _course(
    rows: list[dict[Any, Any]], axis: StepAxis, scale: StepScale, *, first: bool, visible: bool
) -> list[dict[str, Any]]:
    network, acting, group = (str(rows[0][name]) for name in ("network", "acting", "group"))
    style, name = network_style(network, acting), line_name(network, acting)
    steps = [int(row["step"]) for row in rows]
    x = axis.positions(steps, scale)
    cell = str(rows[0]["cell"])
    common = {
        "name": plain(name),
        "legendgroup": f"{cell} {name}",
        "visible": visible,
        "meta": cell,
    }
    line = {
        **common,
        "type": "scatter",
        "x": x,
        "y": [float(row["mean"]) for row in rows],
        "mode": "lines+markers" if len(steps) <= MANY_STEPS else "lines",
        "line": {"color": style.colour, "width": 2.2, "dash": style.dash},
        "marker": {"symbol": style.symbol, "size": 6, "color": style.colour},
        "showlegend": first,
        "customdata": [[row["step"], interval_words(row)] for row in rows],
        "hovertemplate": f"<b>{plain(name)}</b> · {plain(cell)} · step %{{customdata[0]:,d}}<br>"
        f"{GROUP_NAMES[group].lower()}: mean accuracy %{{y:.3f}}<br>%{{customdata[1]}}"
        "<extra></extra>",
    }
    low, high = ([float(row[end]) for row in rows] for end in ("low", "high"))
    behind = band(x, low, high, style)
    return [line] if behind is None else [{**behind, **common}, line]
