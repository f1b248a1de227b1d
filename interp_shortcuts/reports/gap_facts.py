"""The facts of the pages on attribution and importance as plain JSON values.

Nothing is computed here; how the facts are laid out is left to the templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import xarray as xr

from interp_shortcuts.measures.attribution.stability import SIDES
from interp_shortcuts.reports.facts import (
    definitions,
    json_values,
    undefined_values,
    versions,
)
from interp_shortcuts.reports.remake import remake
from interp_shortcuts.reports.run_facts import run_facts
from interp_shortcuts.timelines.attribution_gap import AttributionGap
from interp_shortcuts.timelines.gap_league import method_league
from interp_shortcuts.timelines.gap_over_seeds import GapOverSeeds
from interp_shortcuts.timelines.gap_tables import joint_table, last_value, pruning_table
from interp_shortcuts.timelines.gap_text import gap_sentences, seeds_sentences
from interp_shortcuts.timelines.run_settings import settings
from interp_shortcuts.timelines.timeline import Timeline

FORMAT = "interp-shortcuts gap report 1"
SEEDS_FORMAT = "interp-shortcuts gap over seeds 1"
_NOT_A_SETTING = ("seed", "name")


def gap_facts(timeline: Timeline, gap: AttributionGap) -> dict[str, Any]:
    """What the page of one run says; undefined numbers are None."""
    data, attrs = timeline.data, timeline.data.attrs
    separation = gap.separation
    facts = {
        "format": FORMAT,
        "sentences": gap_sentences(gap, joint_table(data)),
        "method": gap.method.name,
        "reference": gap.reference.name,
        "threshold": gap.threshold,
        "reason": gap.why_no_rho(),
        "rho": gap.final.rho if gap.final is not None else None,
        "heroes": list(gap.named("hero")),
        "bloats": list(gap.named("bloat")),
        "separation": {
            "step": separation.step,
            "reason": separation.reason,
            "at_last": separation.at_last,
        },
        "exact_match": last_value(data, "exact_match"),
        "token_loss": last_value(data, "token_loss"),
        "run": run_facts(timeline) | {"compared_step": gap.steps[-1] if gap.steps else None},
        "components": _components(gap),
        "course": [
            {"step": step, "rho": found.rho, "reason": found.reason}
            for step, found in zip(gap.steps, gap.gaps, strict=True)
        ],
        "methods": [
            {name: row[name] for name in ("method", "reference", "best", "reason")}
            | {"rho": row["mean"]}
            for row in rows(method_league({"run": timeline}, n_resamples=1))
        ],
        "joint": rows(joint_table(data)),
        "pruning": rows(pruning_table(data)),
        "undefined": undefined_rows(data),
        "settings": settings(data),
        "definitions": definitions(data),
        "versions": versions(attrs),
        "remake": remake(attrs),
    }
    return json_values(facts)


def seeds_facts(found: GapOverSeeds) -> dict[str, Any]:
    """What the page over seeds says; undefined numbers are None."""
    every = [_settings(line) for line in found.timelines.values()]
    names = dict.fromkeys(name for own in every for name in own)
    differing = [n for n in names if any(own.get(n) != every[0].get(n) for own in every)]
    shared = {n: every[0][n] for n in names if n not in differing}
    first = next(iter(found.timelines.values()), None)
    facts = {
        "format": SEEDS_FORMAT,
        "sentences": seeds_sentences(found),
        "method": found.method,
        "reference": found.reference,
        "threshold": found.threshold,
        "n_components": len(found.components),
        "n_counted": len(found.gaps),
        "rho": vars(found.rho),
        "excluded": dict(found.excluded),
        "seeds": rows(found.seeds),
        "roles": {f"{at:g}": _roles(found, at) for at in found.roles},
        "layers": {f"{at:g}": rows(stability.layers) for at, stability in found.roles.items()},
        "n_permutations": next((one.n_permutations for one in found.roles.values()), None),
        "agreement": rows(found.agreement),
        "league": rows(found.league),
        "joint": rows(found.joint),
        "pruning": rows(found.pruning),
        "course": rows(found.course),
        "settings": shared,
        "differing": differing,
        "definitions": definitions(first.data) if first is not None else [],
        "versions": versions(first.data.attrs) if first is not None else {},
    }
    return json_values(facts)


def rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A table row by row; what is missing is None."""
    found = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in found]


def undefined_rows(data: xr.Dataset) -> list[dict[str, Any]]:
    """What is undefined; intervals are, where their value is, and are not named again."""
    found = undefined_values(data)
    names = {row["variable"] for row in found}
    return [row for row in found if row["variable"].removesuffix("_interval") not in names
            or not row["variable"].endswith("_interval")]  # fmt: skip


def _components(gap: AttributionGap) -> list[dict[str, Any]]:
    """One row a component, the largest gap first."""
    if gap.final is None:
        return []
    final = gap.final
    found = [
        {
            "component": name,
            "attribution": gap.attribution[-1, index],
            "importance": gap.importance[-1, index],
            "low": gap.importance_low[-1, index],
            "high": gap.importance_high[-1, index],
            "attribution_rank": final.attribution_rank[index],
            "importance_rank": final.importance_rank[index],
            "gap": final.delta[index],
            "role": gap.final_roles[name],
            "since": gap.settled.get(name),
        }
        for index, name in enumerate(gap.components)
    ]
    return sorted(found, key=lambda row: -abs(row["gap"]) if row["gap"] == row["gap"] else 0.0)


def _roles(found: GapOverSeeds, threshold: float) -> list[dict[str, Any]]:
    """Components that have a role in some seed, the most frequent first, heroes before bloats."""
    table = [row for row in rows(found.roles[threshold].identities) if row["seeds"]]
    return sorted(table, key=lambda row: (SIDES.index(row["side"]), -row["seeds"]))


def _settings(timeline: Timeline) -> Mapping[str, Any]:
    found = settings(timeline.data)
    return {name: value for name, value in found.items() if name not in _NOT_A_SETTING}
