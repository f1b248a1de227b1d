"""Writes an index over many runs: outcomes with intervals per setting, and a picture per seed.

A run that failed or cannot be read is listed with its error and counted; it is never left out.
Pages of single runs are written in `report.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup
from scipy.stats import binomtest

from interp_shortcuts.canonical import canonical_json
from interp_shortcuts.plots.palette import HANDOVER_PHASE, SHORTCUT_PHASE, split_style
from interp_shortcuts.plots.seeds import accuracy_figure
from interp_shortcuts.reports.page import figure_json, plotly_js, render, setting
from interp_shortcuts.reports.reading import OUTCOME_MEANINGS
from interp_shortcuts.runs.store import write_text
from interp_shortcuts.timelines.phases import OUTCOMES, Phases
from interp_shortcuts.timelines.run_settings import settings
from interp_shortcuts.timelines.timeline import Timeline

_NOT_A_SETTING = ("seed", "name", "task.rule_fingerprint")


@dataclass(frozen=True)
class SeedEntry:
    """One run of an index page.

    Attributes:
        name: What the run is called on the page, usually its folder.
        timeline: What was measured; None if the run failed or cannot be read.
        phases: Events and outcome; None asks the timeline for them with its default rules.
        href: Address of the run's own page, relative to the index; None if it has none.
        error: Why there is no timeline.
    """

    name: str
    timeline: Timeline | None = None
    phases: Phases | None = None
    href: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Rate:
    """A count out of n with its exact (Clopper-Pearson) 95% interval."""

    what: str
    count: int
    n: int
    low: float
    high: float

    @property
    def fraction(self) -> float:
        """NaN out of none."""
        return self.count / self.n if self.n else math.nan


def rate(what: str, count: int, n: int) -> Rate:
    """The rate of `count` out of `n` seeds; out of none, rate and interval are NaN."""
    if not n:
        return Rate(what, count, n, math.nan, math.nan)
    interval = binomtest(count, n).proportion_ci(confidence_level=0.95, method="exact")
    return Rate(what, count, n, float(interval.low), float(interval.high))


@dataclass(frozen=True)
class _Seed:
    entry: SeedEntry
    phases: Phases
    number: int
    seed: int | None


def write_index(
    entries: Sequence[SeedEntry], out: str | Path, *, title: str = "Shortcut runs"
) -> Path:
    """Writes one HTML page over many runs; it works offline, and links to the runs' own pages.

    Runs that differ in nothing but the seed form a group, and rates are given per group.

    Args:
        entries: The runs, in the order in which they are shown.
        out: The HTML file, or a folder, where it is called `index.html`.
        title: Heading of the page.

    Returns:
        The HTML file.
    """
    out = Path(out)
    path = out if out.suffix.lower() in (".html", ".htm") else out / "index.html"
    seeds, failed = _read(entries)
    groups = _groups(seeds)
    html = render(
        "index.html",
        title=title,
        n_runs=len(entries),
        groups=groups,
        failed=failed,
        figures={f"seed-{seed.number}": seed_figure for seed, seed_figure in _figures(groups)},
        plotly_js=plotly_js(),
        colours={split: split_style(split).colour for split in ("validation", "adversarial")},
        phases={"shortcut phase": SHORTCUT_PHASE, "hand-over": HANDOVER_PHASE},
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, html)
    return path


def _read(entries: Sequence[SeedEntry]) -> tuple[list[_Seed], list[SeedEntry]]:
    """Runs with phases, and failed ones; a timeline that cannot be read has failed too."""
    seeds, failed = [], []
    for number, entry in enumerate(entries):
        if entry.timeline is None:
            failed.append(entry)
            continue
        try:
            phases = entry.timeline.phases() if entry.phases is None else entry.phases
            seed = int(entry.timeline.data.attrs.get("seed", -1))
        except Exception as error:  # one bad run must not take the page down
            failed.append(
                SeedEntry(entry.name, href=entry.href, error=f"{type(error).__name__}: {error}")
            )
            continue
        seeds.append(_Seed(entry, phases, number, None if seed < 0 else seed))
    return seeds, failed


def _groups(seeds: Sequence[_Seed]) -> list[dict[str, Any]]:
    """Runs by setting, with a label that says in what the settings differ."""
    flat: dict[str, dict[str, Any]] = {}
    members: dict[str, list[_Seed]] = {}
    for seed in seeds:
        assert seed.entry.timeline is not None
        data = seed.entry.timeline.data
        found = {k: v for k, v in settings(data).items() if k not in _NOT_A_SETTING}
        identity = {**found, "task_name": str(data.attrs.get("task_name", ""))}
        key = canonical_json({name: str(value) for name, value in identity.items()})
        flat[key] = identity
        members.setdefault(key, []).append(seed)
    return [
        {
            "label": _label(flat[key], list(flat.values())),
            "seeds": group,
            "rates": _rates(group),
            "last_step": max(seed.phases.last_step or 0 for seed in group),
        }
        for key, group in members.items()
    ]


def _label(own: dict[str, Any], every: Sequence[dict[str, Any]]) -> str:
    parts = [own["task_name"] or "unnamed task"]
    for name in sorted({name for other in every for name in other} - {"task_name", "task.rule"}):
        values = [other.get(name) for other in every]
        if any(value != values[0] for value in values[1:]):
            parts.append(f"{name.rsplit('.', 1)[-1]} {setting(own.get(name))}")
    return ", ".join(parts)


def _rates(group: Sequence[_Seed]) -> list[tuple[Rate, str]]:
    """Each outcome that occurred, then the paper's rule: complete at any evaluation."""
    n = len(group)
    rows = []
    for outcome in OUTCOMES:
        count = sum(seed.phases.outcome == outcome for seed in group)
        if count:
            rows.append((rate(outcome, count, n), OUTCOME_MEANINGS.get(outcome, "")))
    measured = [s for s in group if not s.phases.event("generalised").unmeasured]
    complete = sum(seed.phases.completion is not None for seed in measured)
    text = "Adversarial accuracy reached the generalised level at one evaluation or more."
    if len(measured) < n:
        text += f" Adversarial accuracy was never measured in {n - len(measured)} of {n} seeds."
    rows.append((rate("rule complete at any time", complete, len(measured)), text))
    return rows


def _figures(groups: Sequence[dict[str, Any]]) -> Iterator[tuple[_Seed, Markup]]:
    """The small picture of each seed, ready for a script element."""
    for group in groups:
        for seed in group["seeds"]:
            figure = accuracy_figure(
                seed.entry.timeline, phases=seed.phases, last_step=group["last_step"]
            )
            yield seed, figure_json(figure)
