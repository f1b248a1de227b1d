"""The gap between attribution and importance over seeds: rho, roles, methods, pruning, training.

Each run's gap is read in `attribution_gap`; the statistics are those of
`measures.attribution.stability`. An excluded or undefined seed is in no mean, and always counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.attribution.gap import THRESHOLD, THRESHOLDS
from interp_shortcuts.measures.attribution.stability import (
    RoleStability,
    SeedMean,
    mean_over_seeds,
    role_stability,
    threshold_agreement,
)
from interp_shortcuts.timelines.attribution_gap import AttributionGap, find_gap
from interp_shortcuts.timelines.gap_league import method_league
from interp_shortcuts.timelines.gap_readings import METHOD, REFERENCE, why_not_asked
from interp_shortcuts.timelines.gap_tables import joint_table, last_value, pruning_table
from interp_shortcuts.timelines.timeline import Timeline

NO_SEED = "no seed counts"
OTHER_COMPONENTS = "its components are not those of the other seeds"


@dataclass(frozen=True, eq=False)
class GapOverSeeds:
    """What the runs of one setting say together.

    Attributes:
        method: The attribution that is compared.
        reference: The causal importance that it is compared with.
        threshold: Ranks that make a hero or a bloat.
        gaps: The gap of each run that counts, by its name.
        excluded: Runs that count in nothing, with the reason.
        timelines: The timeline of each run that has one, those that are excluded too.
        seeds: One row a run, those that are excluded too: `run`, `seed`, `rho`, `heroes` and
            `bloats` (their names), `separation` (step), `exact_match` (fraction, before any
            ablation), `n_examples`, `last_step`, and `reason` why it is excluded or undefined.
        rho: Mean of rho over the runs that define it.
        roles: Roles by identity and layer at each threshold; empty if no run counts.
        agreement: How much of the roles depends on the threshold; see `threshold_agreement`.
        league: Every method against every reference; see `method_league`.
        joint: Joint ablations over seeds: a row a set.
        pruning: Pruning curves over seeds: a row for each kind, k and split.
        course: rho over steps: a row a step, with `n`, `median`, `low` and `high` (quartiles).
    """

    method: str
    reference: str
    threshold: float
    gaps: Mapping[str, AttributionGap]
    excluded: Mapping[str, str]
    timelines: Mapping[str, Timeline]
    seeds: pd.DataFrame
    rho: SeedMean
    roles: Mapping[float, RoleStability]
    agreement: pd.DataFrame
    league: pd.DataFrame
    joint: pd.DataFrame
    pruning: pd.DataFrame
    course: pd.DataFrame

    @property
    def components(self) -> tuple[str, ...]:
        """Heads and MLPs; none if no run counts."""
        return next((gap.components for gap in self.gaps.values() if gap.gaps), ())

    def tables(self) -> dict[str, pd.DataFrame]:
        """Every table by its name; roles by identity and by layer at all thresholds."""
        by_threshold = [
            (found.identities.assign(threshold=at), found.layers.assign(threshold=at))
            for at, found in self.roles.items()
        ]
        whole = {}
        for place, name in enumerate(("roles", "layers")):
            if by_threshold:
                parts = [parts[place] for parts in by_threshold]
                whole[name] = pd.concat(parts, ignore_index=True)
        return {
            "seeds": self.seeds,
            **whole,
            "thresholds": self.agreement,
            "league": self.league,
            "joint": self.joint,
            "pruning": self.pruning,
            "course": self.course,
        }


def gaps_over_seeds(
    timelines: Mapping[str, Timeline],
    *,
    excluded: Mapping[str, str] | None = None,
    method: str = METHOD,
    reference: str = REFERENCE,
    threshold: float = THRESHOLD,
    thresholds: Sequence[float] = THRESHOLDS,
    n_permutations: int = 10_000,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> GapOverSeeds:
    """Lays the gaps of runs of one setting side by side.

    Args:
        timelines: The timeline of each run, by its name.
        excluded: Runs that count in nothing, with the reason, by their name, such as those that
            failed; they need not have a timeline. Runs without a held-out length that is neither
            solved nor hopeless are excluded by themselves.
        method: The attribution; a name in `gap_readings.METHODS`.
        reference: The importance; a name in `gap_readings.REFERENCES`.
        threshold: Ranks that make a hero or a bloat.
        thresholds: Thresholds that are compared with it.
        n_permutations: Shuffles behind the p-values of roles.
        n_resamples: Bootstrap resamples over seeds.
        seed: Seed of both streams.

    Raises:
        MeasureError: If there is no run at all, or a name is unknown.
    """
    unasked = {
        name: reason for name, line in timelines.items() if (reason := why_not_asked(line.data))
    }
    excluded = unasked | dict(excluded or {})
    if not timelines and not excluded:
        raise MeasureError("`timelines` must hold at least one run; got none.")
    options: dict[str, Any] = {"reference": reference, "threshold": threshold}
    counted = {name: line for name, line in timelines.items() if name not in excluded}
    gaps = {name: find_gap(line, method=method, **options) for name, line in counted.items()}
    usual = _usual_components(gaps)
    for name, gap in list(gaps.items()):
        if gap.gaps and gap.components != usual:
            excluded[name] = OTHER_COMPONENTS
            del gaps[name], counted[name]
    ranks = [_final_ranks(gap, len(usual)) for gap in gaps.values()]
    stacked = np.stack(ranks) if ranks else np.full((0, 3, len(usual)), np.nan)
    every = tuple(sorted({threshold, *thresholds}))
    resampling = {"n_resamples": n_resamples, "seed": seed}
    rhos = [gap.final.rho if gap.final else float("nan") for gap in gaps.values()]
    return GapOverSeeds(
        method=method,
        reference=reference,
        threshold=threshold,
        gaps=gaps,
        excluded=excluded,
        timelines=dict(timelines),
        seeds=_seed_table(timelines, gaps, excluded),
        rho=mean_over_seeds(rhos, **resampling),
        roles={
            at: role_stability(
                stacked[:, 0],
                stacked[:, 1],
                usual,
                threshold=at,
                n_permutations=n_permutations,
                seed=seed,
            )
            for at in (every if usual else ())
        },
        agreement=threshold_agreement(stacked[:, 2], thresholds=every, reference=threshold),
        league=method_league(counted, **resampling),
        joint=_joint_over_seeds(counted, resampling),
        pruning=_pruning_over_seeds(counted, resampling),
        course=_course(gaps),
    )


def _usual_components(gaps: Mapping[str, AttributionGap]) -> tuple[str, ...]:
    """The components that most runs have."""
    found = [gap.components for gap in gaps.values() if gap.gaps]
    return max(found, key=found.count) if found else ()


def _final_ranks(gap: AttributionGap, n: int) -> Float[np.ndarray, "3 component"]:
    """Ranks by attribution and importance and delta at the last step; NaN where undefined."""
    if gap.final is None or gap.final.reason:
        return np.full((3, n), np.nan)
    final = gap.final
    return np.stack([final.attribution_rank, final.importance_rank, final.delta])


def _seed_table(
    timelines: Mapping[str, Timeline],
    gaps: Mapping[str, AttributionGap],
    excluded: Mapping[str, str],
) -> pd.DataFrame:
    rows = []
    for name in dict.fromkeys([*timelines, *excluded]):
        gap, line = gaps.get(name), timelines.get(name)
        data = None if line is None else line.data
        before = {"value": np.nan, "n": None} if data is None else last_value(data, "exact_match")
        trained = -1 if data is None else int(data.attrs.get("seed", -1))
        rows.append(
            {
                "run": name,
                "seed": trained if trained >= 0 else None,
                "rho": np.nan if gap is None or gap.final is None else gap.final.rho,
                "heroes": "" if gap is None else ", ".join(gap.named("hero")),
                "bloats": "" if gap is None else ", ".join(gap.named("bloat")),
                "separation": None if gap is None else gap.separation.step,
                "exact_match": before["value"],
                "n_examples": before["n"],
                "last_step": None if line is None or not line.steps else line.steps[-1],
                "reason": excluded.get(name, "" if gap is None else gap.why_no_rho()),
            }
        )
    table = pd.DataFrame(rows)
    return table.astype(
        dict.fromkeys(("seed", "separation", "n_examples", "last_step"), "Int64")
        | dict.fromkeys(("rho", "exact_match"), "float64")
    )


def _joint_over_seeds(
    timelines: Mapping[str, Timeline], resampling: Mapping[str, int]
) -> pd.DataFrame:
    """A row a set: means over seeds of both drops, how often the ratio is infinite or undefined."""
    tables = [table for line in timelines.values() if len(table := joint_table(line.data))]
    whole = [row for table in tables for row in table.to_dict("records")]
    sets = dict.fromkeys(row["component_set"] for row in whole)
    rows = []
    for name in sets:
        own = [row for row in whole if row["component_set"] == name]
        ratio = np.array([row["super_additivity"] for row in own], dtype=np.float64)
        row: dict[str, Any] = {"component_set": name}
        for column, prefix in (("joint_drop", "joint"), ("sum_of_drops", "sum")):
            row |= _flat(mean_over_seeds([row[column] for row in own], **resampling), prefix)
        row |= _flat(
            mean_over_seeds(np.where(np.isinf(ratio), np.nan, ratio), **resampling), "ratio"
        )
        row["ratio_infinite"] = int(np.isinf(ratio).sum())
        row["ratio_undefined"] = int(np.isnan(ratio).sum())
        row["ratio_of_means"] = _ratio(row["joint_mean"], row["sum_mean"])
        rows.append(row)
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=["component_set"])


def _pruning_over_seeds(
    timelines: Mapping[str, Timeline], resampling: Mapping[str, int]
) -> pd.DataFrame:
    """A row for each kind, k and split: mean over the seeds that have as many of that kind."""
    points: dict[tuple[str, str, int], list[float]] = {}
    for line in timelines.values():
        for row in pruning_table(line.data).to_dict("records"):
            key = (row["pruned_kind"], row["split"], int(row["k"]))
            points.setdefault(key, []).append(float(row["exact_match"]))
    rows = [
        {
            **dict(zip(("pruned_kind", "split", "k"), key, strict=True)),
            **_flat(mean_over_seeds(values, **resampling)),
        }
        for key, values in points.items()
    ]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=["pruned_kind", "split", "k"])


def _course(gaps: Mapping[str, AttributionGap]) -> pd.DataFrame:
    """rho at each step over the seeds that were measured there and define it.

    Seeds that stopped earlier are no longer among them: `n` says how many there are.
    """
    points: dict[int, list[float]] = {}
    for gap in gaps.values():
        for step, rho in zip(gap.steps, gap.rho.tolist(), strict=True):
            points.setdefault(step, []).append(rho)
    rows = []
    for step in sorted(points):
        values = np.array(points[step])
        known = values[np.isfinite(values)]
        low, median, high = np.quantile(known, (0.25, 0.5, 0.75)) if known.size else [np.nan] * 3
        rows.append(
            {
                "step": step,
                "n": int(known.size),
                "n_undefined": int(values.size - known.size),
                "median": float(median),
                "low": float(low),
                "high": float(high),
            }
        )
    columns = ["step", "n", "n_undefined", "median", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _flat(found: SeedMean, prefix: str = "") -> dict[str, Any]:
    start = f"{prefix}_" if prefix else ""
    names = ("mean", "sd", "low", "high", "bootstrap_low", "bootstrap_high", "n")
    return {f"{start}{name}": getattr(found, name) for name in names}


def _ratio(above: float, below: float) -> float:
    """above / below; NaN where below is 0."""
    return above / below if below else float("nan")
