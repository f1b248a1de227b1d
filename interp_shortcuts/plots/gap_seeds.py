"""rho of every seed, with the mean and its interval."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import INK, MUTED, OKABE_ITO
from interp_shortcuts.plots.sweep_frame import AXIS, check_drawable, framed
from interp_shortcuts.timelines.gap_over_seeds import GapOverSeeds

_ROW = 20.0


def missing_for_seed_rho(found: GapOverSeeds) -> str:
    """Why rho of the seeds cannot be drawn; empty if it can."""
    return "" if found.rho.n else "no seed defines rho"


def seed_rho_figure(found: GapOverSeeds) -> go.Figure:
    """A row a run: Spearman's rho at its end; below, the mean with its 95% t interval.

    Runs without rho are left out; the table of the page names them with the reason.

    Args:
        found: What `timelines.gaps_over_seeds` gave.

    Raises:
        ConfigError: If no run defines rho.
    """
    check_drawable(missing_for_seed_rho(found))
    rows = [row for row in found.seeds.to_dict("records") if np.isfinite(row["rho"])]
    mean = found.rho
    low, high = (float(end) if np.isfinite(end) else mean.mean for end in (mean.low, mean.high))
    dots = {
        "type": "scatter",
        "x": [row["rho"] for row in rows],
        "y": list(range(len(rows))),
        "mode": "markers",
        "marker": {"symbol": "circle", "size": 9, "color": OKABE_ITO[0]},
        "name": "a seed",
        "showlegend": True,
        "customdata": [
            [plain(row["run"]), plain(row["heroes"]) or "none", plain(row["bloats"]) or "none"]
            for row in rows
        ],
        "hovertemplate": "<b>%{customdata[0]}</b><br>rho %{x:.3f}, "
        f"n = {len(found.components)} components<br>heroes: %{{customdata[1]}}<br>"
        "bloats: %{customdata[2]}<extra></extra>",
    }
    middle = {
        "type": "scatter",
        "x": [mean.mean],
        "y": [len(rows)],
        "mode": "markers",
        "marker": {"symbol": "diamond", "size": 12, "color": INK},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [high - mean.mean],
            "arrayminus": [mean.mean - low],
            "thickness": 2.5,
            "width": 5,
            "color": INK,
        },
        "name": "mean with its 95% t interval",
        "showlegend": True,
        "hovertemplate": f"<b>mean</b> %{{x:.3f}}, sd {mean.sd:.3f}<br>95% t interval "
        f"{mean.low:.3f} to {mean.high:.3f}<br>bootstrap over seeds {mean.bootstrap_low:.3f} to "
        f"{mean.bootstrap_high:.3f}<br>n = {mean.n} seeds<extra></extra>",
    }
    names = [plain(row["run"]) for row in rows]
    return framed(
        [dots, middle],
        title="rho of every seed at its end",
        reading=f"Spearman's rho of {plain(found.method)} and {plain(found.reference)} over the "
        "components",
        height=_ROW * (len(rows) + 1) + 12,
        x={
            **AXIS,
            "range": [min(-0.25, low - 0.08, *(row["rho"] - 0.08 for row in rows)), 1.06],
            "zeroline": True,
            "zerolinecolor": MUTED,
            "zerolinewidth": 1,
            "title": {"text": "rho", "standoff": 6},
        },
        y={
            **AXIS,
            "showgrid": False,
            "ticks": "",
            "range": [len(rows) + 0.6, -0.6],
            "tickvals": list(range(len(rows) + 1)),
            "ticktext": [*(_short(name) for name in names), "<b>mean</b>"],
        },
        left=118,
    )


def _short(name: str) -> str:
    """The end of a long name, where the seed stands."""
    return name if len(name) <= 17 else f"…{name[-16:]}"
