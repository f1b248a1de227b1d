"""In which order the hand-over went: what weakened, what grew, what took over, and when.

The changes are dated in `circuit_events`, the behaviour in `events`; here they are put in order
with their lags to the onset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from interp_shortcuts.timelines.carriers import CarrierVerdict
from interp_shortcuts.timelines.circuit_events import CircuitEvent
from interp_shortcuts.timelines.component_curves import OV_MEASURES, QK_MEASURES
from interp_shortcuts.timelines.events import Event


@dataclass(frozen=True)
class HandoverEntry:
    """One line of the hand-over order.

    Attributes:
        step: The training step.
        what: What happened then, in words.
        kind: `"QK decline"`, `"OV rise"`, `"causal take-over"`, `"onset"` or `"generalised"`.
        component: The head, MLP or set, or empty for behaviour.
        measure: The variable, or empty for behaviour.
        lag: Step minus the onset's step.
    """

    step: int
    what: str
    kind: str
    component: str
    measure: str
    lag: int


def handover(
    events: Sequence[Event],
    circuit: Sequence[CircuitEvent],
    causal: Sequence[CircuitEvent] = (),
    carriers: Sequence[CarrierVerdict] = (),
) -> tuple[HandoverEntry, ...]:
    """QK declines, OV rises, the causal take-over, onset and completion, by step.

    A QK measure *weakens* and an OV measure *strengthens* in distance from zero, so that an OV
    correlation growing to -0.8 counts as an OV rise. The causal take-over is where the rule
    transfer of the first component or set crosses half way upward; only those count that carry the
    rule at the end, since a transfer no larger than the disruption says nothing. Empty without an
    onset: then nothing was handed over.
    """
    by_name = {event.name: event for event in events}
    onset = by_name["onset"].step
    if onset is None:
        return ()
    entries = [HandoverEntry(onset, "phase 2 begins", "onset", "", "", 0)]
    complete = by_name["generalised"].step
    if complete is not None:
        text = "the rule is complete"
        entries.append(HandoverEntry(complete, text, "generalised", "", "", complete - onset))
    for event in circuit:
        if event.measure in QK_MEASURES and event.weakens:
            entries += _entry(event, "QK decline", "falls", onset)
        elif event.measure in OV_MEASURES and event.strengthens:
            entries += _entry(event, "OV rise", "grows", onset)
    entries += _take_over(causal, carriers, onset)
    return tuple(sorted(entries, key=lambda e: (e.step, e.kind != "onset", e.component, e.measure)))


def _take_over(
    causal: Sequence[CircuitEvent], carriers: Sequence[CarrierVerdict], onset: int
) -> list[HandoverEntry]:
    """The first carrier of the rule to rise; those that rise at the same evaluation are named."""
    at_the_end = {verdict.component for verdict in carriers if verdict.carries("rule", "after")}
    rises = [
        event
        for event in causal
        if event.measure == "rule_transfer"
        and event.direction == "rise"
        and event.step is not None
        and event.component in at_the_end
    ]
    first = min((event.step for event in rises if event.step is not None), default=None)
    together = [event for event in rises if event.step == first]
    if not together:
        return []
    others = [event.component for event in together[1:]]
    note = f", together with that of {', '.join(others)}" if others else ""
    return _entry(together[0], "causal take-over", "grows", onset, note=note)


def _entry(
    event: CircuitEvent, kind: str, way: str, onset: int, *, note: str = ""
) -> list[HandoverEntry]:
    """The entry of a change; none if it has no half-way step."""
    if event.step is None:
        return []
    what = (
        f"{event.component}'s {event.words} {way} "
        f"({event.phase1_level:.2f} to {event.final_level:.2f}), half way{note}"
    )
    lag = event.step - onset
    return [HandoverEntry(event.step, what, kind, event.component, event.measure, lag)]
