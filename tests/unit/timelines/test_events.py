"""Every boundary of the dated events, on curves whose events are known by hand."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from pydantic import ValidationError

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.timelines.phase_rules import PhaseRules
from interp_shortcuts.timelines.phases import find_phases

SPLITS = ["train", "consistent", "anti", "validation", "adversarial"]


def run(
    adversarial: list[float],
    validation: float | list[float] = 1.0,
    *,
    train: float = 0.9,
    loss: list[float] | float = 1.0,
    n_classes: int = 2,
) -> xr.Dataset:
    """A dataset with evaluations at steps 0, 10, 20, ..."""
    n = len(adversarial)
    values = np.full((n, len(SPLITS)), 0.9, dtype=np.float32)
    values[:, 0] = train
    values[:, 3] = validation
    values[:, 4] = adversarial
    losses = np.ones((n, len(SPLITS)), dtype=np.float32)
    losses[:, 1] = loss
    return xr.Dataset(
        {
            "accuracy": (("step", "split"), values),
            "loss": (("step", "split"), losses),
            "n_examples": (("step", "split"), np.full((n, len(SPLITS)), 1024)),
        },
        coords={"step": np.arange(n) * 10, "split": SPLITS},
        attrs={"chance": 1 / n_classes, "n_classes": n_classes},
    )


def steps(data: xr.Dataset, **rules: float) -> dict[str, int | None]:
    phases = find_phases(data, PhaseRules.model_validate(rules))
    return {event.name: event.step for event in phases.events}


def test_a_value_equal_to_a_threshold_reaches_it() -> None:
    """0.95, 1/6 and 0.05 are not exact in 32 bits, and must still count."""
    found = steps(run([0.5, 1 / 6, 1 / 6, 1 / 6], 0.95, loss=[1, 0.05, 0.05, 1]))
    assert found["shortcut_learned"] == 10
    assert found["saturation"] == 10


@pytest.mark.parametrize(("validation", "adversarial"), [(0.949, 0.1), (0.95, 0.168)])
def test_just_short_of_the_shortcut_level_is_not_it(validation: float, adversarial: float) -> None:
    phases = find_phases(run([adversarial] * 4, validation))
    assert phases.event("shortcut_learned").step is None
    assert phases.event("shortcut_learned").reason == "no evaluation is at shortcut level"


def test_shortcut_level_depends_on_the_number_of_classes() -> None:
    assert steps(run([0.12] * 3))["shortcut_learned"] == 0
    assert steps(run([0.12] * 3, n_classes=3))["shortcut_learned"] is None
    assert steps(run([1 / 9] * 3, n_classes=3))["shortcut_learned"] == 0


def test_a_blip_at_shortcut_level_is_not_a_shortcut_phase() -> None:
    data = run([0.5, 0.1, 0.5, 0.1, 0.5])
    assert steps(data)["shortcut_learned"] is None
    reason = find_phases(data).event("shortcut_learned").reason
    assert reason == "at shortcut level, but never at 2 evaluations in a row"
    assert steps(data, hysteresis=1)["shortcut_learned"] == 10
    assert steps(run([0.1, 0.5, 0.1, 0.1, 0.1]), hysteresis=3)["shortcut_learned"] == 20


def test_fewer_evaluations_than_the_hysteresis_date_nothing() -> None:
    assert steps(run([0.1]))["shortcut_learned"] is None


def test_generalised_takes_one_evaluation_and_asks_for_all_examples() -> None:
    assert steps(run([0.5, 1.0, 0.5]))["generalised"] == 10
    assert steps(run([0.5, 1023 / 1024, 0.5]))["generalised"] is None
    assert steps(run([0.5, 1023 / 1024, 0.5]), generalised_level=0.99)["generalised"] == 10
    phases = find_phases(run([0.5, 1.0]))
    assert "on 1,024 examples" in phases.event("generalised").description
    assert phases.n_adversarial == 1024


def test_onset_is_the_last_evaluation_at_shortcut_level_before_the_rise() -> None:
    data = run([0.5, 0.1, 0.1, 0.12, 0.3, 0.5, 0.6, 0.9, 1.0, 1.0])
    found = steps(data)
    assert found["shortcut_learned"] == 10
    assert found["onset"] == 30  # 0.3 and 0.5 are neither shortcut level nor above chance
    assert found["generalised"] == 80


def test_a_rise_that_does_not_stay_is_no_onset_and_a_later_one_is() -> None:
    found = steps(run([0.1, 0.1, 0.7, 0.7, 0.1, 0.1, 0.7, 0.8, 1.0, 1.0]))
    assert found["onset"] == 50
    phases = find_phases(run([0.1, 0.1, 0.7, 0.7, 0.1, 0.1]))
    assert phases.onset is None
    assert phases.event("onset").reason == "adversarial accuracy did not rise past chance to stay"


def test_accuracy_exactly_at_chance_is_not_above_it() -> None:
    assert steps(run([0.1, 0.1, 0.5, 0.5, 0.5]))["onset"] is None
    assert steps(run([0.1, 0.1, 0.501, 0.501, 0.501]))["onset"] == 10
    third = steps(run([0.1, 0.1, 1 / 3, 1 / 3], n_classes=3))
    assert third["onset"] is None


def test_what_happens_after_completion_does_not_move_the_onset() -> None:
    """A transient run falls back to the shortcut: phase 2 began before it was complete."""
    found = steps(run([0.1, 0.1, 0.7, 1.0, 0.7, 0.1, 0.1, 0.1]))
    assert (found["onset"], found["generalised"], found["lost"]) == (10, 30, 40)


def test_a_rise_of_one_evaluation_is_not_dated() -> None:
    phases = find_phases(run([0.1, 0.1, 0.1, 1.0]))
    assert phases.onset is None
    assert phases.event("onset").reason == (
        "adversarial accuracy rose past chance at step 30, but was above it at fewer than 2 "
        "evaluations in a row"
    )
    assert steps(run([0.1, 0.1, 0.1, 1.0, 1.0]))["onset"] == 20


def test_a_network_that_collapses_to_chance_has_no_onset() -> None:
    data = run([0.1, 0.1, 0.52, 0.51, 0.53], [1, 1, 0.5, 0.5, 0.5])
    phases = find_phases(data)
    assert phases.onset is None
    assert "validation accuracy was below 0.95" in phases.event("onset").reason
    assert phases.outcome == "shortcut"


def test_validation_may_dip_during_the_transition() -> None:
    data = run([0.1, 0.1, 0.6, 0.7, 0.9, 1.0], [1, 1, 0.93, 0.94, 0.97, 1.0])
    assert steps(data)["onset"] == 10


def test_no_onset_without_a_shortcut_phase_before_the_rule() -> None:
    assert steps(run([0.5, 0.7, 1.0, 1.0]))["onset"] is None
    phases = find_phases(run([0.6, 1.0, 0.1, 0.1, 0.1]))
    assert phases.event("shortcut_learned").step == 20
    assert phases.event("onset").reason == "the rule was complete before the shortcut was learned"


@pytest.mark.parametrize(
    ("tail", "lost"),
    [
        ([0.9, 0.9], 30),
        ([0.9, 0.96, 0.9, 0.9], 50),
        ([0.95, 0.95], None),
        ([0.9, 0.96], None),
        ([1.0, 0.9], None),
        ([], None),
    ],
)
def test_lost_is_dated_where_it_falls_for_good(tail: list[float], lost: int | None) -> None:
    assert steps(run([0.1, 0.1, 1.0, *tail]))["lost"] == lost


def test_saturation_needs_consecutive_evaluations() -> None:
    assert steps(run([0.1] * 4, loss=[0.01, 0.2, 0.01, 0.01]))["saturation"] == 20
    reason = find_phases(run([0.1] * 3, loss=[0.2, 0.1, 0.3])).event("saturation").reason
    assert reason == "the lowest loss on consistent examples was 0.1 nats"


def test_what_was_not_measured_is_said_and_does_not_crash() -> None:
    data = run([0.1] * 3)
    for lacking in (
        data.drop_vars("loss"),
        data.drop_vars("accuracy"),
        data.sel(split=["train", "validation"]),
        data.isel(step=slice(0, 0)),
        data.assign(accuracy=data["accuracy"] * np.nan, loss=data["loss"] * np.nan),
    ):
        phases = find_phases(lacking)
        assert all(event.reason for event in phases.events if event.step is None)
        assert repr(phases)
        assert phases.to_dict()
    assert find_phases(data.drop_vars("accuracy")).outcome == "undetermined"
    loss = find_phases(data.drop_vars("loss")).event("saturation")
    assert loss.reason == "the loss on consistent examples was not measured"


def test_without_a_chance_level_the_error_says_what_is_missing() -> None:
    data = run([0.1] * 3)
    data.attrs = {"seed": 0}
    with pytest.raises(MeasureError, match=r"must have `chance` or `n_classes`.*\['seed'\]"):
        find_phases(data)
    data.attrs = {"n_classes": 4}
    assert find_phases(data).chance == 0.25


def test_rules_are_checked() -> None:
    with pytest.raises(ValidationError, match=r"`lost_level` \(=0.99\) must be at most"):
        PhaseRules(lost_level=0.99, generalised_level=0.98)
    with pytest.raises(ValidationError):
        PhaseRules(hysteresis=0)
    with pytest.raises(ValidationError, match="Extra inputs"):
        PhaseRules.model_validate({"hysterisis": 3})
    assert all(field.description for field in PhaseRules.model_fields.values())


def test_an_unknown_event_name_lists_the_known_ones() -> None:
    with pytest.raises(MeasureError, match="'completion'"):
        find_phases(run([0.1] * 3)).event("completion")


def test_missing_data_is_told_from_what_did_not_happen() -> None:
    data = run([0.1] * 3)
    data["accuracy"].loc[{"split": "adversarial"}] = np.nan
    phases = find_phases(data)
    for name in ("shortcut_learned", "onset", "generalised", "lost"):
        assert phases.event(name).reason == "adversarial accuracy was not measured"
        assert phases.event(name).unmeasured
    assert not phases.event("saturation").unmeasured
    assert phases.sentence == (
        "By step 20 the outcome cannot be told: adversarial accuracy was not measured."
    )
    data["n_examples"].loc[{"split": "adversarial"}] = 0
    none = find_phases(data)
    assert "on 0 examples" not in none.event("generalised").description
    assert none.event("lost").reason == "there are no adversarial examples"
    assert none.sentence.endswith("there are no adversarial examples.")
    neither = find_phases(data.drop_vars("accuracy").drop_vars("n_examples"))
    assert neither.sentence.endswith("validation and adversarial accuracy were not measured.")
    assert not any(event.unmeasured for event in find_phases(run([0.1] * 3)).events)


@pytest.mark.parametrize(
    ("adversarial", "validation", "train", "outcome", "words"),
    [
        (
            [0.5, 0.4, 0.3],
            [0.5, 0.6, 0.7],
            0.5,
            "never learned",
            "validation 0.70, adversarial 0.30",
        ),
        ([0.5, 0.4, 0.3], [0.5, 0.6, 0.7], 1.0, "memorised", "validation 0.70, adversarial 0.30"),
        ([0.1, 0.1, 0.0], [1, 1, 0.96], 0.9, "shortcut", "was 0.00 and validation 0.96 at step 20"),
        ([0.1, 0.1, 0.7, 0.9], 1.0, 0.9, "partial", "adversarial accuracy was 0.90 at step 30"),
    ],
)
def test_a_value_at_a_step_is_that_of_the_step(
    adversarial: list[float], validation: float, train: float, outcome: str, words: str
) -> None:
    phases = find_phases(run(adversarial, validation, train=train))
    assert phases.outcome == outcome
    assert words in phases.sentence


def test_one_evaluation_is_not_several() -> None:
    phases = find_phases(run([0.1, 0.1]), PhaseRules(hysteresis=1))
    assert phases.event("shortcut_learned").description.startswith("first evaluation with")
    assert phases.event("lost").description.endswith("the last evaluation lies below it")
