"""Writes the page of one run under label noise: one HTML file, and its facts.

The facts are gathered in `modular_facts`, the pictures drawn in `plots/`; many runs are laid side
by side in `modular_seeds_report`.
"""

from __future__ import annotations

from pathlib import Path

from interp_shortcuts.plots.modular_neurons import neurons_figure
from interp_shortcuts.plots.modular_partition import (
    missing_for_partition,
    missing_for_unembedding,
    partition_figure,
    unembedding_figure,
)
from interp_shortcuts.plots.modular_phases import missing_for_phases, phase_figure
from interp_shortcuts.plots.modular_progress import (
    group_figure,
    missing_for_groups,
    missing_for_progress,
    progress_figure,
)
from interp_shortcuts.plots.modular_spectra import missing_for_spectra, spectra_figure
from interp_shortcuts.reports.modular_facts import modular_facts
from interp_shortcuts.reports.modular_reading import MODULAR_DEFINITIONS
from interp_shortcuts.reports.page import render
from interp_shortcuts.reports.page_figures import (
    PageFigure,
    drawn_or_missing,
    figure_values,
    page_path,
    write_page,
)
from interp_shortcuts.timelines.hidden_progress import (
    FITTED,
    THRESHOLD,
    HiddenProgress,
    find_hidden_progress,
)
from interp_shortcuts.timelines.hidden_tables import partition_table, unembedding_table
from interp_shortcuts.timelines.neuron_readings import missing_for_neurons
from interp_shortcuts.timelines.timeline import Timeline


def write_modular_report(
    timeline: Timeline,
    path: str | Path,
    *,
    threshold: float = THRESHOLD,
    fitted_at: float = FITTED,
    index: str | None = None,
    status_note: str = "",
) -> Path:
    """Writes one HTML page that works offline, and the same facts beside it as JSON.

    The same timeline gives the same bytes.

    Args:
        timeline: What was measured.
        path: The HTML file, or a folder that there is, where it is called `report.html`; the JSON
            gets the same stem. Missing folders are made.
        threshold: Test accuracy that counts as having generalised, in (0, 1].
        fitted_at: Training accuracy that counts as having begun to fit, in (0, 1].
        index: Address of the page over runs that this page belongs to, relative to it.
        status_note: Why the run was not trained to its end, shown at the top; empty if it was.

    Returns:
        The HTML file.

    Raises:
        MeasureError: If a level is not in (0, 1].
    """
    path = page_path(path, "report.html")
    found = find_hidden_progress(timeline, threshold=threshold, fitted_at=fitted_at)
    facts = modular_facts(timeline, found) | {"status_note": status_note}
    html = render(
        "modular.html",
        facts=facts,
        index=index,
        reading=MODULAR_DEFINITIONS,
        json_name=path.with_suffix(".json").name,
        **figure_values(modular_figures(timeline, found)),
    )
    write_page(path, html, facts)
    return path


def modular_figures(timeline: Timeline, found: HiddenProgress) -> list[PageFigure]:
    """Every picture of a run in the order of the page, those without data with the reason."""
    data = timeline.data
    partition, unembedding = partition_table(data), unembedding_table(data)
    figures = drawn_or_missing(
        (
            "progress",
            "progress",
            missing_for_progress(data),
            lambda: progress_figure(timeline, found),
        ),
        ("groups", "groups", missing_for_groups(data), lambda: group_figure(timeline)),
        ("neurons", "neurons", missing_for_neurons(data), lambda: neurons_figure(timeline)),
        ("spectra", "neurons", missing_for_spectra(data), lambda: spectra_figure(timeline)),
        ("phases", "neurons", missing_for_phases(data), lambda: phase_figure(timeline)),
        *(
            (
                f"kept-{keep}",
                "partition",
                missing_for_partition(partition, keep),
                lambda keep=keep: partition_figure(partition, found, keep),
            )
            for keep in ("top", "bottom")
        ),
    )
    if len(unembedding):
        no_curves = missing_for_unembedding(unembedding)
        figures += drawn_or_missing(
            ("unembedding", "partition", no_curves, lambda: unembedding_figure(unembedding))
        )
    return figures
