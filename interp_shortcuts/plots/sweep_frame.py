"""What the figures of a sweep share: heading, axes, legend below, dots side by side, missing data.

The numbers come from `sweeps`; nothing is computed here but where on the page a mark goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.page_style import base_layout, heading, legend, legend_rows, wrap
from interp_shortcuts.plots.palette import INK, MUTED, RULE
from interp_shortcuts.sweeps.settings import setting_label, varying_fields

HEADING_ROW, READING_ROW, LEGEND_ROW = 20, 15, 21
TITLE_WIDTH = 44
"""Characters of a bold heading of 13 pixels that fit a page 400 pixels wide."""
ENTRY_WIDTH = 40
"""Characters of a line of the legend."""
READING_WIDTH = 64
"""Characters of 11 pixels that fit a page 400 pixels wide."""
AXIS = {
    "gridcolor": RULE,
    "zeroline": False,
    "fixedrange": True,
    "ticks": "outside",
    "ticklen": 3,
    "tickcolor": RULE,
}
RATE_AXIS = {**AXIS, "range": [-0.04, 1.04], "tickvals": [0, 0.25, 0.5, 0.75, 1]}
MANY_RUNS = 40
"""With more runs than this in one place, single runs are not drawn as dots."""


def framed(
    traces: Sequence[Mapping[str, Any]],
    *,
    title: str,
    reading: str,
    height: float,
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    left: int = 44,
    right: int = 12,
    bottom: int = 46,
    above: int = 0,
    annotations: Iterable[Mapping[str, Any]] = (),
    **layout: Any,
) -> go.Figure:
    """A figure with one pair of axes, its heading above and its legend below.

    Args:
        traces: Plotly traces; those with `showlegend` make the legend.
        title: Heading, markup-safe.
        reading: How to read it, markup-safe; wrapped so that it fits 400 pixels.
        height: Pixels of the plotting area.
        x: The x axis.
        y: The y axis.
        left: Pixels left of the plotting area.
        right: Pixels right of it.
        bottom: Pixels between plotting area and legend.
        above: Pixels between heading and plotting area that are left free, as for a menu.
        annotations: More texts.
        layout: Further parts of the layout.
    """
    lines = wrap(reading, READING_WIDTH)
    traces = [{**trace, "name": _folded(str(trace["name"]))} for trace in traces]
    shown = [trace for trace in traces if trace["showlegend"] and trace.get("visible") is not False]
    names = [str(trace["name"]) for trace in shown]
    titles = wrap(title, TITLE_WIDTH)
    top = HEADING_ROW * len(titles) + READING_ROW * len(lines) + 12 + above
    below = bottom + (LEGEND_ROW * _rows(names) + 4 if names else 0)
    margin = {"l": left, "r": right, "t": top, "b": round(below), "pad": 0}
    small = f"<span style='font-size:11px;color:{MUTED}'>{'<br>'.join(lines)}</span>"
    head = {
        **heading(
            f"<b>{'<br>'.join(titles)}</b><br>{small}", 1.0, size=13, colour=INK, shift=6.0 - left
        ),
        "yanchor": "bottom",
        "yshift": 8 + above,
    }
    whole = {
        **base_layout(height, margin),
        "xaxis": dict(x),
        "yaxis": dict(y),
        "dragmode": False,
        "showlegend": bool(names),
        "legend": {**legend(-bottom / height), "xanchor": "left", "itemsizing": "constant"},
        "annotations": [head, *(dict(item) for item in annotations)],
        **layout,
    }
    return go.Figure(traces, whole)


def _folded(name: str) -> str:
    """A legend entry on as many lines as it needs."""
    return "<br>".join(wrap(name, ENTRY_WIDTH))


def _rows(names: Sequence[str]) -> int:
    """Rows of the legend on a page 400 pixels wide."""
    folded = sum(name.count("<br>") + 1 for name in names if "<br>" in name)
    single = [name for name in names if "<br>" not in name]
    return folded + (legend_rows(single) if single else 0)


def check_drawable(missing: str) -> None:
    """Refuses to draw a figure for which there is nothing to show.

    Raises:
        ConfigError: With the reason, if there is one.
    """
    if missing:
        raise ConfigError(f"The figure cannot be drawn: {missing}.")


def fewer_than_two(table: pd.DataFrame, field: str) -> str:
    """Why a figure over the values of a field cannot be drawn; empty if it can."""
    values = sorted(table[field].dropna().unique().tolist())
    if len(values) > 1:
        return ""
    only = f" ({values[0]:g})" if values and isinstance(values[0], int | float) else ""
    return f"the runs have one {field} only{only}" if values else "there are no runs"


def series_labels(table: pd.DataFrame, rows: pd.DataFrame, apart_from: Iterable[str]) -> list[str]:
    """For each row of settings the label of the line that it belongs to.

    Args:
        table: The runs, which say what varies.
        rows: One row a cell.
        apart_from: Fields that are drawn along the axis.
    """
    axis = set(apart_from)
    fields = [name for name in varying_fields(table) if name not in axis]
    labels = [
        setting_label(dict(zip(fields, values, strict=True)))
        for values in rows.reindex(columns=fields).itertuples(index=False)
    ]
    return [plain(label) if label else "all cells" for label in labels]


def spread(count: int, gap: float, most: float) -> list[float]:
    """Places of `count` dots around 0, `gap` apart, or closer so as to take at most `most`."""
    step = min(gap, most / max(count - 1, 1))
    return [step * (index - (count - 1) / 2) for index in range(count)]
