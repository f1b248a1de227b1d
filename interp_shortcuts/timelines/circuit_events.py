"""When each component's measures change between the shortcut phase and the end.

Circuit measures are read for heads, causal measures for heads, MLPs and sets of them. The levels
are defined in `levels`, the order in `handover`; behaviour (accuracies) is read in `events`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from interp_shortcuts.timelines.component_curves import (
    CAUSAL_READINGS,
    CIRCUIT_READINGS,
    ComponentCurve,
    Reading,
    component_curves,
)
from interp_shortcuts.timelines.events import Event, mean_of_known
from interp_shortcuts.timelines.levels import at_end, half_way, in_phase1
from interp_shortcuts.timelines.phase_rules import PhaseRules

WORDS = {
    "qk_spearman": "QK {feature} correlation",
    "qk_spearman_activation": "QK {feature} correlation on activations",
    "attention_to_max": "attention to the maximum",
    "ov_spearman": "OV {feature} correlation",
    "ov_class_fraction": "OV {feature} class fraction",
    "rule_transfer": "rule transfer",
    "shortcut_transfer": "shortcut transfer",
    "ablation_accuracy_drop": "{split} accuracy lost to ablation",
}


@dataclass(frozen=True)
class CircuitEvent:
    """How one measure of one component moved from the shortcut phase to the end.

    Attributes:
        component: The head, MLP or set, e.g. `"L0.H1"`, `"L1.mlp"`, `"all heads"`.
        measure: The variable, e.g. `"qk_spearman"`.
        feature: The feature it is about; empty for measures without one.
        split: The split it is read on, for transfers the direction (target<-source); empty for
            measures of weights.
        step: The half-way step: the first evaluation from which the curve stays at or past the
            mean of the two levels. None when there is none (see `reason`).
        phase1_level: Mean over the evaluations from `shortcut_learned` to the onset; at
            `shortcut_learned` alone when there is no onset. NaN when undefined.
        final_level: Mean over the last m evaluations (`PhaseRules.hysteresis`), as far as they
            follow the onset. Levels count evaluations at which the measure was taken.
        direction: `"rise"` or `"decline"` of the signed value; empty when it did not change.
        lag: Half-way step minus onset, in training steps.
        peak_value: The largest value over all evaluations.
        peak_step: Its step (the first, if it is reached more than once).
        reason: Why there is no half-way step; empty when there is one.
    """

    component: str
    measure: str
    feature: str
    split: str
    step: int | None
    phase1_level: float
    final_level: float
    direction: str
    lag: int | None
    peak_value: float
    peak_step: int | None
    reason: str = ""

    @property
    def change(self) -> float:
        """Final level minus phase-1 level."""
        return self.final_level - self.phase1_level

    @property
    def half_way_value(self) -> float:
        """The mean of the two levels, where the half-way step is read; NaN without that step."""
        return float("nan") if self.step is None else (self.phase1_level + self.final_level) / 2

    @property
    def strengthens(self) -> bool:
        """Whether the measure changed, and ends further from zero than it was in phase 1."""
        return bool(self.direction) and abs(self.final_level) > abs(self.phase1_level)

    @property
    def weakens(self) -> bool:
        """Whether the measure changed, and ends nearer to zero than it was in phase 1."""
        return bool(self.direction) and abs(self.final_level) < abs(self.phase1_level)

    @property
    def words(self) -> str:
        """The measure in words, e.g. `"QK magnitude correlation"`."""
        template = WORDS.get(self.measure, self.measure)
        return template.format(feature=self.feature, split=self.split).replace("  ", " ")

    @property
    def description(self) -> str:
        """What happened, in words."""
        if not self.direction:
            return f"{self.component}'s {self.words}: {self.reason}"
        way = "rose" if self.direction == "rise" else "fell"
        text = (
            f"{self.component}'s {self.words} {way} from {self.phase1_level:.2f} "
            f"to {self.final_level:.2f}"
        )
        return f"{text}, half way at step {self.step}" if self.step is not None else text


def circuit_events(
    data: xr.Dataset, events: Sequence[Event], rules: PhaseRules
) -> tuple[CircuitEvent, ...]:
    """The change of every circuit measure of every head, those that did not change included."""
    return _events(data, CIRCUIT_READINGS, events, rules)


def causal_events(
    data: xr.Dataset, events: Sequence[Event], rules: PhaseRules
) -> tuple[CircuitEvent, ...]:
    """The change of the causal role of every head, MLP and set: transfers and ablation effects."""
    return _events(data, CAUSAL_READINGS, events, rules)


def _events(
    data: xr.Dataset, readings: Sequence[Reading], events: Sequence[Event], rules: PhaseRules
) -> tuple[CircuitEvent, ...]:
    by_name = {event.name: event for event in events}
    return tuple(
        _circuit_event(curve, rules, learned=by_name["shortcut_learned"], onset=by_name["onset"])
        for reading in readings
        for curve in component_curves(data, reading)
    )


def _circuit_event(
    curve: ComponentCurve, rules: PhaseRules, *, learned: Event, onset: Event
) -> CircuitEvent:
    values, steps = curve.values, curve.steps
    known = np.isfinite(values)
    peak = int(np.nanargmax(values)) if known.any() else None
    begin = in_phase1(steps, learned=learned.step, onset=onset.step)
    end = at_end(steps, onset=onset.step, m=rules.hysteresis)
    phase1, final = mean_of_known(values[begin]), mean_of_known(values[end])
    step, direction = None, ""
    if not known.any():
        reason = "undefined at every evaluation"
    elif learned.step is None:
        reason = f"no phase-1 level: there is no shortcut phase ({learned.reason})"
    elif not begin.any():
        reason = "not measured in the shortcut phase"
    elif not np.isfinite(phase1):
        reason = "undefined at every evaluation of the shortcut phase"
    elif not end.any():
        reason = "not measured after the onset"
    elif not np.isfinite(final):
        m = rules.hysteresis
        reason = f"undefined at the last {'evaluation' if m == 1 else f'{m} evaluations'}"
    elif abs(final - phase1) < rules.min_change:
        reason = f"did not change (by less than {rules.min_change:g})"
    else:
        direction = "rise" if final > phase1 else "decline"
        step = half_way(values, steps, phase1=phase1, final=final, since=learned.step)
        reason = "" if step is not None else "did not stay past the half-way value to the end"
    return CircuitEvent(
        component=curve.component,
        measure=curve.measure,
        feature=curve.feature,
        split=curve.split,
        step=step,
        phase1_level=phase1,
        final_level=final,
        direction=direction,
        lag=None if step is None or onset.step is None else step - onset.step,
        peak_value=float("nan") if peak is None else float(values[peak]),
        peak_step=None if peak is None else int(steps[peak]),
        reason=reason,
    )
