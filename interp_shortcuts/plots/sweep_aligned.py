"""Circuit timelines over seeds, aligned at the onset: median and quartiles, panel by panel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.page_style import base_layout, heading, legend, legend_rows, wrap
from interp_shortcuts.plots.palette import (
    INK,
    MUTED,
    Style,
    component_styles,
    split_style,
)
from interp_shortcuts.plots.sweep_frame import (
    AXIS,
    HEADING_ROW,
    LEGEND_ROW,
    READING_ROW,
    READING_WIDTH,
    TITLE_WIDTH,
)
from interp_shortcuts.sweeps.alignment import Aligned
from interp_shortcuts.sweeps.settings import groups, rows_where

_PANEL, _TITLE, _GAP = 150.0, 22.0, 26.0
_BOTTOM = 44
_RANKED = re.compile(r"L(\d+) head (\d+)")
_PANELS: tuple[tuple[str, tuple[str, ...], tuple[float, float] | None], ...] = (
    ("Accuracy", ("adversarial_accuracy", "validation_accuracy"), (-0.04, 1.04)),
    ("QK Spearman", ("qk_spearman",), (-1.05, 1.05)),
    ("OV class fraction", ("ov_class_fraction",), (-0.04, 1.04)),
    ("Rule transfer", ("rule_transfer",), (-0.04, 1.04)),
    ("Shortcut transfer", ("shortcut_transfer",), (-0.04, 1.04)),
    ("Gradient cosine, consistent against anti", ("gradient_cosine",), (-1.08, 1.08)),
    ("Gradient amplification over its floor r/(1−r)", ("gradient_excess",), None),
)


def missing_for_aligned(aligned: Aligned | None) -> str:
    """Why there are no aligned timelines to show; empty if there are."""
    if aligned is None:
        return "no run was tracked"
    if aligned.curves.empty:
        return "no tracked run has an onset to align at"
    return ""


def aligned_groups(aligned: Aligned) -> list[tuple[str, str]]:
    """The pairs of cell and outcome that have curves, in order."""
    return [(str(cell), str(outcome)) for (cell, outcome), _ in _groups(aligned)]


def aligned_figure(aligned: Aligned, *, cell: str, outcome: str) -> go.Figure:
    """Median and quartiles over the seeds of one cell and one outcome, over steps from the onset.

    Heads are those that `sweeps.quantities` ranks: `L0 head 1` has the largest QK Spearman of its
    layer at the onset, in every seed. A click on a legend entry takes it out of every panel.

    Args:
        aligned: What `sweeps.align` gave.
        cell: Label of the cell.
        outcome: The outcome of the runs.

    Raises:
        ConfigError: If there is no curve for this cell and outcome.
    """
    curves = [rows for key, rows in _groups(aligned) if key == (cell, outcome)]
    if not curves:
        choices = "; ".join(f"{c} ({o})" for c, o in aligned_groups(aligned)) or "none"
        raise ConfigError(
            f"`cell` and `outcome` must be those of aligned runs, {choices}; "
            f"got {cell!r} ({outcome})."
        )
    return _Drawing(curves[0]).figure(cell, outcome)


def _groups(aligned: Aligned) -> list[tuple[tuple[Any, ...], pd.DataFrame]]:
    return list(groups(aligned.curves, ["cell", "outcome"]))


class _Drawing:
    """Panels from top to bottom on one axis of offsets."""

    def __init__(self, curves: pd.DataFrame) -> None:
        self.curves = curves
        measured = set(curves["quantity"])
        self.panels = [panel for panel in _PANELS if measured & set(panel[1])]
        drawn = {name for _, names, _ in self.panels for name in names}
        self.panels += [(plain(name), (name,), None) for name in sorted(measured - drawn)]
        components = [name for name in curves["component"].unique() if name]
        self.styles = _styles(components)
        self.traces: list[dict[str, Any]] = []
        self.in_legend: set[str] = set()

    def figure(self, cell: str, outcome: str) -> go.Figure:
        """Measures all panels first, since positions are fractions of the whole height."""
        height = len(self.panels) * (_TITLE + _PANEL + _GAP) - _GAP
        offsets = self.curves["offset"].to_numpy()
        ends = [float(offsets.min()), float(offsets.max())]
        room = 0.02 * (ends[1] - ends[0]) or 1.0
        across = {**AXIS, "range": [ends[0] - room, ends[1] + room], "nticks": 7}
        layout: dict[str, Any] = {}
        texts, lines = [], []
        for number, (title, names, span) in enumerate(self.panels, start=1):
            top = (number - 1) * (_TITLE + _PANEL + _GAP)
            begin, end = (1 - (top + part) / height for part in (_TITLE, _TITLE + _PANEL))
            suffix = "" if number == 1 else str(number)
            layout[f"xaxis{suffix}"] = {**across, "anchor": f"y{suffix}"}
            layout[f"yaxis{suffix}"] = {
                **AXIS,
                "anchor": f"x{suffix}",
                "domain": [max(end, 0.0), min(begin, 1.0)],
                "nticks": 5,
                **({"range": list(span)} if span else {}),
            }
            place = {"xref": f"x{suffix}", "yref": f"y{suffix} domain"}
            pen = {"color": INK, "width": 1.2, "dash": "dot"}
            lines.append({"type": "line", "x0": 0, "x1": 0, "y0": 0, "y1": 1, "line": pen, **place})
            texts.append(heading(_panel_title(title, names), 1 - top / height, size=12, colour=INK))
            for name in names:
                self._lines(name, {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"})
        last = "xaxis" if len(self.panels) == 1 else f"xaxis{len(self.panels)}"
        layout[last]["title"] = {"text": "steps from the onset of phase 2", "standoff": 6}
        return self._assemble(f"{plain(cell)} · {plain(outcome)}", height, layout, texts, lines)

    def _assemble(
        self,
        title: str,
        height: float,
        layout: dict[str, Any],
        texts: list[dict[str, Any]],
        lines: list[dict[str, Any]],
    ) -> go.Figure:
        seeds = max(self.curves["seeds"].tolist())
        reading = wrap(
            f"median and quartiles over {seeds} seed{'' if seeds == 1 else 's'}, each at its own "
            "onset (dotted); heads of a layer are ordered by their QK Spearman there",
            READING_WIDTH,
        )
        titles = wrap(title, TITLE_WIDTH)
        top = HEADING_ROW * len(titles) + READING_ROW * len(reading) + 16
        small = f"<span style='font-size:11px;color:{MUTED}'>{'<br>'.join(reading)}</span>"
        text = f"<b>{'<br>'.join(titles)}</b><br>{small}"
        head = heading(text, 1.0, size=13, colour=INK, shift=-34.0)
        rows = legend_rows(self.in_legend)
        margin = {"l": 40, "r": 12, "t": top, "b": _BOTTOM + LEGEND_ROW * rows + 4, "pad": 0}
        whole = {
            **base_layout(height, margin),
            **layout,
            "dragmode": False,
            "showlegend": True,
            "legend": legend(-_BOTTOM / height),
            "shapes": lines,
            "annotations": [{**head, "yanchor": "bottom", "yshift": 10}, *texts],
        }
        return go.Figure(self.traces, whole)

    def _lines(self, quantity: str, axes: dict[str, str]) -> None:
        own = rows_where(self.curves, self.curves["quantity"].to_numpy() == quantity)
        for (component,), curve in groups(own, ["component"]):
            if component:
                name, style = plain(component), self.styles[component]
            else:
                name, style = _whole(quantity)
            if quantity.endswith("_transfer") and _RANKED.fullmatch(component):
                continue  # one of two heads that compute together says nothing by itself
            self._band(curve, name, style, axes)
            self._line(curve, quantity, name, style, axes)

    def _line(
        self,
        curve: pd.DataFrame,
        quantity: str,
        name: str,
        style: Style,
        axes: dict[str, str],
    ) -> None:
        first = name not in self.in_legend
        self.in_legend.add(name)
        self.traces.append(
            {
                "type": "scatter",
                "x": curve["offset"].tolist(),
                "y": curve["median"].tolist(),
                "mode": "lines+markers",
                "line": {"color": style.colour, "width": 2, "dash": style.dash},
                "marker": {"symbol": style.symbol, "size": 5, "maxdisplayed": 9},
                "name": name,
                "legendgroup": name,
                "showlegend": first,
                "customdata": curve[["low", "high", "n"]].to_numpy().tolist(),
                "hovertemplate": f"<b>{name}</b> · %{{x:+,d}} steps<br>"
                f"{plain(quantity.replace('_', ' '))}: median %{{y:.4~g}}<br>quartiles "
                "%{customdata[0]:.4~g} to %{customdata[1]:.4~g}<br>n = %{customdata[2]} seeds"
                "<extra></extra>",
                **axes,
            }
        )

    def _band(self, curve: pd.DataFrame, name: str, style: Style, axes: dict[str, str]) -> None:
        if max(curve["n"].tolist()) < 2:
            return
        x = curve["offset"].tolist()
        self.traces.append(
            {
                "type": "scatter",
                "x": [*x, *reversed(x)],
                "y": [*curve["high"].tolist(), *reversed(curve["low"].tolist())],
                "mode": "lines",
                "fill": "toself",
                "fillcolor": style.band(0.14),
                "line": {"width": 0, "color": style.colour},
                "name": f"{name}, quartiles",
                "legendgroup": name,
                "showlegend": False,
                "hoverinfo": "skip",
                **axes,
            }
        )


def _panel_title(title: str, quantities: Sequence[str]) -> str:
    """The heading of a panel; one of several quantities of the whole model names its lines."""
    if len(quantities) == 1:
        return f"<b>{title}</b>"
    named = [_whole(quantity) for quantity in quantities]
    keys = [f"<span style='color:{style.colour}'>■ {name}</span>" for name, style in named]
    return f"<b>{title}</b>  {' '.join(keys)}"


def _whole(quantity: str) -> tuple[str, Style]:
    """Name and style of a curve of the whole model."""
    split = quantity.removesuffix("_accuracy")
    if split != quantity:
        return split, split_style(split)
    return "whole model", Style(INK)


def _styles(components: Sequence[str]) -> dict[str, Style]:
    """Ranked heads take the colours that heads have elsewhere, the first that of the first."""

    def elsewhere(name: str) -> str:
        match = _RANKED.fullmatch(name)
        return f"L{match[1]}.H{int(match[2]) - 1}" if match else name

    styles = component_styles(sorted(map(elsewhere, components)))
    return {name: styles[elsewhere(name)] for name in components}
