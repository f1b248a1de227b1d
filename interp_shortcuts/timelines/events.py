"""Dated events of a run, read from its accuracies and losses.

The definitions are those of the science notes on arXiv 2607.10116; where the paper does not say,
the reading here is ours. Which outcome follows from the events is decided in `phases`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float32, Int

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.timelines.phase_rules import PhaseRules

EVENT_NAMES = ("shortcut_learned", "saturation", "onset", "generalised", "lost")


@dataclass(frozen=True)
class Event:
    """A dated change on a timeline, or the reason why there is none.

    Attributes:
        name: One of `EVENT_NAMES`.
        step: The training step, or None when the event did not happen.
        description: What the event means, in words, with its thresholds.
        value: The value at that step of the curve that defines the event.
        reason: Why there is no such event; empty when there is one.
        unmeasured: Whether it cannot be told if it happened, since what it is read from was not
            measured.
    """

    name: str
    step: int | None
    description: str
    value: float | None = None
    reason: str = ""
    unmeasured: bool = False


@dataclass(frozen=True)
class BehaviourCurves:
    """What the events are read from; a curve that was not measured is NaN throughout."""

    steps: Int[np.ndarray, " step"]
    train: Float32[np.ndarray, " step"]
    validation: Float32[np.ndarray, " step"]
    adversarial: Float32[np.ndarray, " step"]
    consistent_loss: Float32[np.ndarray, " step"]
    chance: float
    n_adversarial: int | None
    empty: frozenset[str] = frozenset()
    """Splits that are known to hold no example."""

    def missing(self, *splits: str) -> str:
        """Which of these splits' accuracies is not known at any evaluation, in words, or ""."""
        curves = {
            "train": self.train,
            "validation": self.validation,
            "adversarial": self.adversarial,
        }
        unknown = [split for split in splits if not np.isfinite(curves[split]).any()]
        empty = [split for split in unknown if split in self.empty]
        rest = [split for split in unknown if split not in self.empty]
        said = []
        if empty:
            said.append(f"there are no {' or '.join(empty)} examples")
        if rest:
            verb = "were" if len(rest) > 1 else "was"
            said.append(f"{' and '.join(rest)} accuracy {verb} not measured")
        return ", and ".join(said)

    @property
    def missing_answers(self) -> str:
        """Why the outcome cannot be told; empty if it can."""
        if self.answers:
            return ""
        apart = "validation and adversarial accuracy were never measured at the same evaluation"
        return self.missing("validation", "adversarial") or apart

    @property
    def answers(self) -> bool:
        """Whether validation and adversarial accuracy are known at some evaluation."""
        return bool(np.any(np.isfinite(self.validation) & np.isfinite(self.adversarial)))

    def at_end(self, curve: Float32[np.ndarray, " step"], n: int) -> float:
        """Mean of a curve over its last `n` evaluations; NaN when none of them is known."""
        return mean_of_known(curve[-n:])


def mean_of_known(values: np.ndarray) -> float:
    """Mean of the values that are not NaN, in float64; NaN when there are none."""
    known = values[np.isfinite(values)]
    return float(known.mean(dtype=np.float64)) if known.size else float("nan")


def first_run(mask: Bool[np.ndarray, " step"], m: int) -> int | None:
    """Index of the first of the first `m` consecutive true values."""
    length = 0
    for index, true in enumerate(mask):
        length = length + 1 if true else 0
        if length == m:
            return index - m + 1
    return None


def start_of_last_run(mask: Bool[np.ndarray, " step"]) -> int | None:
    """Index from which every value is true up to the end; None when the last is not."""
    if not mask.size or not mask[-1]:
        return None
    false = np.flatnonzero(~mask)
    return int(false[-1]) + 1 if false.size else 0


def read_curves(data: xr.Dataset) -> BehaviourCurves:
    """The behaviour curves of a timeline's dataset.

    Raises:
        MeasureError: If the dataset says neither `chance` nor `n_classes`.
    """
    if "chance" in data.attrs:
        chance = float(data.attrs["chance"])
    elif data.attrs.get("n_classes"):
        chance = 1.0 / float(data.attrs["n_classes"])
    else:
        raise MeasureError(
            "Phases need the chance level: the timeline's attrs must have `chance` or `n_classes`; "
            f"they have {sorted(map(str, data.attrs))}."
        )
    steps = data["step"].to_numpy().astype(np.int64) if "step" in data.coords else np.arange(0)

    def curve(variable: str, split: str) -> Float32[np.ndarray, " step"]:
        if variable in data and split in data[variable].coords.get("split", ()):
            return data[variable].sel(split=split).to_numpy().astype(np.float32)
        return np.full(len(steps), np.nan, dtype=np.float32)

    counts = {}
    if "n_examples" in data and "split" in data["n_examples"].coords:
        for split in map(str, data["n_examples"]["split"].to_numpy()):
            asked = np.ravel(data["n_examples"].sel(split=split).to_numpy())
            if asked.size and np.isfinite(asked[-1]):
                counts[split] = int(asked[-1])
    return BehaviourCurves(
        steps=steps,
        train=curve("accuracy", "train"),
        validation=curve("accuracy", "validation"),
        adversarial=curve("accuracy", "adversarial"),
        consistent_loss=curve("loss", "consistent"),
        chance=chance,
        n_adversarial=counts.get("adversarial"),
        empty=frozenset(split for split, n in counts.items() if n == 0),
    )


def behaviour_events(curves: BehaviourCurves, rules: PhaseRules) -> tuple[Event, ...]:
    """The five events, in the order of `EVENT_NAMES`, absent ones with their reason.

    m is `rules.hysteresis`; chance is 1 / classes.

    - `shortcut_learned`: the first of the first m consecutive evaluations at *shortcut level*
      (validation accuracy >= `validation_level`, adversarial accuracy at most
      `shortcut_fraction_of_chance` of chance).
    - `saturation`: the first of the first m consecutive evaluations with a loss of at most
      `saturation_loss` nats on consistent training examples.
    - `onset` of phase 2: the last evaluation at shortcut level before the *rise*. The rise is the
      first evaluation after `shortcut_learned` from which adversarial accuracy is above chance at
      every evaluation up to the limit: the generalised evaluation, or the end of a run that never
      generalises. It must hold for m evaluations (those after the limit count too), and validation
      accuracy must stay near perfect: at `validation_level` at half or more of the evaluations from
      the rise to the limit, which rules out a network that collapses to chance. No onset without
      a shortcut phase.
    - `generalised`: the first evaluation with adversarial accuracy >= `generalised_level` (the
      paper's rule: at any point, so one evaluation is enough).
    - `lost`: where adversarial accuracy first falls below `lost_level` for good, in a run that
      generalised and whose last m evaluations, all later, lie below it.
    """
    learned = _shortcut_learned(curves, rules)
    generalised = _generalised(curves, rules)
    return (
        learned,
        _saturation(curves, rules),
        _onset(curves, rules, learned, generalised),
        generalised,
        _lost(curves, rules, generalised),
    )


def at_shortcut_level(curves: BehaviourCurves, rules: PhaseRules) -> Bool[np.ndarray, " step"]:
    """Which evaluations are at shortcut level; unknown accuracies are not."""
    ceiling = np.float32(curves.chance * rules.shortcut_fraction_of_chance)
    return (curves.validation >= np.float32(rules.validation_level)) & (
        curves.adversarial <= ceiling
    )


def _dated(curves: BehaviourCurves, name: str, index: int, what: str, curve: np.ndarray) -> Event:
    return Event(name, int(curves.steps[index]), what, float(curve[index]))


def _index(curves: BehaviourCurves, event: Event) -> int:
    return int(np.flatnonzero(curves.steps == event.step)[0])


def _first_of(m: int) -> str:
    return "first evaluation" if m == 1 else f"first of {m} consecutive evaluations"


def _shortcut_learned(curves: BehaviourCurves, rules: PhaseRules) -> Event:
    ceiling = curves.chance * rules.shortcut_fraction_of_chance
    what = (
        f"{_first_of(rules.hysteresis)} with validation accuracy >= "
        f"{rules.validation_level:g} and adversarial accuracy <= {ceiling:.3g} "
        f"(chance is {curves.chance:.3g})"
    )
    level = at_shortcut_level(curves, rules)
    index = first_run(level, rules.hysteresis)
    if index is not None:
        return _dated(curves, "shortcut_learned", index, what, curves.adversarial)
    if not curves.answers:
        reason = curves.missing_answers
    elif level.any():
        reason = f"at shortcut level, but never at {rules.hysteresis} evaluations in a row"
    else:
        reason = "no evaluation is at shortcut level"
    return Event("shortcut_learned", None, what, reason=reason, unmeasured=not curves.answers)


def _saturation(curves: BehaviourCurves, rules: PhaseRules) -> Event:
    what = (
        f"{_first_of(rules.hysteresis)} with a loss <= "
        f"{rules.saturation_loss:g} nats on consistent training examples"
    )
    loss = curves.consistent_loss
    low = loss <= np.float32(rules.saturation_loss)
    index = first_run(low, rules.hysteresis)
    if index is not None:
        return _dated(curves, "saturation", index, what, loss)
    unmeasured = not np.isfinite(loss).any()
    if unmeasured and "consistent" in curves.empty:
        reason = "there are no consistent examples"
    elif unmeasured:
        reason = "the loss on consistent examples was not measured"
    elif low.any():
        reason = f"below the threshold, but never at {rules.hysteresis} evaluations in a row"
    else:
        reason = f"the lowest loss on consistent examples was {np.nanmin(loss):.3g} nats"
    return Event("saturation", None, what, reason=reason, unmeasured=unmeasured)


def _generalised(curves: BehaviourCurves, rules: PhaseRules) -> Event:
    asked = f" on {curves.n_adversarial:,} examples" if curves.n_adversarial else ""
    what = f"first evaluation with adversarial accuracy >= {rules.generalised_level:g}{asked}"
    hits = np.flatnonzero(curves.adversarial >= np.float32(rules.generalised_level))
    if hits.size:
        return _dated(curves, "generalised", int(hits[0]), what, curves.adversarial)
    missing = curves.missing("adversarial")
    reason = missing or f"the highest adversarial accuracy was {np.nanmax(curves.adversarial):.4g}"
    return Event("generalised", None, what, reason=reason, unmeasured=bool(missing))


def _onset(curves: BehaviourCurves, rules: PhaseRules, learned: Event, generalised: Event) -> Event:
    what = (
        "last evaluation at shortcut level before adversarial accuracy rises past chance "
        f"({curves.chance:.3g}) to stay, with validation accuracy near perfect"
    )

    def absent(reason: str) -> Event:
        return Event("onset", None, what, reason=reason)

    if learned.unmeasured:
        return Event("onset", None, what, reason=learned.reason, unmeasured=True)
    if learned.step is None:
        return absent(f"no shortcut phase: {learned.reason}")
    start = _index(curves, learned)
    limit = len(curves.steps) - 1 if generalised.step is None else _index(curves, generalised)
    if start > limit:
        return absent("the rule was complete before the shortcut was learned")
    above = curves.adversarial > np.float32(curves.chance)
    offset = start_of_last_run(above[start + 1 : limit + 1])
    if offset is None:
        return absent("adversarial accuracy did not rise past chance to stay")
    rise = start + 1 + offset
    m = rules.hysteresis
    if len(above[rise : rise + m]) < m or not above[rise : rise + m].all():
        return absent(
            f"adversarial accuracy rose past chance at step {curves.steps[rise]}, but was above "
            f"it at fewer than {m} evaluations in a row"
        )
    near_perfect = curves.validation[rise : limit + 1] >= np.float32(rules.validation_level)
    if near_perfect.mean() < 0.5:
        return absent(
            f"validation accuracy was below {rules.validation_level:g} at most evaluations after "
            "adversarial accuracy rose past chance"
        )
    index = int(np.flatnonzero(at_shortcut_level(curves, rules)[:rise])[-1])
    return _dated(curves, "onset", index, what, curves.adversarial)


def _lost(curves: BehaviourCurves, rules: PhaseRules, generalised: Event) -> Event:
    m = rules.hysteresis
    what = (
        f"adversarial accuracy falls below {rules.lost_level:g} for good, after the run "
        f"generalised; {'the last evaluation lies' if m == 1 else f'the last {m} evaluations lie'} "
        "below it"
    )
    if generalised.unmeasured:
        return Event("lost", None, what, reason=generalised.reason, unmeasured=True)
    if generalised.step is None:
        return Event("lost", None, what, reason="the run did not generalise")
    after = _index(curves, generalised) + 1
    offset = start_of_last_run(curves.adversarial[after:] < np.float32(rules.lost_level))
    if offset is None:
        return Event("lost", None, what, reason="the rule was kept to the end")
    if len(curves.steps) - (after + offset) < rules.hysteresis:
        reason = f"below {rules.lost_level:g} at fewer than {rules.hysteresis} last evaluations"
        return Event("lost", None, what, reason=reason)
    return _dated(curves, "lost", after + offset, what, curves.adversarial)
