"""Writes the page over runs under label noise, seeds of one setting or the cells of a sweep.

The statistics are computed in `sweeps.hidden_cells`, the pictures drawn in `plots/`. A run that
counts in nothing is listed with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from interp_shortcuts.plots.modular_cells import (
    cell_courses_figure,
    cells_figure,
    missing_for_cell_courses,
    missing_for_cells,
)
from interp_shortcuts.plots.modular_descent import descent_figure, missing_for_descent
from interp_shortcuts.reports.modular_facts import cells_facts
from interp_shortcuts.reports.modular_reading import CELLS_DEFINITIONS, MODULAR_DEFINITIONS
from interp_shortcuts.reports.page import render
from interp_shortcuts.reports.page_figures import (
    PageFigure,
    drawn_or_missing,
    figure_values,
    page_path,
    write_page,
)
from interp_shortcuts.sweeps.hidden_cells import HiddenCells


def write_modular_seeds_report(
    found: HiddenCells,
    out: str | Path,
    *,
    title: str = "Hidden progress under label noise",
    links: Mapping[str, str] | None = None,
    others: Mapping[str, str] | None = None,
) -> Path:
    """Writes one HTML page over runs that works offline, and the same facts beside it as JSON.

    The same runs give the same bytes.

    Args:
        found: What `sweeps.hidden_cells` gave.
        out: The HTML file, or a folder that there is, where it is called `index.html`. Missing
            folders are made.
        title: Heading of the page.
        links: The address of a run's own page, relative to this one, by its name. A run that is
            not among them has no link.
        others: Addresses of pages over other runs, by their title.

    Returns:
        The HTML file.
    """
    path = page_path(out, "index.html")
    facts = cells_facts(found)
    html = render(
        "modular_seeds.html",
        title=title,
        facts=facts,
        links=dict(links or {}),
        others=dict(others or {}),
        reading=(*CELLS_DEFINITIONS, *MODULAR_DEFINITIONS),
        json_name=path.with_suffix(".json").name,
        **figure_values(cell_figures(found)),
    )
    write_page(path, html, facts | {"title": title})
    return path


def cell_figures(found: HiddenCells) -> list[PageFigure]:
    """Every picture over runs in the order of the page, those without data with the reason."""
    return drawn_or_missing(
        ("cells", "cells", missing_for_cells(found), lambda: cells_figure(found)),
        (
            "courses",
            "training",
            missing_for_cell_courses(found),
            lambda: cell_courses_figure(found),
        ),
        (
            "descent",
            "width",
            missing_for_descent(found.descent),
            lambda: descent_figure(found.descent),
        ),
    )
