"""When each head's measures change between the shortcut phase and the end, and in which order.

Levels, half-way steps and the hand-over order follow the science notes on arXiv 2607.10116; how
the levels are averaged is ours. Behaviour (accuracies) is read in `events`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float64

from interp_shortcuts.timelines.events import Event, mean_of_known, start_of_last_run
from interp_shortcuts.timelines.layout import measured_part
from interp_shortcuts.timelines.phase_rules import PhaseRules

SPLIT = "validation"
"""The split on which measures that have one are read."""

QK_MEASURES = ("qk_spearman", "qk_spearman_activation")
OV_MEASURES = ("ov_spearman", "ov_class_fraction")
CIRCUIT_MEASURES = (*QK_MEASURES, "attention_to_max", *OV_MEASURES)
"""The variables whose changes are dated."""

WORDS = {
    "qk_spearman": "QK {feature} correlation",
    "qk_spearman_activation": "QK {feature} correlation on activations",
    "attention_to_max": "attention to the maximum",
    "ov_spearman": "OV {feature} correlation",
    "ov_class_fraction": "OV {feature} class fraction",
}


@dataclass(frozen=True)
class CircuitEvent:
    """How one measure of one head moved from the shortcut phase to the end.

    Attributes:
        component: The head, e.g. `"L0.H1"`.
        measure: The variable, e.g. `"qk_spearman"`.
        feature: The feature it is about; empty for measures without one.
        split: The split it is read on; empty for measures of weights.
        step: The half-way step: the first evaluation from which the curve stays at or past the
            mean of the two levels. None when there is none (see `reason`).
        phase1_level: Mean over the evaluations from `shortcut_learned` to the onset; at
            `shortcut_learned` alone when there is no onset. NaN when undefined.
        final_level: Mean over the last m evaluations (`PhaseRules.hysteresis`).
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
        return WORDS.get(self.measure, self.measure).format(feature=self.feature).replace("  ", " ")

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


@dataclass(frozen=True)
class HandoverEntry:
    """One line of the hand-over order.

    Attributes:
        step: The training step.
        what: What happened then, in words.
        kind: `"QK decline"`, `"OV rise"`, `"onset"` or `"generalised"`.
        component: The head, or empty for behaviour.
        measure: The variable, or empty for behaviour.
        lag: Step minus the onset's step.
    """

    step: int
    what: str
    kind: str
    component: str
    measure: str
    lag: int


def circuit_events(
    data: xr.Dataset, events: Sequence[Event], rules: PhaseRules
) -> tuple[CircuitEvent, ...]:
    """The change of every circuit measure of every head, those that did not change included.

    A measure with several features is read for the first it was measured for; one with several
    splits on validation.
    """
    by_name = {event.name: event for event in events}
    learned, onset = by_name["shortcut_learned"], by_name["onset"]
    if "step" not in data.coords:
        return ()
    steps = data["step"].to_numpy().astype(np.int64)
    found = []
    for measure, feature, split, component, curve in _curves(data):
        found.append(
            _circuit_event(
                curve,
                steps,
                rules,
                learned=learned,
                onset=onset.step,
                labels=(component, measure, feature, split),
            )
        )
    return tuple(found)


def handover(events: Sequence[Event], circuit: Sequence[CircuitEvent]) -> tuple[HandoverEntry, ...]:
    """QK measures that weaken, OV measures that strengthen, onset and completion, by step.

    *Weaken* and *strengthen* are meant in distance from zero, so that an OV correlation growing to
    -0.8 counts as an OV rise. Empty without an onset: then nothing was handed over.
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
        if event.step is None:
            continue
        if event.measure in QK_MEASURES and event.weakens:
            kind, way = "QK decline", "falls"
        elif event.measure in OV_MEASURES and event.strengthens:
            kind, way = "OV rise", "grows"
        else:
            continue
        what = (
            f"{event.component}'s {event.words} {way} "
            f"({event.phase1_level:.2f} to {event.final_level:.2f}), half way"
        )
        entries.append(
            HandoverEntry(
                event.step, what, kind, event.component, event.measure, event.step - onset
            )
        )
    return tuple(sorted(entries, key=lambda e: (e.step, e.kind != "onset", e.component, e.measure)))


def _curves(
    data: xr.Dataset,
) -> Iterator[tuple[str, str, str, str, Float64[np.ndarray, " step"]]]:
    """(measure, feature, split, component, curve over steps) of every circuit measure there is."""
    for measure in CIRCUIT_MEASURES:
        if measure not in data:
            continue
        array = measured_part(data[measure])
        feature = split = ""
        if "feature" in array.dims:
            if not array.sizes["feature"]:
                continue
            array = array.isel(feature=0)
            feature = str(array["feature"].item())
        if "split" in array.dims:
            if SPLIT not in array["split"]:
                continue
            array, split = array.sel(split=SPLIT), SPLIT
        if set(array.dims) != {"step", "layer", "head"}:
            continue
        for layer in array["layer"].to_numpy():
            for head in array["head"].to_numpy():
                curve = array.sel(layer=layer, head=head).to_numpy().astype(np.float64)
                yield measure, feature, split, f"L{layer}.H{head}", curve


def _circuit_event(
    curve: Float64[np.ndarray, " step"],
    steps: np.ndarray,
    rules: PhaseRules,
    *,
    learned: Event,
    onset: int | None,
    labels: tuple[str, str, str, str],
) -> CircuitEvent:
    known = np.isfinite(curve)
    peak = int(np.nanargmax(curve)) if known.any() else None
    final = mean_of_known(curve[-rules.hysteresis :])
    phase1 = float("nan")
    step, direction = None, ""
    if not known.any():
        reason = "undefined at every evaluation"
    elif learned.step is None:
        reason = f"no phase-1 level: there is no shortcut phase ({learned.reason})"
    else:
        last = learned.step if onset is None else onset
        phase1 = mean_of_known(curve[(steps >= learned.step) & (steps <= last)])
        if not np.isfinite(phase1):
            reason = "undefined at every evaluation of the shortcut phase"
        elif not np.isfinite(final):
            reason = f"undefined at the last {rules.hysteresis} evaluations"
        elif abs(final - phase1) < rules.min_change:
            reason = f"did not change (by less than {rules.min_change:g})"
        else:
            direction = "rise" if final > phase1 else "decline"
            step = _half_way(curve, steps, phase1, final, since=learned.step)
            reason = "" if step is not None else "did not stay past the half-way value to the end"
    component, measure, feature, split = labels
    return CircuitEvent(
        component=component,
        measure=measure,
        feature=feature,
        split=split,
        step=step,
        phase1_level=phase1,
        final_level=final,
        direction=direction,
        lag=None if step is None or onset is None else step - onset,
        peak_value=float("nan") if peak is None else float(curve[peak]),
        peak_step=None if peak is None else int(steps[peak]),
        reason=reason,
    )


def _half_way(
    curve: Float64[np.ndarray, " step"],
    steps: np.ndarray,
    phase1: float,
    final: float,
    *,
    since: int,
) -> int | None:
    """The first evaluation since `since` from which the known values stay past the mean level."""
    considered = np.isfinite(curve) & (steps >= since)
    values, at = curve[considered], steps[considered]
    middle = (phase1 + final) / 2
    start = start_of_last_run(values >= middle if final > phase1 else values <= middle)
    return None if start is None else int(at[start])
