"""A canvas on which traces get their values at every checkpoint, and the slider that moves them.

Parts are placed from top to bottom in pixels. What the parts show is left to `attention_maps` and
`integer_curves`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from interp_shortcuts.plots.page_style import base_layout, heading, legend, title
from interp_shortcuts.plots.palette import INK, MUTED

_MARGIN = {"l": 62, "r": 12, "t": 104, "b": 8, "pad": 0}


class FrameCanvas:
    """Traces, axes and texts of a figure with one frame per step.

    Args:
        steps: The recorded steps.
        active: Index of the step at first sight.
        height: Pixels of the plotting area.
    """

    def __init__(self, steps: Sequence[int], *, active: int, height: float) -> None:
        self.steps = list(steps)
        self.active = active
        self.height = height
        self.traces: list[dict[str, Any]] = []
        self._frames: list[list[dict[str, Any]]] = [[] for _ in self.steps]
        self._layout: dict[str, Any] = {}
        self._annotations: list[dict[str, Any]] = []
        self._n_axes = 0

    def title(self, text: str, reading: str, top: float) -> None:
        """A part's heading at the left margin."""
        self._text(title(text, reading), top, size=13, shift=4.0 - _MARGIN["l"])

    def note(self, text: str, top: float) -> None:
        """A line in small at the left margin."""
        self._text(text, top, size=11, colour=MUTED, shift=4.0 - _MARGIN["l"])

    def label(self, text: str, top: float, x: float = 0.0) -> None:
        """A label over axes that begin at `x` (fraction of the plotting area)."""
        self._text(text, top, size=12, x=x)

    def _text(self, text: str, top: float, **options: Any) -> None:
        y = 1 - top / self.height
        self._annotations.append(heading(text, y, **{"colour": INK, **options}))

    def legend(self, top: float) -> None:
        """Puts the legend below `top`."""
        self._layout["legend"] = legend(1 - top / self.height)

    def axes(
        self,
        across: tuple[float, float],
        top: float,
        bottom: float,
        *,
        x: Mapping[str, Any],
        y: Mapping[str, Any],
    ) -> dict[str, str]:
        """New axes; returns the names that a trace needs.

        Args:
            across: Left and right end as fractions of the plotting area.
            top: Pixels.
            bottom: Pixels.
            x: Settings of the x axis.
            y: Settings of the y axis.
        """
        self._n_axes += 1
        suffix = "" if self._n_axes == 1 else str(self._n_axes)
        common = {"fixedrange": True, "zeroline": False, "tickfont": {"size": 11}}
        down = [1 - bottom / self.height, 1 - top / self.height]
        self._layout[f"xaxis{suffix}"] = {
            **common,
            "domain": list(across),
            "anchor": f"y{suffix}",
            **x,
        }
        self._layout[f"yaxis{suffix}"] = {**common, "domain": down, "anchor": f"x{suffix}", **y}
        return {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}

    def add(self, trace: dict[str, Any], key: str, values: np.ndarray) -> None:
        """A trace whose `key` takes `values[step]`, shown to four decimals."""
        self.add_moving(trace, {key: values})

    def add_moving(self, trace: dict[str, Any], values: Mapping[str, np.ndarray]) -> None:
        """A trace of which each key takes its `values[step]`, shown to four decimals."""
        rounded = {
            key: np.round(np.asarray(value, dtype=np.float64), 4) for key, value in values.items()
        }
        now = {key: _json_list(value[self.active]) for key, value in rounded.items()}
        self.traces.append({**trace, **now})
        for place, frame in enumerate(self._frames):
            own = {key: _json_list(value[place]) for key, value in rounded.items()}
            frame.append({"type": trace["type"], **own})

    def add_marked(self, trace: dict[str, Any], marker: dict[str, Any], values: np.ndarray) -> None:
        """A trace whose markers take the colours `values[step]`, on the marker's colour scale."""
        rounded = np.round(np.asarray(values, dtype=np.float64), 4)
        colours = [{**marker, "color": _json_list(value)} for value in rounded]
        self.traces.append({**trace, "marker": colours[self.active]})
        for frame, value in zip(self._frames, rounded, strict=True):
            frame.append({"type": trace["type"], "marker": {"color": _json_list(value)}})

    def figure(self) -> go.Figure:
        """The figure, with a slider and a play button above it."""
        layout = {
            **self._layout,
            **base_layout(self.height, _MARGIN),
            "dragmode": False,
            "annotations": self._annotations,
        }
        if not self.traces:
            return go.Figure(layout=layout)
        # scatter traces move without a redraw, which takes several times as long
        still = {
            "mode": "immediate",
            "frame": {"duration": 0, "redraw": False},
            "transition": {"duration": 0},
        }
        layout.update(sliders=[self._slider(still)], updatemenus=[self._play(still)])
        numbers = list(range(len(self.traces)))
        frames = [
            {"name": str(step), "data": frame, "traces": numbers}
            for step, frame in zip(self.steps, self._frames, strict=True)
        ]
        return go.Figure(self.traces, layout, frames)

    def _slider(self, still: dict[str, Any]) -> dict[str, Any]:
        return {
            "active": self.active,
            "steps": [
                {"label": f"{step:,}", "method": "animate", "args": [[str(step)], still]}
                for step in self.steps
            ],
            "currentvalue": {
                "prefix": "checkpoint at step ",
                "font": {"size": 14, "color": INK},
                "offset": 10,
            },
            "x": 0,
            "len": 1,
            "y": 1,
            "yanchor": "bottom",
            "pad": {"t": 0, "l": 42, "r": 6, "b": 12},
            "font": {"size": 10, "color": MUTED},
            "ticklen": 4,
            "minorticklen": 2,
            "bordercolor": "#CBD2D9",
            "activebgcolor": "#94C2E0",
        }

    def _play(self, still: dict[str, Any]) -> dict[str, Any]:
        playing = {**still, "fromcurrent": True, "frame": {**still["frame"], "duration": 150}}
        return {
            "type": "buttons",
            "direction": "left",
            "showactive": False,
            "x": 0,
            "xanchor": "left",
            "y": 1,
            "yanchor": "bottom",
            "pad": {"t": 0, "l": 4 - _MARGIN["l"], "r": 0, "b": 26},
            "font": {"size": 12},
            "bgcolor": "white",
            "bordercolor": "#CBD2D9",
            "buttons": [
                {"label": "▶", "method": "animate", "args": [None, playing]},
                {"label": "❚❚", "method": "animate", "args": [[None], still]},
            ],
        }


def _json_list(values: np.ndarray) -> list[Any]:
    """Nested lists with None for undefined values, as JSON has no NaN."""
    return np.where(np.isfinite(values), values, np.array(None, dtype=object)).tolist()
