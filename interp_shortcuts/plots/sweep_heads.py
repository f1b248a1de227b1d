"""Does phase 2 begin earlier with more heads? Every run's onset, by the number of heads."""

from __future__ import annotations

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import cell_style
from interp_shortcuts.plots.sweep_frame import (
    AXIS,
    check_drawable,
    fewer_than_two,
    framed,
    series_labels,
    spread,
)
from interp_shortcuts.plots.sweep_survival import missing_for_survival
from interp_shortcuts.sweeps.counted import counted
from interp_shortcuts.sweeps.survival import survival_summary

_WIDTH = 0.72


def missing_for_heads_onset(table: pd.DataFrame) -> str:
    """Why there is no figure of onsets over heads; empty if there is one."""
    return fewer_than_two(table, "n_heads") or missing_for_survival(table)


def heads_onset_figure(table: pd.DataFrame) -> go.Figure:
    """The onset of every run by the number of heads, with the median of each cell.

    Runs without an onset are drawn as open triangles where they were last seen; the median is that
    of the survival curve, in which they are censored.

    Args:
        table: The runs of a sweep, as `results` gives them.

    Raises:
        ConfigError: If all runs have as many heads, or no run has an onset.
    """
    check_drawable(missing_for_heads_onset(table))
    summary = survival_summary(table)
    labels = series_labels(table, summary, ("n_heads",))
    names = list(dict.fromkeys(labels))
    heads = sorted(summary["n_heads"].dropna().unique().tolist())
    runs = counted(table).to_dict("records")
    lane = _WIDTH / len(names)
    traces: list[dict[str, Any]] = []
    for index, name in enumerate(names):
        cells = [r for r, o in zip(summary.to_dict("records"), labels, strict=True) if o == name]
        centres = {
            row["cell"]: heads.index(row["n_heads"]) + lane * (index - (len(names) - 1) / 2)
            for row in cells
        }
        traces += _runs(runs, centres, name, index, lane)
        traces.append(_medians(cells, centres, name, index, lane))
    return framed(
        traces,
        title="When phase 2 begins, by the number of heads",
        reading="a dot is a run's onset, an open triangle a run that ended without one; bar: "
        "median with its 95% interval, to the end of training where its upper end is not reached",
        height=280.0,
        x={
            **AXIS,
            "range": [-0.5, len(heads) - 0.5],
            "tickvals": list(range(len(heads))),
            "ticktext": [str(value) for value in heads],
            "title": {"text": "heads per layer", "standoff": 6},
        },
        y={**AXIS, "rangemode": "tozero", "title": {"text": "training step", "standoff": 6}},
        left=66,
    )


def _runs(
    runs: list[dict[str, Any]], centres: dict[str, float], name: str, index: int, lane: float
) -> list[dict[str, Any]]:
    style = cell_style(index)
    found = []
    for had in (True, False):
        x, y, about = [], [], []
        for cell, centre in centres.items():
            own = [r for r in runs if r["cell"] == cell and pd.notna(r["onset"]) == had]
            places = spread(len(own), 0.05, 0.8 * lane)
            for row, place in zip(own, places, strict=True):
                x.append(centre + place)
                y.append(int(row["onset" if had else "last_step"]))
                about.append([plain(cell), row["seed"], row["outcome"]])
        text = "onset at step %{y:,d}" if had else "no onset up to step %{y:,d}"
        found.append(
            {
                "type": "scatter",
                "x": x,
                "y": y,
                "mode": "markers",
                "marker": {
                    "symbol": style.symbol if had else "triangle-up-open",
                    "size": 7,
                    "color": style.colour,
                    "opacity": 0.8,
                    "line": {"width": 1.5, "color": style.colour},
                },
                "name": name if had else f"{name}, no onset",
                "legendgroup": name,
                "showlegend": had,
                "customdata": about,
                "hovertemplate": "<b>%{customdata[0]}</b> · seed %{customdata[1]} · "
                f"%{{customdata[2]}}<br>{text}<extra></extra>",
            }
        )
    return found


def _medians(
    cells: list[dict[str, Any]], centres: dict[str, float], name: str, index: int, lane: float
) -> dict[str, Any]:
    style = cell_style(index)
    rows = [row for row in cells if pd.notna(row["median"])]
    medians = [int(row["median"]) for row in rows]

    def reach(row: dict[str, Any], end: str, *, otherwise: str) -> int:
        return abs(int(row[otherwise if pd.isna(row[end]) else end]) - int(row["median"]))

    def ends(row: dict[str, Any]) -> list[str]:
        return [
            "not reached" if pd.isna(row[end]) else f"{int(row[end]):,}"
            for end in ("median_low", "median_high")
        ]

    return {
        "type": "scatter",
        "x": [centres[row["cell"]] for row in rows],
        "y": medians,
        "mode": "markers",
        "marker": {
            "symbol": "line-ew-open",
            "size": max(14, round(60 * lane)),
            "color": style.colour,
            "line": {"width": 3, "color": style.colour},
        },
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [reach(row, "median_high", otherwise="n_steps") for row in rows],
            "arrayminus": [reach(row, "median_low", otherwise="median") for row in rows],
            "thickness": 1.5,
            "width": 5,
            "color": style.colour,
        },
        "name": f"{name}, median",
        "legendgroup": name,
        "showlegend": False,
        "customdata": [[plain(row["cell"]), row["events"], row["n"], *ends(row)] for row in rows],
        "hovertemplate": "<b>%{customdata[0]}</b><br>median onset %{y:,d}, 95% interval "
        "%{customdata[3]} to %{customdata[4]}<br>%{customdata[1]} of n = %{customdata[2]} had one"
        "<extra></extra>",
    }
