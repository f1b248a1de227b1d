"""Curves over the integers at one checkpoint: what heads look for (QK) and what they write (OV).

The only arithmetic is the difference that takes a constant out of the logits (two classes: class 1
minus class 0; more: minus the mean over classes).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from interp_shortcuts.plots.frame_canvas import FrameCanvas
from interp_shortcuts.plots.page_style import legend_rows
from interp_shortcuts.plots.palette import RULE, component_style
from interp_shortcuts.plots.panel import heads

_TITLE, _LEGEND, _CURVE, _TICKS, _CLASS = 44.0, 22.0, 190.0, 46.0, 20.0
_WIDTH = 290.0  # pixels of a legend row on a page 400 wide


def qk_height(data: xr.Dataset, *, with_legend: bool) -> float:
    """Pixels that the QK part takes."""
    return _TITLE + _legend_height(data, with_legend) + _CURVE + _TICKS


def ov_height(data: xr.Dataset, *, with_legend: bool) -> float:
    """Pixels that the OV part takes: one panel for two classes, else one per class."""
    n = data.sizes["class"]
    panels = _CURVE + _TICKS if n == 2 else n * (_CLASS + _CURVE + _TICKS)
    return _TITLE + _legend_height(data, with_legend) + panels


def draw_qk(canvas: FrameCanvas, data: xr.Dataset, top: float, *, with_legend: bool) -> None:
    """Adds the QK score of each integer, one line per head."""
    canvas.title(
        "QK score of each integer",
        "what a head looks for: its shape matters, not its level",
        top,
    )
    begin = _after_legend(canvas, data, top, with_legend)
    scores = data["qk_score"]
    _panel(canvas, data, scores, begin, "QK score", _span([scores]), in_legend=with_legend)


def draw_ov(canvas: FrameCanvas, data: xr.Dataset, top: float, *, with_legend: bool) -> None:
    """Adds what each head writes to the logits on attending to each integer."""
    logits = data["ov_logit"]
    classes = [int(c) for c in data["class"].values]
    if len(classes) == 2:
        heading = f"OV: logit of class {classes[1]} minus class {classes[0]}"
        canvas.title(heading, "what a head writes when it attends to the integer", top)
        curves = [logits.isel({"class": 1}) - logits.isel({"class": 0})]
        quantities = ["logit difference"]
    else:
        heading = "OV: logit of each class"
        canvas.title(heading, "what a head writes, minus the mean over classes", top)
        centred = logits - logits.mean("class")
        curves = [centred.isel({"class": index}) for index in range(len(classes))]
        quantities = [f"class {c}: logit minus mean" for c in classes]
    begin, span = _after_legend(canvas, data, top, with_legend), _span(curves)
    for number, (curve, quantity) in enumerate(zip(curves, quantities, strict=True)):
        if len(curves) > 1:
            canvas.label(f"class {classes[number]}", begin)
            begin += _CLASS
        first = with_legend and number == 0
        _panel(canvas, data, curve, begin, quantity, span, in_legend=first)
        begin += _CURVE + _TICKS


def _legend_height(data: xr.Dataset, with_legend: bool) -> float:
    names = [name for name, *_ in heads(data)]
    return _LEGEND * legend_rows(names, _WIDTH) if with_legend else 0.0


def _after_legend(canvas: FrameCanvas, data: xr.Dataset, top: float, with_legend: bool) -> float:
    if with_legend:
        canvas.legend(top + _TITLE - 4)
    return top + _TITLE + _legend_height(data, with_legend)


def _panel(
    canvas: FrameCanvas,
    data: xr.Dataset,
    values: xr.DataArray,
    top: float,
    quantity: str,
    span: tuple[float, float],
    *,
    in_legend: bool,
) -> None:
    """One line per head over the integers; values are [step layer head integer]."""
    integers = [int(v) for v in data["integer"].values]
    axes = canvas.axes(
        (0.0, 1.0),
        top,
        top + _CURVE,
        x={
            "gridcolor": RULE,
            "range": [integers[0] - 0.4, integers[-1] + 0.4],
            "dtick": 1 if len(integers) <= 12 else 5 if len(integers) <= 50 else 10,
            "ticks": "outside",
            "ticklen": 3,
            "tickcolor": RULE,
        },
        y={"gridcolor": RULE, "range": list(span), "zeroline": True, "zerolinecolor": "#9AA5B1"},
    )
    for index, (name, layer, head) in enumerate(heads(data)):
        curve = values.sel(layer=layer, head=head).transpose("step", "integer").values
        if not np.isfinite(curve).any():
            continue
        style = component_style(index)
        trace = {
            "type": "scatter",
            "x": integers,
            "mode": "lines+markers",
            "line": {"color": style.colour, "width": 2},
            "marker": {
                "symbol": style.symbol,
                "size": 7 if len(integers) <= 20 else 5,
                "color": style.colour,
            },
            "name": name,
            "legendgroup": name,
            "showlegend": in_legend,
            "hovertemplate": (
                f"<b>{name}</b> · integer %{{x}}<br>{quantity} %{{y:.4~g}}<extra></extra>"
            ),
            **axes,
        }
        canvas.add(trace, "y", curve)


def _span(curves: Sequence[xr.DataArray]) -> tuple[float, float]:
    """The range of all values at all steps, zero included, with a little room."""
    values = np.concatenate([curve.values.ravel() for curve in curves])
    finite = values[np.isfinite(values)]
    low, high = min(float(finite.min()), 0.0), max(float(finite.max()), 0.0)
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room
