"""Which labels are fitted first: accuracies over steps with their intervals over seeds, by setting.

The numbers come from `sweeps/noise_order.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import MUTED, Style, group_style
from interp_shortcuts.plots.stacked import Part, stacked
from interp_shortcuts.plots.step_axis import StepAxis, StepScale
from interp_shortcuts.plots.step_drawing import checked_scale
from interp_shortcuts.plots.sweep_frame import RATE_AXIS
from interp_shortcuts.sweeps.settings import groups

_BLIND = Style(MUTED, "dot")
_NAMES = {
    "clean": "clean labels",
    "noisy": "noisy labels, as given",
    "noisy_true": "noisy ones, against the true label",
    "test": "test",
    "blind": "noisy labels, if none were fitted",
}


def noise_order_figure(
    course: pd.DataFrame, *, chance: float, step_scale: str = "log"
) -> go.Figure:
    """Accuracy over steps on clean and on noisy labels, one pair of axes for each setting.

    Lines are means over seeds, bands their 95% t intervals; the dotted level is chance, the dotted
    line what a network gives that has fitted no noisy label.

    Args:
        course: What `noise_course` gives.
        chance: Accuracy of guessing, a fraction.
        step_scale: `"linear"` or `"log"`.

    Raises:
        ConfigError: If there is nothing to draw, or the scale is unknown.
    """
    if course.empty:
        raise ConfigError("`course` must hold at least one run; got none.")
    scale = checked_scale(step_scale)
    axis = StepAxis(tuple(sorted({int(row["step"]) for row in course.to_dict("records")})))
    parts = []
    for (setting,), rows in groups(course, ["setting"]):
        traces: list[dict[str, Any]] = []
        for name in _NAMES:
            line = [row for row in rows.to_dict("records") if row["course"] == name and row["n"]]
            if line:
                traces += _line(name, line, axis, scale, first=not parts)
        n = max(int(row["n"]) for row in rows.to_dict("records"))
        parts.append(Part(f"{plain(str(setting))} (n = {n} seeds)", traces, RATE_AXIS, [chance]))
    return stacked(
        parts,
        right=22,
        title="Which labels are fitted first",
        reading="accuracy of the network, mean and 95% t interval over seeds; dotted line: what "
        f"the noisy labels would give if none were fitted; dotted level: chance, {chance:.3g}",
        x={**axis.layout(scale), "title": {"text": "training step", "standoff": 6}},
    )


def _line(
    name: str,
    line: Sequence[Mapping[Any, Any]],
    axis: StepAxis,
    scale: StepScale,
    *,
    first: bool,
) -> list[dict[str, Any]]:
    style = _BLIND if name == "blind" else group_style(name)
    x = axis.positions([row["step"] for row in line], scale)
    about = {"type": "scatter", "mode": "lines", "legendgroup": name, "name": _NAMES[name]}
    trace = {
        **about,
        "x": x,
        "y": [row["mean"] for row in line],
        "line": {"color": style.colour, "width": 2.2, "dash": style.dash},
        "showlegend": first,
        "customdata": [[row[key] for key in ("step", "low", "high", "n")] for row in line],
        "hovertemplate": f"<b>{_NAMES[name]}</b> · step %{{customdata[0]:,d}}<br>accuracy "
        "%{y:.3f}, 95% interval %{customdata[1]:.3f} to %{customdata[2]:.3f}<br>"
        "n = %{customdata[3]} seeds<extra></extra>",
    }
    low, high = ([row[end] for row in line] for end in ("low", "high"))
    if name == "blind" or np.isnan([*low, *high]).any():
        return [trace]
    band = {
        **about,
        "x": [*x, *reversed(x)],
        "y": [*high, *reversed(low)],
        "fill": "toself",
        "fillcolor": style.band(0.16),
        "line": {"width": 0, "color": style.colour},
        "showlegend": False,
        "hoverinfo": "skip",
    }
    return [band, trace]
