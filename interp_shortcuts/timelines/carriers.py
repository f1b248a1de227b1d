"""Which component carries the shortcut, which the rule, before and after the hand-over.

Read from cross-split patching (`rule_transfer`, `shortcut_transfer`, `disruption`). What a transfer
is follows the science notes on arXiv 2607.10116; the verdict is ours: a component carries X when
its X transfer exceeds its disruption by `PhaseRules.carrier_level`. Disruption is subtracted
because patching one of two heads that compute together mixes two sequences, and moves predictions
whatever the head carries.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from interp_shortcuts.timelines.component_curves import (
    DIRECTION,
    TRANSFER_READINGS,
    ComponentCurve,
    component_curves,
)
from interp_shortcuts.timelines.events import Event, mean_of_known
from interp_shortcuts.timelines.levels import at_end, in_phase1
from interp_shortcuts.timelines.phase_rules import PhaseRules

VERDICTS = ("shortcut carrier", "rule carrier", "both", "neither", "undetermined")

What = Literal["rule", "shortcut"]
When = Literal["before", "after"]

_DIGITS = 6
"""Decimals at which a margin is compared, so that 0.8 - 0.3 reaches a level of 0.5."""


@dataclass(frozen=True)
class CarrierVerdict:
    """What one component carried in phase 1 and what it carries at the end.

    Levels are fractions of pairs in [0, 1], for targets from validation patched from adversarial
    sources; NaN when unknown. *Before* is the mean over the evaluations from `shortcut_learned` to
    the onset (at `shortcut_learned` alone without an onset), *after* that over the last m, as far
    as they follow the onset.

    Attributes:
        component: The head, MLP or set, e.g. `"L1.mlp"` or `"all heads"`.
        before: One of `VERDICTS`.
        after: One of `VERDICTS`.
        rule_transfer_before: Share of pairs whose prediction moves to the source's true label.
        shortcut_transfer_before: Share that moves to the source's shortcut label.
        disruption_before: Share that changes though the source has the target's labels.
        rule_transfer_after: As before, at the end.
        shortcut_transfer_after: As before, at the end.
        disruption_after: As before, at the end.
        reason_before: Why `before` is undetermined; empty otherwise.
        reason_after: Why `after` is undetermined; empty otherwise.
    """

    component: str
    before: str
    after: str
    rule_transfer_before: float
    shortcut_transfer_before: float
    disruption_before: float
    rule_transfer_after: float
    shortcut_transfer_after: float
    disruption_after: float
    reason_before: str = ""
    reason_after: str = ""

    def transfer(self, what: What, when: When) -> float:
        """The transfer of the rule or the shortcut, before or after."""
        return float(getattr(self, f"{what}_transfer_{when}"))

    def disruption(self, when: When) -> float:
        """The disruption, before or after."""
        return self.disruption_before if when == "before" else self.disruption_after

    def verdict(self, when: When) -> str:
        """The verdict, before or after."""
        return self.before if when == "before" else self.after

    def reason(self, when: When) -> str:
        """Why the verdict is undetermined; empty otherwise."""
        return self.reason_before if when == "before" else self.reason_after

    def margin(self, what: What, when: When) -> float:
        """Transfer minus disruption."""
        return self.transfer(what, when) - self.disruption(when)

    def carries(self, what: What, when: When) -> bool:
        """Whether the component carries the rule or the shortcut, before or after."""
        return self.verdict(when) in (f"{what} carrier", "both")

    @property
    def description(self) -> str:
        """Both verdicts with their numbers, in words."""
        return f"{self.component}: {self._words('before')}; at the end {self._words('after')}"

    def _words(self, when: When) -> str:
        if self.reason(when):
            return f"{self.verdict(when)} ({self.reason(when)})"
        return (
            f"{self.verdict(when)} (rule {self.transfer('rule', when):.2f}, shortcut "
            f"{self.transfer('shortcut', when):.2f}, disruption {self.disruption(when):.2f})"
        )


def missing_for_carriers(data: xr.Dataset) -> str:
    """Why there can be no verdicts; empty when the transfers were measured."""
    missing = [
        reading.measure
        for reading in TRANSFER_READINGS
        if next(component_curves(data, reading), None) is None
    ]
    if not missing:
        return ""
    return (
        f"no cross-split patching: {', '.join(missing)} (direction {DIRECTION}) not in the timeline"
    )


def carrier_verdicts(
    data: xr.Dataset, events: Sequence[Event], rules: PhaseRules
) -> tuple[CarrierVerdict, ...]:
    """The verdict of every component that was patched, in the order of the data."""
    if missing_for_carriers(data):
        return ()
    curves = {
        reading.measure: {curve.component: curve for curve in component_curves(data, reading)}
        for reading in TRANSFER_READINGS
    }
    shared = set.intersection(*(set(of_measure) for of_measure in curves.values()))
    return tuple(
        _verdict_of({name: found[component] for name, found in curves.items()}, events, rules)
        for component in curves["rule_transfer"]
        if component in shared
    )


def smallest_carriers(
    verdicts: Sequence[CarrierVerdict], what: What, when: When
) -> tuple[CarrierVerdict, ...]:
    """The carriers of which no part carries as well, the clearest (largest margin) first.

    A set that holds a carrier carries in most cases too, and says nothing new.
    """
    found = [verdict for verdict in verdicts if verdict.carries(what, when)]
    smallest = [
        verdict
        for verdict in found
        if not any(_is_part(other.component, verdict.component) for other in found)
    ]
    return tuple(sorted(smallest, key=lambda verdict: -verdict.margin(what, when)))


def _verdict_of(
    curves: dict[str, ComponentCurve], events: Sequence[Event], rules: PhaseRules
) -> CarrierVerdict:
    by_name = {event.name: event for event in events}
    learned, onset = by_name["shortcut_learned"], by_name["onset"].step
    levels: dict[str, dict[str, float]] = {"before": {}, "after": {}}
    taken = {"before": True, "after": True}
    for name, curve in curves.items():
        masks = {
            "before": in_phase1(curve.steps, learned=learned.step, onset=onset),
            "after": at_end(curve.steps, onset=onset, m=rules.hysteresis),
        }
        for when, mask in masks.items():
            levels[when][name] = mean_of_known(curve.values[mask])
            taken[when] &= bool(mask.any())
    reasons = dict.fromkeys(levels, "")
    for when, found in levels.items():
        unknown = [name for name, value in found.items() if not np.isfinite(value)]
        if when == "before" and learned.step is None:
            reasons[when] = f"there is no shortcut phase: {learned.reason}"
        elif not taken[when]:
            where = "in the shortcut phase" if when == "before" else "after the onset"
            reasons[when] = f"not measured {where}"
        elif unknown:
            where = "in the shortcut phase" if when == "before" else "at the end"
            reasons[when] = f"{', '.join(unknown)} undefined {where}"
    return CarrierVerdict(
        component=curves["rule_transfer"].component,
        before="undetermined" if reasons["before"] else _verdict(levels["before"], rules),
        after="undetermined" if reasons["after"] else _verdict(levels["after"], rules),
        rule_transfer_before=levels["before"]["rule_transfer"],
        shortcut_transfer_before=levels["before"]["shortcut_transfer"],
        disruption_before=levels["before"]["disruption"],
        rule_transfer_after=levels["after"]["rule_transfer"],
        shortcut_transfer_after=levels["after"]["shortcut_transfer"],
        disruption_after=levels["after"]["disruption"],
        reason_before=reasons["before"],
        reason_after=reasons["after"],
    )


def _verdict(levels: dict[str, float], rules: PhaseRules) -> str:
    carried = [
        what
        for what in ("rule", "shortcut")
        if round(levels[f"{what}_transfer"] - levels["disruption"], _DIGITS) >= rules.carrier_level
    ]
    if len(carried) == 2:
        return "both"
    return f"{carried[0]} carrier" if carried else "neither"


def _is_part(part: str, whole: str) -> bool:
    """Whether a component or set lies in another set, as far as their names say."""
    own, others = part.split(" + "), whole.split(" + ")
    return part != whole and all(
        any(name == other or _in_set(name, other) for other in others) for name in own
    )


def _in_set(name: str, whole: str) -> bool:
    if whole == "all heads":
        return re.fullmatch(r"L\d+\.(H\d+|heads)", name) is not None
    if whole == "all mlps":
        return re.fullmatch(r"L\d+\.mlp", name) is not None
    layer, _, members = whole.partition(".")
    return members == "heads" and re.fullmatch(rf"{layer}\.H\d+", name) is not None
