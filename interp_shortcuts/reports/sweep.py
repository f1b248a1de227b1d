"""Writes the page of a sweep: rates, interaction, onset times and every run, in one HTML file.

The numbers are computed in `sweeps`, the pictures drawn in `plots`. A picture for which the table
has no data is named with the reason; a run that failed or has not ended is listed with its status.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from interp_shortcuts.plots.sweep_aligned import (
    aligned_figure,
    aligned_groups,
    missing_for_aligned,
)
from interp_shortcuts.plots.sweep_factors import (
    chance_distance_figure,
    missing_for_chance_distance,
    missing_for_weight_decay,
    weight_decay_figure,
)
from interp_shortcuts.plots.sweep_heads import heads_onset_figure, missing_for_heads_onset
from interp_shortcuts.plots.sweep_interaction import interaction_figure, missing_for_interaction
from interp_shortcuts.plots.sweep_rates import missing_for_rates, rate_figure
from interp_shortcuts.plots.sweep_survival import missing_for_survival, survival_figure
from interp_shortcuts.reports.page import figure_json, plotly_js, render
from interp_shortcuts.reports.reading import OUTCOME_MEANINGS
from interp_shortcuts.reports.sweep_reading import SWEEP_DEFINITIONS
from interp_shortcuts.runs.store import write_text
from interp_shortcuts.sweeps.alignment import Aligned
from interp_shortcuts.sweeps.counted import NOT_COUNTED, counted
from interp_shortcuts.sweeps.interaction import Interaction, interactions
from interp_shortcuts.sweeps.rates import generalisation_rates
from interp_shortcuts.sweeps.settings import setting_fields, varying_fields
from interp_shortcuts.sweeps.survival import survival_summary
from interp_shortcuts.timelines.phase_rules import PhaseRules


@dataclass(frozen=True, eq=False)
class SweepFigure:
    """One picture of the page, or the reason why it is left out."""

    name: str
    """Also the id of its place on the page."""
    figure: go.Figure | None = None
    missing: str = ""

    @property
    def height(self) -> int:
        """Pixels of the figure; 0 without one."""
        layout: Any = {"height": 0} if self.figure is None else self.figure.layout
        return round(layout["height"])


def write_sweep_report(
    table: pd.DataFrame,
    out: str | Path,
    *,
    title: str = "Sweep",
    aligned: Aligned | None = None,
    links: Mapping[str, str] | None = None,
) -> Path:
    """Writes one HTML page over a sweep; it works offline. The same table gives the same bytes.

    Args:
        table: The runs of the sweep, as `sweeps.results` or `sweeps.read_results` gives them.
        out: The HTML file, or a folder, where it is called `sweep.html`. Missing folders are made.
        title: Heading of the page.
        aligned: Timelines of tracked runs, aligned at the onset; None if no run was tracked.
        links: The address of a run's own page, relative to this one, by its `run` in the table;
            `report_links` finds them. A run that is not among them has no link.

    Returns:
        The HTML file.

    Raises:
        ConfigError: If the table lacks a column, or runs of one cell differ in a setting.
    """
    out = Path(out)
    path = out if out.suffix.lower() in (".html", ".htm") else out / "sweep.html"
    found = () if missing_for_interaction(table) else interactions(table)
    figures = sweep_figures(table, found=found, aligned=aligned)
    drawn = {f"figure-{one.name}": one.figure for one in figures if one.figure is not None}
    rates = generalisation_rates(table)
    html = render(
        "sweep.html",
        title=title,
        n_cells=len(rates),
        n_runs=len(table),
        n_counted=len(counted(table)),
        fields=varying_fields(table),
        fixed={name: _value(table[name].iloc[0]) for name in _fixed(table)},
        sentences=[one.sentence for one in found],
        rates=_rows(rates),
        not_counted=NOT_COUNTED,
        medians={row["cell"]: row for row in _rows(survival_summary(table))},
        runs=_runs(table, links or {}),
        left_out=_rows(aligned.runs) if aligned is not None else [],
        missing=[one for one in figures if one.missing],
        ids=list(drawn),
        figures={name: figure_json(figure) for name, figure in drawn.items()},
        heights={f"figure-{one.name}": one.height for one in figures},
        definitions=SWEEP_DEFINITIONS,
        outcomes=OUTCOME_MEANINGS,
        thresholds=_thresholds(),
        plotly_js=plotly_js(),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, html)
    return path


def sweep_figures(
    table: pd.DataFrame,
    *,
    found: tuple[Interaction, ...] | None = None,
    aligned: Aligned | None = None,
) -> list[SweepFigure]:
    """Every picture of a sweep in the order of the page, those without data with the reason.

    Args:
        table: The runs of the sweep.
        found: Its interactions; None computes them with the defaults of `sweeps.interactions`.
        aligned: Timelines of tracked runs, aligned at the onset.
    """
    figures = []
    for name, missing, draw in (
        ("rates", missing_for_rates, rate_figure),
        ("onset", missing_for_survival, survival_figure),
        ("chance-distance", missing_for_chance_distance, chance_distance_figure),
        ("weight-decay", missing_for_weight_decay, weight_decay_figure),
        ("heads-onset", missing_for_heads_onset, heads_onset_figure),
    ):
        reason = missing(table)
        figures.append(SweepFigure(name, None if reason else draw(table), reason))
    reason = missing_for_survival(table, event="completion")
    figure = None if reason else survival_figure(table, event="completion")
    figures.insert(2, SweepFigure("completion", figure, reason))
    figures[1:1] = _interaction_figures(table, found)
    return [*figures, *_aligned_figures(aligned)]


def report_links(table: pd.DataFrame, folder: str | Path, out: str | Path) -> dict[str, str]:
    """The addresses of the pages that there are of the runs of a table.

    Args:
        table: The runs; `run` is a folder relative to `folder`.
        folder: The sweep folder.
        out: The folder in which the page lies that will link to them.
    """
    found = {}
    for run in table["run"].astype(str):
        page = Path(folder) / run / "report.html"
        if run and page.is_file():
            found[run] = Path(os.path.relpath(page, out)).as_posix()
    return found


def _interaction_figures(
    table: pd.DataFrame, found: tuple[Interaction, ...] | None
) -> list[SweepFigure]:
    if reason := missing_for_interaction(table):
        return [SweepFigure("interaction", missing=reason)]
    found = interactions(table) if found is None else found
    if not found:
        others = [name for name in varying_fields(table) if name not in ("ratio", "n_layers")]
        reason = f"no setting of {', '.join(others)} has all four cells of ratio and n_layers"
        return [SweepFigure("interaction", missing=reason)]
    names = ["interaction", *(f"interaction-{k}" for k in range(2, len(found) + 1))]
    return [
        SweepFigure(name, missing=one.reason)
        if one.reason
        else SweepFigure(name, interaction_figure(one))
        for name, one in zip(names, found, strict=True)
    ]


def _aligned_figures(aligned: Aligned | None) -> list[SweepFigure]:
    reason = missing_for_aligned(aligned)
    if reason or aligned is None:
        return [SweepFigure("aligned", missing=reason)]
    return [
        SweepFigure(f"aligned-{number}", aligned_figure(aligned, cell=cell, outcome=outcome))
        for number, (cell, outcome) in enumerate(aligned_groups(aligned), start=1)
    ]


def _fixed(table: pd.DataFrame) -> list[str]:
    if table.empty:
        return []
    varying = set(varying_fields(table))
    return [name for name in (*setting_fields(table), "chance") if name not in varying]


def _runs(table: pd.DataFrame, links: Mapping[str, str]) -> list[dict[str, Any]]:
    return [row | {"href": links.get(str(row["run"]))} for row in _rows(table)]


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(name): _value(value) for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def _value(value: Any) -> Any:
    """A cell of a table as templates show it; what is missing is None."""
    if pd.isna(value):
        return None
    return value.item() if hasattr(value, "item") else value


def _thresholds() -> list[dict[str, Any]]:
    fields = PhaseRules.model_fields
    return [
        {"name": name, "value": value, "description": fields[name].description or ""}
        for name, value in PhaseRules().model_dump(mode="json").items()
    ]
