"""The facts of the pages on modular arithmetic under label noise as plain JSON values.

Nothing is computed here; how the facts are laid out is left to the templates.
"""

from __future__ import annotations

from typing import Any

from interp_shortcuts.reports.facts import definitions, json_values, versions
from interp_shortcuts.reports.gap_facts import rows, undefined_rows
from interp_shortcuts.reports.remake import remake
from interp_shortcuts.reports.run_facts import run_facts
from interp_shortcuts.sweeps.hidden_cells import HiddenCells
from interp_shortcuts.sweeps.hidden_cells_text import cells_sentences
from interp_shortcuts.timelines.hidden_progress import HiddenProgress
from interp_shortcuts.timelines.hidden_tables import (
    partition_table,
    spectra_table,
    unembedding_table,
)
from interp_shortcuts.timelines.hidden_text import hidden_sentences
from interp_shortcuts.timelines.run_settings import settings
from interp_shortcuts.timelines.timeline import Timeline

FORMAT = "interp-shortcuts hidden progress report 1"
CELLS_FORMAT = "interp-shortcuts hidden progress over cells 1"


def modular_facts(timeline: Timeline, found: HiddenProgress) -> dict[str, Any]:
    """What the page of one run says; undefined numbers are None."""
    data, attrs = timeline.data, timeline.data.attrs
    spectra, partition = spectra_table(data), partition_table(data)
    events = {
        ("full", "trained"): found.full,
        **{("G", acting): event for acting, event in found.hidden.items()},
    }
    facts = {
        "format": FORMAT,
        "sentences": hidden_sentences(found, spectra, partition),
        "threshold": found.threshold,
        "fitted_at": found.fitted_at,
        "reason": found.reason,
        "chance": attrs.get("chance"),
        "run": run_facts(timeline),
        "events": [
            {"network": network, "acting": acting, **vars(event)}
            for (network, acting), event in events.items()
        ],
        "leads": {acting: vars(found.lead(acting)) for acting in found.hidden},
        "best": found.best,
        "fitted": [
            {"group": group, "level": level, **vars(event)}
            for (group, level), event in found.fitted.items()
        ],
        "fitted_first": [
            {"level": level, **vars(found.fitted_first(level))} for level in found.levels
        ],
        "finals": rows(found.finals),
        "spectra": rows(spectra),
        "partition": rows(partition),
        "unembedding": rows(unembedding_table(data)),
        "undefined": undefined_rows(data),
        "settings": settings(data),
        "definitions": definitions(data),
        "versions": versions(attrs),
        "remake": remake(attrs),
    }
    return json_values(facts)


def cells_facts(found: HiddenCells) -> dict[str, Any]:
    """What the page over seeds and cells says; undefined numbers are None."""
    first = next(iter(found.timelines.values()), None)
    facts = {
        "format": CELLS_FORMAT,
        "sentences": cells_sentences(found),
        "threshold": found.threshold,
        "fitted_at": found.fitted_at,
        "n_counted": len(found.progress),
        "cells": {cell: dict(setting) for cell, setting in found.cells.items()},
        "differing": list(found.differing),
        "excluded": dict(found.excluded),
        **{name: rows(table) for name, table in found.tables().items()},
        "settings": dict(found.shared),
        "definitions": definitions(first.data) if first is not None else [],
        "versions": versions(first.data.attrs) if first is not None else {},
    }
    return json_values(facts)
