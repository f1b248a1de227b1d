"""Writes the page over seeds on attribution and causal importance: one HTML file, and its facts.

The statistics are computed in `timelines.gap_over_seeds`, the pictures drawn in `plots/`. A run
that counts in nothing is listed with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from interp_shortcuts.plots.gap_course import missing_for_rho_course, rho_course_figure
from interp_shortcuts.plots.gap_joint import joint_figure, missing_for_joint
from interp_shortcuts.plots.gap_league import league_figure, missing_for_league
from interp_shortcuts.plots.gap_roles import (
    identity_roles_figure,
    layer_roles_figure,
    missing_for_roles,
)
from interp_shortcuts.plots.gap_seeds import missing_for_seed_rho, seed_rho_figure
from interp_shortcuts.reports.gap_facts import seeds_facts
from interp_shortcuts.reports.gap_reading import GAP_DEFINITIONS, SEEDS_DEFINITIONS
from interp_shortcuts.reports.gap_report import pruning_figures
from interp_shortcuts.reports.page import render
from interp_shortcuts.reports.page_figures import (
    PageFigure,
    drawn_or_missing,
    figure_values,
    page_path,
    write_page,
)
from interp_shortcuts.timelines.gap_over_seeds import GapOverSeeds


def write_gap_seeds_report(
    found: GapOverSeeds,
    out: str | Path,
    *,
    title: str = "Attribution and causal importance",
    links: Mapping[str, str] | None = None,
    others: Mapping[str, str] | None = None,
) -> Path:
    """Writes one HTML page over seeds that works offline, and the same facts beside it as JSON.

    The same runs give the same bytes.

    Args:
        found: What `timelines.gaps_over_seeds` gave.
        out: The HTML file, or a folder that there is, where it is called `index.html`. Missing
            folders are made.
        title: Heading of the page.
        links: The address of a run's own page, relative to this one, by its name. A run that is
            not among them has no link.
        others: Addresses of pages over the seeds of other settings, by their title.

    Returns:
        The HTML file.
    """
    path = page_path(out, "index.html")
    facts = seeds_facts(found)
    html = render(
        "gap_seeds.html",
        title=title,
        facts=facts,
        links=dict(links or {}),
        others=dict(others or {}),
        reading=(*SEEDS_DEFINITIONS, *GAP_DEFINITIONS),
        json_name=path.with_suffix(".json").name,
        **figure_values(seeds_figures(found)),
    )
    write_page(path, html, facts | {"title": title})
    return path


def seeds_figures(found: GapOverSeeds) -> list[PageFigure]:
    """Every picture over seeds in the order of the page, those without data with the reason."""
    stability = found.roles.get(found.threshold)
    no_roles = missing_for_roles(stability)
    figures = drawn_or_missing(
        ("seeds", "seeds", missing_for_seed_rho(found), lambda: seed_rho_figure(found)),
        ("course", "training", missing_for_rho_course(found), lambda: rho_course_figure(found)),
        ("joint", "joint", missing_for_joint(found.joint), lambda: joint_figure(found.joint)),
        (
            "league",
            "methods",
            missing_for_league(found.league),
            lambda: league_figure(found.league),
        ),
    )
    if stability is None or no_roles:
        figures.append(PageFigure("identity", "roles", missing=no_roles))
    else:
        figures.append(PageFigure("identity", "roles", identity_roles_figure(stability)))
        figures.append(PageFigure("layer", "roles", layer_roles_figure(stability)))
    return [*figures, *pruning_figures(found.pruning)]
