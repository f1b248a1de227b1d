"""The facts of a report as plain JSON values: HTML, JSON and Markdown all show these.

Nothing is computed here beyond taking the last evaluation and counting what is undefined. How the
facts are laid out is left to the templates.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from interp_shortcuts.plots.panel import Choice
from interp_shortcuts.plots.panels import (
    ABLATION_PANELS,
    select_panels,
    story_panels,
)
from interp_shortcuts.plots.residual_map import missing_for_residual_map
from interp_shortcuts.reports.gradient_facts import gradient_facts
from interp_shortcuts.reports.reading import OUTCOME_MEANINGS
from interp_shortcuts.reports.remake import remake
from interp_shortcuts.reports.run_facts import run_facts
from interp_shortcuts.timelines.circuit_events import CircuitEvent
from interp_shortcuts.timelines.layout import measured_part
from interp_shortcuts.timelines.phases import Phases
from interp_shortcuts.timelines.run_settings import flat, parsed, settings
from interp_shortcuts.timelines.timeline import Timeline

FORMAT = "interp-shortcuts report 1"


def report_facts(
    timeline: Timeline, *, phases: Phases | None = None, status_note: str = ""
) -> dict[str, Any]:
    """Everything a report says, as values that JSON takes; undefined numbers are None.

    Args:
        timeline: What was measured.
        phases: Events and outcome; None asks the timeline for them with its default rules.
        status_note: Why the run was not trained to its end; empty if it was.
    """
    phases = timeline.phases() if phases is None else phases
    data = timeline.data
    attrs = data.attrs
    facts = {
        "format": FORMAT,
        "status_note": status_note,
        "verdict": phases.sentence,
        "outcome": phases.outcome,
        "outcome_meaning": OUTCOME_MEANINGS.get(phases.outcome, ""),
        "run": run_facts(timeline)
        | {
            "n_classes": int(attrs.get("n_classes", 0)) or None,
            "chance": attrs.get("chance"),
        },
        "splits": _last_evaluation(data),
        "phases": phases.to_dict(),
        "heads": _changes(phases.circuit_events),
        "causal": _changes(phases.causal_events),
        "gradients": gradient_facts(data, phases),
        "undefined": undefined_values(data),
        "left_out": _left_out(data),
        "settings": settings(data),
        "thresholds": _thresholds(phases),
        "definitions": definitions(data),
        "versions": versions(attrs),
        "remake": remake(attrs),
    }
    return json_values(facts)


def json_values(value: Any) -> Any:
    """NumPy scalars as Python's, numbers that are not finite as None."""
    if isinstance(value, dict):
        return {str(key): json_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def versions(attrs: dict[str, Any]) -> dict[str, str]:
    """The versions of the packages behind a timeline."""
    found = parsed(attrs.get("versions")) or {}
    return {name: str(version) for name, version in flat(found).items()}


def _last_evaluation(data: xr.Dataset) -> list[dict[str, Any]]:
    """Accuracy, shortcut rate and loss per split at the last step, with intervals and n."""
    if "split" not in data.coords or not data.sizes["step"]:
        return []
    last = data.isel(step=-1)
    rows = []
    for split in data["split"].values:
        row: dict[str, Any] = {"split": str(split)}
        here = last.sel(split=split)
        row["n"] = int(here["n_examples"]) if "n_examples" in here else None
        for name in ("accuracy", "shortcut_rate", "loss"):
            row[name] = float(here[name]) if name in here else None
            interval = here.get(f"{name}_interval")
            row[f"{name}_interval"] = (
                None
                if interval is None
                else [float(interval.sel(bound=b)) for b in ("low", "high")]
            )
        rows.append(row)
    return rows


def _changes(events: Sequence[CircuitEvent]) -> list[dict[str, Any]]:
    """Per component and measure: phase-1 level, final level, change."""
    return [
        {
            "component": event.component,
            "measure": event.measure,
            "words": event.words,
            "feature": event.feature,
            "split": event.split,
            "phase1_level": event.phase1_level,
            "final_level": event.final_level,
            "change": event.change,
            "half_way_step": event.step,
            "lag": event.lag,
            "peak_value": event.peak_value,
            "peak_step": event.peak_step,
            "reason": event.reason,
        }
        for event in events
    ]


def undefined_values(data: xr.Dataset) -> list[dict[str, Any]]:
    """Variables with undefined values among those that were measured, and what that means."""
    rows = []
    for name, variable in data.data_vars.items():
        part = measured_part(variable)
        missing = int(part.isnull().sum())
        if missing:
            meaning = str(variable.attrs.get("nan_means", "") or "no reason given")
            rows.append(
                {"variable": str(name), "undefined": missing, "of": part.size, "meaning": meaning}
            )
    return rows


def _left_out(data: xr.Dataset) -> list[dict[str, str]]:
    """Panels of the page that cannot be drawn, and why; no longer escaped for Plotly."""
    if not data.sizes["step"]:
        return []
    names = [*story_panels(data), *ABLATION_PANELS]
    found = [
        {"panel": panel.key, "reason": html.unescape(panel.missing)}
        for panel in select_panels(data, Choice(), names)
        if panel.missing
    ]
    reason = html.unescape(missing_for_residual_map(data))
    return [*found, *([{"panel": "residual_map", "reason": reason}] if reason else [])]


def _thresholds(phases: Phases) -> list[dict[str, Any]]:
    fields = type(phases.rules).model_fields
    return [
        {"name": name, "value": value, "description": fields[name].description or ""}
        for name, value in phases.rules.model_dump(mode="json").items()
    ]


def definitions(data: xr.Dataset) -> list[dict[str, str]]:
    """What each variable is, as its measure says."""
    keys = ("long_name", "units", "definition", "range", "nan_means", "measure")
    return [
        {"variable": str(name), **{key: str(variable.attrs.get(key, "")) for key in keys}}
        for name, variable in data.data_vars.items()
    ]
