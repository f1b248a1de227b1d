"""The gap between attribution and importance in sentences, with the numbers they rest on.

Nothing is computed here. What the words mean is said on the pages that show them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from interp_shortcuts.measures.attribution.gap import Role
from interp_shortcuts.timelines.attribution_gap import AttributionGap
from interp_shortcuts.timelines.gap_over_seeds import GapOverSeeds
from interp_shortcuts.timelines.words import capital, count_of, interval_text, listed, signed

_ROLES = {"hero": "hidden hero", "bloat": "gradient bloat"}
_MANY = {"hero": "hidden heroes", "bloat": "gradient bloats"}
_SETS = {"heroes": "all its heroes", "bloats": "all its bloats"}


def gap_sentences(gap: AttributionGap, joint: pd.DataFrame | None = None) -> list[str]:
    """What one run shows: rho, heroes and bloats, when they part, what they cost jointly.

    Args:
        gap: The gap of the run.
        joint: Its joint ablations, as `gap_tables.joint_table` gives them.
    """
    found = []
    if reason := gap.why_no_rho():
        found.append(
            f"{capital(gap.method.name)} and {gap.reference.name} cannot be compared: {reason}."
        )
    else:
        found += [_rho(gap), _roles(gap), _separation(gap)]
    for row in [] if joint is None else joint.to_dict("records"):
        if row["component_set"] in _SETS and np.isfinite(row["joint_drop"]):
            found.append(_joint(row))
    return found


def seeds_sentences(found: GapOverSeeds) -> list[str]:
    """What many runs show together."""
    return [
        _mean_rho(found),
        *_stability(found),
        *_separations(found),
        *_closest(found),
        *(_joint_mean(row) for row in found.joint.to_dict("records") if _is_role_set(row)),
        *_agreement(found),
    ]


def p_text(value: float) -> str:
    """A p-value with two digits."""
    return f"p = {value:.2g}" if value >= 0.001 else f"p = {value:.1g}"


def _rho(gap: AttributionGap) -> str:
    return (
        f"At step {gap.steps[-1]:,}, {gap.method.name} and {gap.reference.name} rank the "
        f"{len(gap.components)} components with a Spearman correlation of "
        f"{signed(float(gap.rho[-1]))}."
    )


def _roles(gap: AttributionGap) -> str:
    sentences = []
    sides: tuple[tuple[Role, str], ...] = (("hero", "more"), ("bloat", "less"))
    for role, direction in sides:
        names, words = gap.named(role), _ROLES[role]
        if not names:
            sentences.append(f"There is no {words}.")
            continue
        many = _MANY[role]
        matter = "matters" if len(names) == 1 else "matter"
        sentences.append(
            f"{count_of(len(names), words, many)} ({', '.join(names)}) {matter} {direction} than "
            f"attribution says, by at least {gap.threshold:g} ranks."
        )
    return " ".join(sentences)


def _separation(gap: AttributionGap) -> str:
    found = gap.separation
    if found.step is None:
        return f"Heroes and bloats do not stand apart for good: {found.reason}."
    last = ", the last step" if found.at_last else ""
    return f"A hero and a bloat first stand apart for good at step {found.step:,}{last}."


def _joint(row: Mapping[Any, Any]) -> str:
    interval = interval_text(row["joint_low"], row["joint_high"])
    one_by_one = f"one by one they cost {signed(row['sum_of_drops'])} in all"
    ratio = float(row["super_additivity"])
    times = f", a factor of {signed(ratio, 1)}" if np.isfinite(ratio) else ""
    return (
        f"Taking {_SETS[row['component_set']]} away at once costs {signed(row['joint_drop'])} of "
        f"exact match{interval}; {one_by_one}{times}."
    )


def _mean_rho(found: GapOverSeeds) -> str:
    rho = found.rho
    pair = f"{found.method} and {found.reference}"
    out = len(found.excluded)
    excluded = f" {count_of(out, 'run is', 'runs are')} excluded and in no number." if out else ""
    undefined = (
        f" In {count_of(rho.n_undefined, 'further run')} it is undefined."
        if rho.n_undefined
        else ""
    )
    if not rho.n:
        return f"No run defines a rank correlation of {pair}.{undefined}{excluded}"
    spread = (
        f" (sd {rho.sd:.2f}; 95% t interval {signed(rho.low)} to {signed(rho.high)}; bootstrap "
        f"over seeds {signed(rho.bootstrap_low)} to {signed(rho.bootstrap_high)})"
        if rho.n > 1
        else ""
    )
    return (
        f"Over {count_of(rho.n, 'seed')}, Spearman's rho of {pair} is {signed(rho.mean)} on "
        f"average{spread}.{undefined}{excluded}"
    )


def _stability(found: GapOverSeeds) -> list[str]:
    stability = found.roles.get(found.threshold)
    if stability is None or not stability.n_seeds:
        return []
    sentences = []
    for side, words in _ROLES.items():
        most = stability.most(side)
        if most is None:
            sentences.append(f"No component is a {words} in any seed.")
            continue
        own = stability.identities.to_dict("records")
        names = _most_of(own, side, "component", "seeds")
        are = f"is a {words}" if len(names) == 1 else f"are {_MANY[side]}"
        layers = [row for row in stability.layers.to_dict("records") if row["side"] == side]
        most_layers = _most_of(layers, side, "layer", "count")
        count = max(int(row["count"]) for row in layers)
        total = sum(int(row["count"]) for row in layers)
        where = (
            f"Layer {most_layers[0]} has most of them: {count} of {total}."
            if len(most_layers) == 1
            else f"Layers {listed(most_layers)} have most of them: {count} each of {total}."
        )
        sentences.append(
            f"{listed(names)} {are} in {most['seeds']} of {most['of']} seeds; some component is "
            f"one in as many in {100 * most['p_any']:.3g}% of {stability.n_permutations:,} "
            f"shuffles of the ranks ({p_text(most['p_any'])}). {where}"
        )
    return sentences


def _most_of(rows: Sequence[Mapping[Any, Any]], side: str, name: str, count: str) -> list[str]:
    """The names with the largest count, all of those that share it."""
    own = [row for row in rows if row["side"] == side]
    most = max(row[count] for row in own)
    return [str(row[name]) for row in own if row[count] == most]


def _separations(found: GapOverSeeds) -> list[str]:
    counted = [row for row in found.seeds.to_dict("records") if row["run"] in found.gaps]
    steps = [int(row["separation"]) for row in counted if not pd.isna(row["separation"])]
    if not counted:
        return []
    if not steps:
        return [f"In none of {count_of(len(counted), 'seed')} do heroes and bloats stand apart."]
    return [
        f"A hero and a bloat stand apart for good in {len(steps)} of "
        f"{count_of(len(counted), 'seed')}, from step {min(steps):,} at the earliest and "
        f"{max(steps):,} at the latest (median {np.median(steps):,.0f})."
    ]


def _closest(found: GapOverSeeds) -> list[str]:
    sentences = []
    for reference in (found.reference, "Shapley"):
        rows = [r for r in found.league.to_dict("records") if r["reference"] == reference]
        best = next((row for row in rows if row["best"]), None)
        own = next((row for row in rows if row["method"] == found.method), None)
        if best is None or reference in "".join(sentences):
            continue
        behind = ""
        if own is not None and not own["best"] and np.isfinite(own["behind"]):
            interval = interval_text(own["behind_low"], own["behind_high"])
            behind = f"; {found.method} is behind it by {signed(own['behind'])}{interval}"
        sentences.append(
            f"Closest to {reference}: {best['method']}, mean rho {signed(best['mean'])}"
            f"{interval_text(best['low'], best['high'])}, n = {best['n']}{behind}."
        )
    return sentences


def _joint_mean(row: Mapping[Any, Any]) -> str:
    ratio = float(row["ratio_of_means"])
    times = f": a factor of {signed(ratio, 1)} between the means" if np.isfinite(ratio) else ""
    return (
        f"Taking {_SETS[row['component_set']].replace('its', 'a run’s')} away at once costs "
        f"{signed(row['joint_mean'])} of exact match on average"
        f"{interval_text(row['joint_low'], row['joint_high'])}, one by one "
        f"{signed(row['sum_mean'])} in all{times} (n = {row['joint_n']} seeds)."
    )


def _agreement(found: GapOverSeeds) -> list[str]:
    others = [
        row
        for row in found.agreement.to_dict("records")
        if row["threshold"] != found.threshold and row["seeds"]
    ]
    if not others:
        return []
    parts = [f"{100 * row['same_role']:.0f}% at {row['threshold']:g}" for row in others]
    return [
        f"Of the components, {listed(parts)} ranks keep the role they have at {found.threshold:g}."
    ]


def _is_role_set(row: Mapping[Any, Any]) -> bool:
    return row["component_set"] in _SETS and bool(np.isfinite(row["joint_mean"]))
