"""How one line, interval, reference or half-way mark of a panel becomes a Plotly trace.

What they hold is chosen in `panels.py`; where panels lie is decided in `timeline.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from interp_shortcuts.plots.panel import Line, Panel, Reference
from interp_shortcuts.plots.step_axis import StepAxis, StepScale


@dataclass(frozen=True)
class StepTrace:
    """A trace over steps, before it is known on which scale the steps are drawn.

    Attributes:
        trace: Everything but x.
        steps: Its steps; None separates the pieces of an outline.
        text_side: Plotly's `textposition` on each scale.
    """

    trace: dict[str, Any]
    steps: tuple[int | float | None, ...]
    text_side: Mapping[StepScale, str] | None = None

    def drawn(self, axis: StepAxis, scale: StepScale) -> dict[str, Any]:
        """The trace with its x values."""
        side = {} if self.text_side is None else {"textposition": self.text_side[scale]}
        return {"type": "scatter", **self.trace, **side, "x": axis.positions(self.steps, scale)}


def line_trace(line: Line, panel: Panel, axes: Mapping[str, str], *, in_legend: bool) -> StepTrace:
    """The line itself; its hover tells step, component, value, interval and n."""
    quantity = line.quantity or panel.quantity
    hover = f"<b>{line.label}</b> · step %{{customdata[0]:,d}}<br>{quantity} %{{y:.4~g}}"
    columns = [np.asarray(line.steps, dtype=np.float32)]
    if line.low is not None and line.high is not None:
        hover += "<br>95% interval %{customdata[1]:.4~g} to %{customdata[2]:.4~g}"
        columns += [line.low, line.high]
    if line.n is not None:
        hover += f"<br>n = %{{customdata[{len(columns)}]:,d}}"
        columns.append(line.n)
    style = line.style
    trace = {
        "y": line.values.astype(np.float32),
        "mode": "lines" if line.faint else "lines+markers",
        "line": {
            "width": 1.3 if line.faint else 2,
            "color": style.colour,
            "dash": "dash" if line.faint else style.dash,
        },
        "marker": {"symbol": style.symbol, "size": 6, "color": style.colour, "maxdisplayed": 9},
        "name": line.group if in_legend else line.label,
        "legendgroup": line.group,
        "showlegend": in_legend,
        "customdata": np.stack(columns, axis=1).astype(np.float32),
        "hovertemplate": hover + "<extra></extra>",
        **_first_sight(line),
        **axes,
    }
    return StepTrace(trace, line.steps)


def _first_sight(line: Line) -> dict[str, Any]:
    return {"visible": "legendonly"} if line.hidden else {}


def band_trace(line: Line, panel: Panel, axes: Mapping[str, str]) -> StepTrace | None:
    """The line's 95% interval; None where there is none."""
    if line.low is None or line.high is None:
        return None
    low, high = line.low, line.high
    if panel.log:  # an interval may reach below zero, where a logarithmic axis ends
        positive = line.values[line.values > 0]
        low = np.where(low <= 0, positive.min() if positive.size else np.nan, low)
        high = np.where(high > 0, high, np.nan)
    outline, heights = _outline(line.steps, low, high)
    if not outline:
        return None
    trace = {
        "y": heights,
        "mode": "lines",
        "fill": "toself",
        "fillcolor": line.style.band(0.08 if line.faint else 0.16),
        "line": {"width": 0, "color": line.style.colour},
        "legendgroup": line.group,
        "showlegend": False,
        "name": f"{line.label}, interval",
        "hoverinfo": "skip",
        **_first_sight(line),
        **axes,
    }
    return StepTrace(trace, tuple(outline))


def reference_trace(
    reference: Reference, steps: Sequence[int], axes: Mapping[str, str]
) -> StepTrace:
    """A dotted level."""
    trace = {
        "y": reference.values.astype(np.float32),
        "mode": "lines",
        "line": {"width": 1.2, "color": reference.colour or "#7B8794", "dash": "dot"},
        "name": reference.text or "reference",
        "showlegend": False,
        "hoverinfo": "skip",
        **({"legendgroup": reference.group} if reference.group else {}),
        **axes,
    }
    return StepTrace(trace, tuple(steps))


def half_way_trace(
    line: Line,
    panel: Panel,
    axes: Mapping[str, str],
    *,
    step: int,
    text: str,
) -> StepTrace:
    """A ring on the line where it stands half way between its phase-1 and its final level."""
    value = float(line.values[line.steps.index(step)])
    trace = {
        "y": [value],
        "mode": "markers",
        "marker": {
            "symbol": "circle-open",
            "size": 13,
            "color": line.style.colour,
            "line": {"width": 2.5, "color": line.style.colour},
        },
        "name": f"{line.label}, half way",
        "legendgroup": line.group,
        "showlegend": False,
        "hovertemplate": (
            f"<b>{line.label}</b> · step {step:,} · half way<br>{panel.quantity} %{{y:.4~g}}"
            f"<br>{text}<extra></extra>"
        ),
        **_first_sight(line),
        **axes,
    }
    return StepTrace(trace, (step,))


def _outline(
    steps: Sequence[int], low: np.ndarray, high: np.ndarray
) -> tuple[list[int | float | None], list[float | None]]:
    """The outline of an interval: one closed piece per unbroken run of defined steps."""
    defined = np.isfinite(low) & np.isfinite(high)
    xs: list[int | float | None] = []
    ys: list[float | None] = []
    for piece in np.split(np.arange(len(steps)), np.flatnonzero(np.diff(defined)) + 1):
        if not piece.size or not defined[piece[0]]:
            continue
        if xs:
            xs.append(None)
            ys.append(None)
        xs += [steps[i] for i in piece] + [steps[i] for i in piece[::-1]]
        ys += [float(f"{high[i]:.5g}") for i in piece]
        ys += [float(f"{low[i]:.5g}") for i in piece[::-1]]
    return xs, ys
