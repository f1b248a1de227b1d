"""Hidden progress: the accuracy of a network, and of its parts G and R, over training.

The events are found in `timelines.hidden_progress`, the parts measured in `measures/modular`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import group_style, network_style
from interp_shortcuts.plots.stacked import Part, stacked
from interp_shortcuts.plots.step_axis import StepAxis, StepScale
from interp_shortcuts.plots.step_drawing import checked_scale
from interp_shortcuts.plots.sweep_frame import RATE_AXIS, check_drawable
from interp_shortcuts.timelines.hidden_progress import (
    FILTERED,
    HiddenProgress,
    curve_bounds,
    group_curves,
    network_curve,
)
from interp_shortcuts.timelines.hidden_tables import group_sizes
from interp_shortcuts.timelines.layout import measured_part
from interp_shortcuts.timelines.timeline import Timeline

DRAWN = ("full", "G", "R")
"""Networks that are drawn at first sight; the others are switched on in the legend."""
AT_SIGHT = ("trained", "quadratic")
"""Activations that are drawn at first sight for G and R."""
GROUP_NAMES = {
    "test": "Test pairs",
    "clean": "Clean training labels",
    "noisy": "Noisy training labels, as given",
    "noisy_true": "Noisy training labels, against the true answer",
    "train": "All training labels, as given",
}
MANY_STEPS = 40
"""With more steps than this, lines have no markers."""
_PARTS = ("test", "clean", "noisy")


def missing_for_progress(data: xr.Dataset) -> str:
    """Why the accuracies over training cannot be drawn; empty if they can."""
    return "" if group_curves(data)[0] or FILTERED in data else "no group was measured"


def progress_figure(
    timeline: Timeline, found: HiddenProgress, *, step_scale: StepScale | str = "log"
) -> go.Figure:
    """Accuracy over steps on test pairs, on clean and on noisy training labels, a line a network.

    Dotted uprights mark the steps from which a network has the threshold for good.

    Args:
        timeline: What was measured.
        found: What `timelines.find_hidden_progress` gave of it.
        step_scale: `"linear"` or `"log"`.

    Raises:
        ConfigError: If nothing was measured, or the scale is unknown.
    """
    data = timeline.data
    check_drawable(missing_for_progress(data))
    scale = checked_scale(step_scale)
    lines = _lines(data)
    steps = sorted({step for own in lines.values() for step in own[0]})
    axis = StepAxis(tuple(steps))
    chance = data.attrs.get("chance")
    parts = []
    for group in _PARTS:
        traces = [
            _trace(key, own, axis, scale, first=not parts, about=_about(data, key, own[0]))
            for key, own in sorted(lines.items(), key=lambda item: item[0][0] == "full")
            if key[2] == group
        ]
        if any(np.isfinite(trace["y"]).any() for trace in traces):
            levels = (found.threshold, *((float(chance),) if chance else ()))
            name = GROUP_NAMES[group]
            parts.append(Part(name, traces, {**RATE_AXIS, "title": _ACCURACY}, levels))
    dated = [event.step for event in (found.full, *found.hidden.values()) if event.step is not None]
    known = ", chance" if chance else ""
    # the network itself is drawn over its parts: at chance it would be hidden by R
    return stacked(
        parts,
        right=22,
        title="Hidden progress",
        reading="accuracy of the network itself (full), of network G (the dominant frequency of "
        "every vector) and of network R (the rest); dashed: with the quadratic activation in "
        f"place of the trained one; dotted: {found.threshold:g}{known}; upright: "
        f"{found.threshold:g} on test pairs for good",
        x={**axis.layout(scale), "title": {"text": "training step", "standoff": 6}},
        uprights=axis.positions(sorted(set(dated)), scale),
    )


_ACCURACY = {"text": "accuracy", "standoff": 6}
_Key = tuple[str, str, str]
_Line = tuple[tuple[int, ...], np.ndarray]


def _lines(data: xr.Dataset) -> Mapping[_Key, _Line]:
    """Every curve by network, activation and group; the network itself once."""
    steps, groups = group_curves(data)
    found: dict[_Key, _Line] = {
        ("full", "trained", group): (steps, groups[group]) for group in _PARTS if group in groups
    }
    if FILTERED not in data:
        return found
    array = measured_part(data[FILTERED])
    for network in map(str, array["network"].to_numpy()):
        for acting in map(str, array["acting"].to_numpy()):
            if network not in DRAWN and acting != "trained":
                continue
            curves = {group: network_curve(data, network, acting, group) for group in _PARTS}
            if acting == "trained" or not _same(found, network, curves):
                for group, line in curves.items():
                    found.setdefault((network, acting, group), line)
    return found


def _same(found: Mapping[_Key, _Line], network: str, curves: Mapping[str, _Line]) -> bool:
    """Whether an activation gives what the trained one does, since it is the trained one."""
    trained = [found.get((network, "trained", group)) for group in curves]
    return all(
        own is not None and own[0] == line[0] and np.array_equal(own[1], line[1], equal_nan=True)
        for own, line in zip(trained, curves.values(), strict=True)
    )


def _trace(
    key: _Key, line: _Line, axis: StepAxis, scale: StepScale, *, first: bool, about: list[list[Any]]
) -> dict[str, Any]:
    network, acting, group = key
    steps, values = line
    style = network_style(network, acting)
    at_sight = network in DRAWN and acting in AT_SIGHT
    at_sight = at_sight and (network != "full" or acting == "trained")
    name = line_name(network, acting)
    rank = (*DRAWN, network).index(network)
    return {
        "type": "scatter",
        "x": axis.positions(steps, scale),
        "y": values,
        "mode": "lines+markers" if len(steps) <= MANY_STEPS else "lines",
        "line": {"color": style.colour, "width": 2.2, "dash": style.dash},
        "marker": {"symbol": style.symbol, "size": 6, "color": style.colour},
        "name": plain(name),
        "legendgroup": name,
        "legendrank": 1000 + rank,
        "showlegend": first,
        "visible": True if at_sight else "legendonly",
        "customdata": about,
        "hovertemplate": f"<b>{plain(name)}</b> · step %{{customdata[0]:,d}}<br>"
        f"{GROUP_NAMES[group].lower()}: accuracy %{{y:.3f}}%{{customdata[1]}}<extra></extra>",
    }


def _about(data: xr.Dataset, key: _Key, steps: Sequence[int]) -> list[list[Any]]:
    """Of each point its step, and its interval and n in words."""
    bounds, n = curve_bounds(data, *key), group_sizes(data).get(key[2])
    size = "" if n is None else f"<br>n = {n:,}"
    if bounds is None:
        return [[step, size] for step in steps]
    return [
        [step, f", 95% interval {low:.3f} to {high:.3f}{size}"]
        for step, low, high in zip(steps, *(end.tolist() for end in bounds), strict=True)
    ]


def line_name(network: str, acting: str) -> str:
    """`full`, `G`, `G, quadratic`: the activation is named where it was swapped."""
    swapped = "" if acting == "trained" else f", {acting.replace('_', ' ')}"
    return f"{network}{swapped}"


def group_figure(timeline: Timeline, *, step_scale: StepScale | str = "log") -> go.Figure:
    """Accuracy and loss of the network itself over steps, a line a group of examples.

    Args:
        timeline: What was measured.
        step_scale: `"linear"` or `"log"`.

    Raises:
        ConfigError: If no group was measured, or the scale is unknown.
    """
    data = timeline.data
    check_drawable(missing_for_groups(data))
    scale = checked_scale(step_scale)
    steps, accuracy = group_curves(data)
    loss_steps, loss = group_curves(data, "group_loss")
    axis = StepAxis(tuple(sorted({*steps, *loss_steps})))
    rate = {**RATE_AXIS, "title": _ACCURACY}
    parts = [Part("Accuracy", _groups(steps, accuracy, "accuracy", axis, scale), rate)]
    if loss:
        y = {"title": {"text": "loss (nats)", "standoff": 6}, "rangemode": "tozero"}
        parts.append(Part("Loss", _groups(loss_steps, loss, "loss", axis, scale), y))
    return stacked(
        parts,
        right=22,
        title="What is fitted, and when",
        reading="the network itself; clean and noisy are training labels, noisy_true the same "
        "examples as noisy against the true answer",
        x={**axis.layout(scale), "title": {"text": "training step", "standoff": 6}},
    )


def missing_for_groups(data: xr.Dataset) -> str:
    """Why the groups cannot be drawn; empty if they can."""
    return "" if group_curves(data)[0] else "group_accuracy was not measured"


def _groups(
    steps: Sequence[int],
    curves: Mapping[str, np.ndarray],
    what: str,
    axis: StepAxis,
    scale: StepScale,
) -> list[dict[str, Any]]:
    traces = []
    for name, values in curves.items():
        if not np.isfinite(values).any():
            continue
        style = group_style(name)
        words = GROUP_NAMES.get(name, name).lower()
        traces.append(
            {
                "type": "scatter",
                "x": axis.positions(steps, scale),
                "y": values,
                "mode": "lines+markers" if len(steps) <= MANY_STEPS else "lines",
                "line": {"color": style.colour, "width": 2, "dash": style.dash},
                "marker": {"symbol": style.symbol, "size": 6, "color": style.colour},
                "name": plain(name),
                "legendgroup": name,
                "showlegend": what == "accuracy",
                "customdata": list(steps),
                "hovertemplate": f"<b>{plain(name)}</b> · step %{{customdata:,d}}<br>"
                f"{plain(words)}: {what} %{{y:.4~g}}<extra></extra>",
            }
        )
    return traces
