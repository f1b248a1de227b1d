"""What happened in a run, in a plain sentence or two.

It says only what the events say: no phase 2 without an onset, no fall without a measured one.
Events, levels and the outcome are computed elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from interp_shortcuts.timelines.carriers import CarrierVerdict, What, When, smallest_carriers
from interp_shortcuts.timelines.circuit_events import CircuitEvent
from interp_shortcuts.timelines.events import BehaviourCurves, Event
from interp_shortcuts.timelines.phase_rules import PhaseRules

_NAMED = 3
"""How many carriers a sentence names."""


def run_sentence(
    outcome: str,
    curves: BehaviourCurves,
    events: Mapping[str, Event],
    circuit: Sequence[CircuitEvent],
    carriers: Sequence[CarrierVerdict],
    rules: PhaseRules,
) -> str:
    """The run in words; what carried shortcut and rule is said only where it was measured."""
    if not len(curves.steps):
        return "There is no evaluation, so nothing can be said about this run."
    last = int(curves.steps[-1])
    if outcome == "undetermined":
        return f"By step {last} the outcome cannot be told: {curves.missing_answers}."
    clauses = [_behaviour(outcome, curves, events, last), *_circuits(events, circuit, rules)]
    story = "; ".join(clauses) + "."
    causes = _causes(outcome, events, carriers)
    return f"{story} {causes}" if causes else story


def accuracy_text(value: float) -> str:
    """A fraction in words' precision; 1.00 and 0.00 are kept for exactly one and zero."""
    if math.isnan(value):
        return "not measured"
    for digits in (2, 3, 4):
        text = f"{value:.{digits}f}"
        if float(text) not in (0.0, 1.0) or value in (0.0, 1.0):
            return text
    return "just below 1" if value > 0.5 else "just above 0"


def _behaviour(
    outcome: str,
    curves: BehaviourCurves,
    events: Mapping[str, Event],
    last: int,
) -> str:
    # the outcome is read from means at the end, but a value "at step" is that of the step
    validation = accuracy_text(float(curves.validation[-1]))
    adversarial = accuracy_text(float(curves.adversarial[-1]))
    train = accuracy_text(float(curves.train[-1]))
    chance = f"chance is {curves.chance:.2f}"
    if outcome in ("never learned", "memorised"):
        levels = f"validation {validation}, adversarial {adversarial} ({chance})"
        if outcome == "memorised":
            return (
                f"The training examples were memorised (accuracy {train} at step {last}) while "
                f"neither the shortcut nor the rule was learned: {levels}"
            )
        return (
            f"Neither the shortcut nor the rule was learned by step {last}: accuracy "
            f"{train} in training, {levels}"
        )
    begun = _beginning(events)
    if outcome == "shortcut":
        end = f"adversarial accuracy was {adversarial} and validation {validation} at step {last}"
        return f"{begun}; no phase 2 was seen: {end} ({chance})"
    if outcome == "partial":
        onset = events["onset"].step
        phase = (
            f"phase 2 began at step {onset}, but the rule was not complete"
            if onset is not None
            else "the rule was learned in part"
        )
        return f"{begun}; {phase}: adversarial accuracy was {adversarial} at step {last} ({chance})"
    return _completed(begun, curves, events, adversarial, last)


def _beginning(events: Mapping[str, Event]) -> str:
    learned, saturation = events["shortcut_learned"].step, events["saturation"].step
    if learned is None:
        return "There was no shortcut phase"
    text = f"Shortcut learned by step {learned}"
    onset = events["onset"].step
    if saturation is not None and (onset is None or saturation <= onset):
        text += f" and saturated by step {saturation}"
    return text


def _completed(
    begun: str,
    curves: BehaviourCurves,
    events: Mapping[str, Event],
    adversarial: str,
    last: int,
) -> str:
    complete, learned = events["generalised"].step, events["shortcut_learned"].step
    onset, lost = events["onset"].step, events["lost"].step
    asked = f" (on {curves.n_adversarial:,} examples)" if curves.n_adversarial else ""
    done = f"the rule was complete at step {complete}{asked}"
    if learned is None:
        text = f"The rule was complete at step {complete}{asked} with no shortcut phase before it"
    elif complete is not None and learned > complete:
        text = (
            f"The rule was complete at step {complete}{asked} with no shortcut phase before it; "
            f"the shortcut was learned by step {learned}"
        )
    elif onset is None:
        text = f"{begun}; {done}"
    else:
        text = f"{begun}; phase 2 began at step {onset} and {done}"
    if lost is not None:
        text += (
            f", but the rule was lost from step {lost}: adversarial accuracy was {adversarial} "
            f"at step {last}"
        )
    return text


def _circuits(
    events: Mapping[str, Event], circuit: Sequence[CircuitEvent], rules: PhaseRules
) -> list[str]:
    """The largest QK decline and the largest OV rise, in runs with a dated onset."""
    if events["onset"].step is None:
        return []
    found = []
    qk = _largest(circuit, "qk_spearman", lambda event: event.weakens)
    if qk is not None:
        if qk.peak_step is not None and qk.peak_value > max(qk.final_level, qk.phase1_level):
            found.append(
                f"{qk.component}'s {qk.words} peaked at {qk.peak_value:.2f} at step "
                f"{qk.peak_step} and fell to {qk.final_level:.2f}"
            )
        else:
            found.append(qk.description)
    elif _measured(circuit, "qk_spearman"):
        words = _measured(circuit, "qk_spearman")[0].words
        found.append(f"no head's {words} weakened by {rules.min_change:g} or more")
    for measure in ("ov_spearman", "ov_class_fraction"):
        ov = _largest(circuit, measure, lambda event: event.strengthens)
        if ov is not None:
            found.append(ov.description + _lag(ov))
        elif _measured(circuit, measure):
            words = _measured(circuit, measure)[0].words
            found.append(f"no head's {words} grew by {rules.min_change:g} or more")
    return found


def _lag(event: CircuitEvent) -> str:
    if event.lag is None:
        return ""
    if event.lag == 0:
        return " (at the onset)"
    side = "after" if event.lag > 0 else "before"
    return f" ({abs(event.lag)} steps {side} the onset)"


def _measured(circuit: Sequence[CircuitEvent], measure: str) -> list[CircuitEvent]:
    """The events of a measure whose levels are known."""
    return [e for e in circuit if e.measure == measure and math.isfinite(e.change)]


def _causes(outcome: str, events: Mapping[str, Event], carriers: Sequence[CarrierVerdict]) -> str:
    """What carried the shortcut in phase 1 and the rule at the end; empty if neither is known.

    The rule is spoken of only in runs that learned it, wholly or in part.
    """
    shortcut = rule = ""
    if events["shortcut_learned"].step is not None:
        shortcut = _carried(carriers, "shortcut", "before")
    if outcome in ("generalised", "partial", "transient", "direct"):
        rule = _carried(carriers, "rule", "after")
    said = []
    if shortcut:
        said.append(f"the shortcut was carried by {shortcut}")
    if rule:
        said.append(
            f"the rule at the end by {rule}"
            if said
            else f"the rule was carried at the end by {rule}"
        )
    return f"Causally, {', and '.join(said)}." if said else ""


def _carried(carriers: Sequence[CarrierVerdict], what: What, when: When) -> str:
    """The smallest carriers with their numbers, or that none was found; empty if not known."""
    if all(verdict.verdict(when) == "undetermined" for verdict in carriers):
        return ""
    found = smallest_carriers(carriers, what, when)
    if not found:
        return "no component that was patched"
    texts = []
    for index, verdict in enumerate(found[:_NAMED]):
        transfer = accuracy_text(verdict.transfer(what, when))
        disruption = accuracy_text(verdict.disruption(when))
        texts.append(
            f"{verdict.component} ({transfer} against {disruption})"
            if index
            else f"{verdict.component} ({what} transfer {transfer} against disruption {disruption})"
        )
    if len(found) > _NAMED:
        texts.append(f"{len(found) - _NAMED} more")
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _largest(
    circuit: Sequence[CircuitEvent], measure: str, wanted: Callable[[CircuitEvent], bool]
) -> CircuitEvent | None:
    events = [event for event in circuit if event.measure == measure and wanted(event)]
    return max(events, key=lambda event: abs(event.change), default=None)
