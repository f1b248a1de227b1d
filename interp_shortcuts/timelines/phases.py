"""The phases of one run: its events, its outcome, the hand-over between circuits, in words.

This is the one home of what the science notes on arXiv 2607.10116 call events and outcome; plots
and reports only show it. Thresholds are fields of `PhaseRules`. Nothing here needs torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.timelines import phases_text
from interp_shortcuts.timelines.carriers import (
    CarrierVerdict,
    When,
    carrier_verdicts,
    missing_for_carriers,
)
from interp_shortcuts.timelines.circuit_events import (
    CircuitEvent,
    causal_events,
    circuit_events,
)
from interp_shortcuts.timelines.events import (
    EVENT_NAMES,
    BehaviourCurves,
    Event,
    behaviour_events,
    read_curves,
)
from interp_shortcuts.timelines.handover import HandoverEntry, handover
from interp_shortcuts.timelines.phase_rules import PhaseRules
from interp_shortcuts.timelines.sentence import run_sentence

OUTCOMES = (
    "never learned",
    "memorised",
    "shortcut",
    "partial",
    "generalised",
    "transient",
    "direct",
    "undetermined",
)
"""The outcomes; the last is for runs whose validation or adversarial accuracy was not measured."""


@dataclass(frozen=True, repr=False)
class Phases:
    """Events and outcome of one run.

    Attributes:
        outcome: One of `OUTCOMES`; see `find_phases`.
        sentence: The run in words.
        events: The behavioural events, absent ones with the reason.
        circuit_events: How each measure of each head moved from the shortcut phase to the end.
        causal_events: The same for the causal role of each head, MLP and set: transfers (on
            `"validation<-adversarial"`) and what mean ablation costs. Empty if not measured.
        carriers: Which component carried the shortcut or the rule, before and after. Empty if not
            measured.
        carriers_reason: Why there are no `carriers`; empty when there are.
        handover: QK declines, OV rises, causal take-over, onset and completion in order; empty
            without an onset.
        chance: 1 / classes.
        n_adversarial: Number of adversarial examples asked at each evaluation, if known.
        last_step: The last evaluation; None when there is none.
        rules: The thresholds used.
    """

    outcome: str
    sentence: str
    events: tuple[Event, ...]
    circuit_events: tuple[CircuitEvent, ...]
    causal_events: tuple[CircuitEvent, ...]
    carriers: tuple[CarrierVerdict, ...]
    carriers_reason: str
    handover: tuple[HandoverEntry, ...]
    chance: float
    n_adversarial: int | None
    last_step: int | None
    rules: PhaseRules

    def event(self, name: str) -> Event:
        """The event of that name, dated or not.

        Raises:
            MeasureError: If there is no event of that name.
        """
        for event in self.events:
            if event.name == name:
                return event
        raise MeasureError(f"`name` must be one of {', '.join(EVENT_NAMES)}; got {name!r}.")

    @property
    def onset(self) -> int | None:
        """The step at which phase 2 began."""
        return self.event("onset").step

    @property
    def completion(self) -> int | None:
        """The first step at which the rule was complete (`generalised`)."""
        return self.event("generalised").step

    def to_dataframe(self) -> pd.DataFrame:
        """One row an event, behavioural ones first; what does not apply is empty or NaN.

        Two rows a component say what it carried: `carries_before` and `carries_after`.
        """
        rows = [
            {
                "kind": "behaviour",
                "event": event.name,
                "component": "",
                "measure": "",
                "feature": "",
                "split": "",
                "step": event.step,
                "lag": _difference(event.step, self.onset),
                "value": event.value,
                "direction": "",
                "reason": event.reason,
                "description": event.description,
            }
            for event in self.events
        ]
        for kind, items in (("circuit", self.circuit_events), ("causal", self.causal_events)):
            rows += [_half_way_row(kind, item) for item in items]
        for verdict in self.carriers:
            rows += [_carrier_row(verdict, "before"), _carrier_row(verdict, "after")]
        columns = [
            *("kind", "event", "component", "measure", "feature", "split", "step", "lag", "value"),
            *("phase1_level", "final_level", "change", "direction", "peak_value", "peak_step"),
            *("verdict", "rule_transfer", "shortcut_transfer", "disruption"),
            *("reason", "description"),
        ]
        frame = pd.DataFrame(rows, columns=columns)
        whole = ["step", "lag", "peak_step"]
        frame = frame.astype(dict.fromkeys(whole, "Int64") | {"value": "float64"})
        texts = ["measure", "feature", "split", "direction", "verdict"]
        return frame.assign(**{name: frame[name].fillna("") for name in texts})

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON-able values; NaN becomes None."""
        found = {
            "outcome": self.outcome,
            "sentence": self.sentence,
            "onset": self.onset,
            "completion": self.completion,
            "chance": self.chance,
            "n_adversarial": self.n_adversarial,
            "last_step": self.last_step,
            "events": [asdict(event) for event in self.events],
            "circuit_events": [_event_dict(item) for item in self.circuit_events],
            "causal_events": [_event_dict(item) for item in self.causal_events],
            "carriers": [
                asdict(verdict) | {"description": verdict.description} for verdict in self.carriers
            ],
            "carriers_reason": self.carriers_reason,
            "handover": [asdict(entry) for entry in self.handover],
            "rules": self.rules.model_dump(mode="json"),
        }
        return _without_nan(found)

    def __repr__(self) -> str:
        return phases_text.as_text(self)

    def _repr_html_(self) -> str:
        return phases_text.as_html(self)


def find_phases(data: xr.Dataset, rules: PhaseRules | None = None) -> Phases:
    """Reads events and outcome from a timeline's dataset.

    The outcome, decided in this order (levels "at the end" are means over the last
    `rules.hysteresis` evaluations):

    1. `undetermined`: validation or adversarial accuracy was never measured.
    2. `transient`: generalised, then lost.
    3. `direct`: generalised, with no shortcut phase before.
    4. `generalised`.
    5. `partial`: adversarial accuracy is above chance at the end, after a dated onset; or, without
       one, above chance by more than `partial_margin`. The margin keeps a memorising or unlearned
       network, which answers adversarial examples at about chance, out of this outcome.
    6. `shortcut`: the shortcut was learned.
    7. `memorised`: training accuracy at the end is at least `memorised_level`.
    8. `never learned`.

    Args:
        data: A timeline's `data`; what it lacks makes events absent, with the reason.
        rules: Thresholds; the defaults of `PhaseRules` without them.

    Raises:
        MeasureError: If the chance level cannot be read from the attrs.
    """
    rules = PhaseRules() if rules is None else rules
    curves = read_curves(data)
    events = behaviour_events(curves, rules)
    by_name = {event.name: event for event in events}
    outcome = _outcome(curves, by_name, rules)
    circuit = circuit_events(data, events, rules)
    causal = causal_events(data, events, rules)
    carriers = carrier_verdicts(data, events, rules)
    return Phases(
        outcome=outcome,
        sentence=run_sentence(outcome, curves, by_name, circuit, carriers, rules),
        events=events,
        circuit_events=circuit,
        causal_events=causal,
        carriers=carriers,
        carriers_reason=missing_for_carriers(data),
        handover=handover(events, circuit, causal, carriers),
        chance=curves.chance,
        n_adversarial=curves.n_adversarial,
        last_step=int(curves.steps[-1]) if len(curves.steps) else None,
        rules=rules,
    )


def _outcome(curves: BehaviourCurves, events: Mapping[str, Event], rules: PhaseRules) -> str:
    if not curves.answers:
        return "undetermined"
    complete, learned = events["generalised"].step, events["shortcut_learned"].step
    if complete is not None:
        if events["lost"].step is not None:
            return "transient"
        return "direct" if learned is None or learned > complete else "generalised"
    adversarial = curves.at_end(curves.adversarial, rules.hysteresis)
    bar = curves.chance + (rules.partial_margin if events["onset"].step is None else 0.0)
    if np.float32(adversarial) > np.float32(bar):
        return "partial"
    if learned is not None:
        return "shortcut"
    train = curves.at_end(curves.train, rules.hysteresis)
    if np.float32(train) >= np.float32(rules.memorised_level):
        return "memorised"
    return "never learned"


def _half_way_row(kind: str, item: CircuitEvent) -> dict[str, Any]:
    return {
        "kind": kind,
        "event": "half_way",
        **asdict(item),
        "value": item.half_way_value,
        "change": item.change,
        "description": item.description,
    }


def _carrier_row(verdict: CarrierVerdict, when: When) -> dict[str, Any]:
    return {
        "kind": "carrier",
        "event": f"carries_{when}",
        "component": verdict.component,
        "verdict": verdict.verdict(when),
        "rule_transfer": verdict.transfer("rule", when),
        "shortcut_transfer": verdict.transfer("shortcut", when),
        "disruption": verdict.disruption(when),
        "reason": verdict.reason(when),
        "description": verdict.description,
    }


def _event_dict(item: CircuitEvent) -> dict[str, Any]:
    return asdict(item) | {"change": item.change, "description": item.description}


def _difference(step: int | None, origin: int | None) -> int | None:
    return None if step is None or origin is None else step - origin


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
