"""Causal roles from numbers set by hand: verdicts, dated changes, take-over, what is missing."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import xarray as xr
from synthetic_timeline import OUTCOMES as SYNTHETIC_OUTCOMES
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.timelines.carriers import (
    CarrierVerdict,
    missing_for_carriers,
    smallest_carriers,
)
from interp_shortcuts.timelines.phase_rules import PhaseRules
from interp_shortcuts.timelines.phases import Phases, find_phases

ADVERSARIAL = [0.5, 0.1, 0.1, 0.1, 0.7, 0.9, 1.0, 1.0, 1.0, 1.0]
"""Shortcut learned at step 10, onset at 30, generalised at 60, the end at 90."""
NAN = float("nan")
Curve = float | list[float]


def two(before: float, after: float) -> list[float]:
    """Constant to the onset, and constant after it."""
    return [before] * 4 + [after] * 6


def run(
    *,
    adversarial: list[float] = ADVERSARIAL,
    steps_measured: list[int] | None = None,
    **components: tuple[Curve, Curve, Curve],
) -> xr.Dataset:
    """Accuracies, and rule transfer, shortcut transfer and disruption of components.

    Args:
        adversarial: Accuracy at steps 0, 10, ...; on validation it is 1.
        steps_measured: Steps at which the transfers are given; NaN elsewhere.
        components: The three curves by component, with `_` for what a name cannot hold.
    """
    n = len(adversarial)
    accuracy = np.stack([np.ones(n), adversarial], axis=1).astype(np.float32)
    steps = np.arange(n) * 10
    names = [name.replace("_", ".", 1) if name[0] == "L" else name for name in components]
    directions = ["validation<-adversarial", "adversarial<-validation"]
    variables: dict[str, Any] = {"accuracy": (("step", "split"), accuracy)}
    for index, name in enumerate(("rule_transfer", "shortcut_transfer", "disruption")):
        values = np.full((n, len(names), 2), 0.77, dtype=np.float32)  # the other way is not read
        for place, curves in enumerate(components.values()):
            values[:, place, 0] = curves[index]
        if steps_measured is not None:
            values[~np.isin(steps, steps_measured)] = np.nan
        variables[name] = (("step", "component", "direction"), values)
    coords = {
        "step": steps,
        "split": ["validation", "adversarial"],
        "component": [name.replace("_", " ") for name in names],
        "direction": directions,
    }
    return xr.Dataset(variables, coords=coords, attrs={"chance": 0.5, "n_classes": 2})


def carrier(phases: Phases, component: str) -> CarrierVerdict:
    (found,) = [verdict for verdict in phases.carriers if verdict.component == component]
    return found


@pytest.mark.parametrize(
    ("rule", "shortcut", "disruption", "verdict"),
    [
        (0.99, 0.00, 0.00, "rule carrier"),
        (0.01, 0.60, 0.04, "shortcut carrier"),
        (0.60, 0.70, 0.10, "both"),
        (0.31, 0.55, 0.27, "neither"),  # one of two heads that compute together says nothing
        (0.80, 0.00, 0.30, "rule carrier"),  # at the level counts as reaching it
        (0.79, 0.00, 0.30, "neither"),
        (0.00, 0.70, 0.20, "shortcut carrier"),
        (0.00, 0.699, 0.20, "neither"),
        (0.90, 0.90, 0.95, "neither"),  # transfers, but so does anything
    ],
)
def test_a_verdict_is_a_transfer_read_against_disruption(
    rule: float, shortcut: float, disruption: float, verdict: str
) -> None:
    numbers = (rule, shortcut, disruption)
    phases = find_phases(run(L1_mlp=numbers))
    found = carrier(phases, "L1.mlp")
    assert (found.before, found.after) == (verdict, verdict)
    assert (
        found.rule_transfer_after,
        found.shortcut_transfer_after,
        found.disruption_after,
    ) == pytest.approx(numbers)
    assert (found.reason_before, found.reason_after, phases.carriers_reason) == ("", "", "")


def test_the_level_is_a_field() -> None:
    data = run(L1_mlp=(0.40, 0.0, 0.1))
    assert carrier(find_phases(data), "L1.mlp").after == "neither"
    assert carrier(find_phases(data, PhaseRules(carrier_level=0.3)), "L1.mlp").after == (
        "rule carrier"
    )


def test_before_is_phase_1_and_after_the_last_evaluations() -> None:
    rule = [0.9, 0.1, 0.2, 0.3, 0.9, 0.9, 0.9, 0.9, 0.7, 0.8]
    found = carrier(find_phases(run(L0_H0=(rule, two(0.6, 0.0), 0.0))), "L0.H0")
    assert found.rule_transfer_before == pytest.approx(0.2)  # steps 10, 20, 30
    assert found.rule_transfer_after == pytest.approx(0.75)  # steps 80, 90
    assert (found.before, found.after) == ("shortcut carrier", "rule carrier")
    assert found.margin("shortcut", "before") == pytest.approx(0.6)
    assert found.description == (
        "L0.H0: shortcut carrier (rule 0.20, shortcut 0.60, disruption 0.00); at the end "
        "rule carrier (rule 0.75, shortcut 0.00, disruption 0.00)"
    )


def test_changes_of_the_causal_role_are_dated() -> None:
    rule = [0.0, 0.0, 0.0, 0.0, 0.3, 0.5, 0.9, 1.0, 1.0, 1.0]
    shortcut = [0.0, 0.8, 0.8, 0.8, 0.5, 0.4, 0.1, 0.0, 0.0, 0.0]
    data = run(L0_heads=(rule, shortcut, 0.0))
    drop = np.full((10, 1, 2, 2), 0.3, dtype=np.float32)
    drop[:, 0, 1, 1] = two(-0.4, 0.5)  # mean ablation, adversarial
    data = data.assign_coords(ablation=["zero", "mean"]).assign(
        ablation_accuracy_drop=(("step", "component", "ablation", "split"), drop)
    )
    phases = find_phases(data)
    found = {
        (e.measure, e.split): (e.direction, e.step, e.lag)
        for e in phases.causal_events
        if e.component == "L0.heads"
    }
    way = "validation<-adversarial"
    assert found == {
        ("rule_transfer", way): ("rise", 50, 20),
        ("shortcut_transfer", way): ("decline", 50, 20),
        ("ablation_accuracy_drop", "adversarial"): ("rise", 40, 10),
        ("ablation_accuracy_drop", "validation"): ("", None, None),
    }
    words = {e.words for e in phases.causal_events}
    assert words == {
        "rule transfer",
        "shortcut transfer",
        "adversarial accuracy lost to ablation",
        "validation accuracy lost to ablation",
    }
    only_zero = find_phases(data.sel(ablation=["zero"]))
    assert {e.measure for e in only_zero.causal_events} == {"rule_transfer", "shortcut_transfer"}


def late(rise: int, final: float) -> list[float]:
    """Zero, and `final` from evaluation `rise`."""
    return [0.0] * rise + [final] * (10 - rise)


def test_the_take_over_is_the_first_rise_of_a_carrier() -> None:
    phases = find_phases(
        run(
            L0_H0=(late(4, 0.31), 0.0, 0.27),  # first, but it carries nothing
            L1_mlp=(late(6, 0.99), 0.0, 0.0),
            L0_heads=(late(5, 0.74), 0.0, 0.01),
            all_heads=(late(5, 0.80), 0.0, 0.01),
            all_mlps=(0.99, 0.0, 0.0),  # carried it all along
        )
    )
    found = [(e.step, e.kind, e.component, e.lag) for e in phases.handover]
    assert found == [
        (30, "onset", "", 0),
        (50, "causal take-over", "L0.heads", 20),
        (60, "generalised", "", 30),
    ]
    assert phases.handover[1].what == (
        "L0.heads's rule transfer grows (0.00 to 0.74), half way, together with that of all heads"
    )


def test_no_take_over_without_a_carrier_or_an_onset() -> None:
    weak = find_phases(run(L1_mlp=(late(6, 0.49), 0.0, 0.0)))
    assert [entry.kind for entry in weak.handover] == ["onset", "generalised"]
    stays = find_phases(run(adversarial=[0.1] * 10, L1_mlp=(late(6, 0.9), 0.6, 0.0)))
    assert stays.handover == ()
    assert carrier(stays, "L1.mlp").before == "shortcut carrier"


def test_without_an_onset_before_is_where_the_shortcut_was_learned() -> None:
    shortcut = [0.0, 0.9, 0.8, 0.7, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    phases = find_phases(run(adversarial=[0.5, *[0.1] * 9], L1_mlp=(0.0, shortcut, 0.0)))
    assert carrier(phases, "L1.mlp").shortcut_transfer_before == pytest.approx(0.9)
    assert phases.sentence.endswith(
        "Causally, the shortcut was carried by L1.mlp (shortcut transfer 0.90 against disruption "
        "0.00)."
    )


def test_without_a_shortcut_phase_before_is_undetermined() -> None:
    phases = find_phases(
        run(adversarial=[0.5, 0.7, *[1.0] * 8], L1_mlp=(0.9, 0.0, 0.0), L0_mlp=(0.1, 0.0, 0.0))
    )
    found = carrier(phases, "L1.mlp")
    assert phases.outcome == "direct"
    assert (found.before, found.after) == ("undetermined", "rule carrier")
    assert found.reason_before.startswith("there is no shortcut phase: ")
    assert np.isnan(found.rule_transfer_before)
    assert phases.sentence.endswith(
        "Causally, the rule was carried at the end by L1.mlp (rule transfer 0.90 against "
        "disruption 0.00)."
    )


def test_what_is_undefined_is_said() -> None:
    phases = find_phases(
        run(
            L1_mlp=(two(0.0, NAN), 0.9, 0.0),
            L0_mlp=(0.0, two(NAN, 0.1), two(NAN, 0.0)),
        )
    )
    last, first = carrier(phases, "L1.mlp"), carrier(phases, "L0.mlp")
    assert (last.before, last.after) == ("shortcut carrier", "undetermined")
    assert last.reason_after == "rule_transfer undefined at the end"
    assert (first.before, first.after) == ("undetermined", "neither")
    assert first.reason_before == "shortcut_transfer, disruption undefined in the shortcut phase"
    stored = json.loads(json.dumps(phases.to_dict(), allow_nan=False))
    assert stored["carriers"][0]["rule_transfer_after"] is None
    assert stored["carriers"][0]["after"] == "undetermined"


def test_only_steps_that_were_measured_count() -> None:
    rule = [9.0, 0.1, 9.0, 9.0, 9.0, 0.3, 9.0, 9.0, 9.0, 0.9]
    shortcut = [9.0, 0.6, 9.0, 9.0, 9.0, 0.2, 9.0, 9.0, 9.0, 0.0]
    curves = (rule, shortcut, 0.0)
    given = find_phases(run(L1_mlp=curves, steps_measured=[0, 10, 50, 90]))
    found = carrier(given, "L1.mlp")
    assert found.rule_transfer_before == pytest.approx(0.1)
    assert found.rule_transfer_after == pytest.approx(0.6)  # the last two measured, 50 and 90
    (event,) = [e for e in given.causal_events if e.measure == "rule_transfer"]
    assert event.step == 90
    # a phase-1 evaluation never counts for the end
    sparse = find_phases(run(L1_mlp=curves, steps_measured=[0, 10, 90]))
    assert carrier(sparse, "L1.mlp").rule_transfer_after == pytest.approx(0.9)
    none = find_phases(run(L1_mlp=curves, steps_measured=[0, 50, 90]))
    assert carrier(none, "L1.mlp").before == "undetermined"
    assert carrier(none, "L1.mlp").reason_before == "not measured in the shortcut phase"
    assert none.causal_events[0].reason == "not measured in the shortcut phase"
    early = find_phases(run(L1_mlp=curves, steps_measured=[0, 10, 30]))
    assert carrier(early, "L1.mlp").reason_after == "not measured after the onset"
    assert early.causal_events[0].reason == "not measured after the onset"


@pytest.mark.parametrize("every", [2, 5])
def test_padded_steps_are_read_like_steps_left_out(every: int) -> None:
    thin = find_phases(synthetic_dataset(causal_every=every))
    whole = find_phases(synthetic_dataset())
    assert [(c.component, c.before, c.after) for c in thin.carriers] == [
        (c.component, c.before, c.after) for c in whole.carriers
    ]
    for event in thin.causal_events:
        assert event.step is None or event.step % (10 * every) in (0, 690 % (10 * every))


@pytest.mark.parametrize(
    "missing",
    [("rule_transfer",), ("disruption",), ("rule_transfer", "shortcut_transfer", "disruption")],
)
def test_missing_variables_leave_the_section_out_with_a_reason(missing: tuple[str, ...]) -> None:
    phases = find_phases(run(L1_mlp=(two(0.0, 0.9), 0.6, 0.0)).drop_vars(missing))
    assert phases.carriers == ()
    assert ", ".join(missing) in phases.carriers_reason
    assert "Causally" not in phases.sentence
    assert "causal take-over" not in [entry.kind for entry in phases.handover]
    assert "carriers" not in repr(phases)
    assert "carrier" not in phases._repr_html_()
    assert phases.to_dict()["carriers"] == []
    assert phases.to_dict()["carriers_reason"] == phases.carriers_reason


@pytest.mark.parametrize("outcome", SYNTHETIC_OUTCOMES)
def test_fingerprints_alone_are_read_as_before(outcome: str) -> None:
    bare = find_phases(synthetic_dataset(outcome, causal=False))
    full = find_phases(synthetic_dataset(outcome))
    assert (bare.causal_events, bare.carriers) == ((), ())
    assert "no cross-split patching" in bare.carriers_reason
    assert repr(bare.circuit_events) == repr(full.circuit_events)  # NaN is not equal to itself
    assert bare.sentence == full.sentence.split(" Causally")[0]
    assert len(full.carriers) == 10


def test_another_direction_alone_is_no_verdict() -> None:
    data = run(L1_mlp=(0.9, 0.0, 0.0)).sel(direction=["adversarial<-validation"])
    assert "validation<-adversarial" in missing_for_carriers(data)
    assert find_phases(data).carriers == ()


def verdict(component: str, rule: float) -> CarrierVerdict:
    numbers = (rule, 0.0, 0.0, rule, 0.0, 0.0)
    return CarrierVerdict(component, "rule carrier", "rule carrier", *numbers)


@pytest.mark.parametrize(
    ("components", "named"),
    [
        (["L0.H0", "L0.heads", "all heads"], ["L0.H0"]),
        (["L0.heads", "L1.heads", "all heads"], ["L1.heads", "L0.heads"]),
        (["L0.heads", "L1.H0", "all heads"], ["L1.H0", "L0.heads"]),
        (["L1.H1", "L11.heads"], ["L11.heads", "L1.H1"]),
        (["L1.mlp", "all mlps", "all heads"], ["all heads", "L1.mlp"]),
        (["L0.H0 + L1.mlp", "L1.mlp"], ["L1.mlp"]),
        (["L0.H0 + L0.H1", "L0.heads"], ["L0.H0 + L0.H1"]),
        (["L0.H0 + L1.mlp", "all heads"], ["all heads", "L0.H0 + L1.mlp"]),
    ],
)
def test_a_set_that_holds_a_carrier_is_not_named(components: list[str], named: list[str]) -> None:
    verdicts = [verdict(name, 0.6 + 0.1 * place) for place, name in enumerate(components)]
    found = smallest_carriers(verdicts, "rule", "after")
    assert [one.component for one in found] == named


def test_the_sentence_names_what_carried() -> None:
    phases = find_phases(
        run(
            L1_mlp=(two(0.0, 0.99), 0.0, 0.0),
            L0_heads=(two(0.01, 0.3), two(0.56, 0.2), two(0.03, 0.1)),
            all_heads=(two(0.01, 0.3), two(0.6, 0.2), two(0.03, 0.1)),
        )
    )
    assert phases.sentence.endswith(
        "the rule was complete at step 60. Causally, the shortcut was carried by L0.heads "
        "(shortcut transfer 0.56 against disruption 0.03), and the rule at the end by L1.mlp "
        "(rule transfer 0.99 against disruption 0.00)."
    )
    unknown = find_phases(run(L1_mlp=(two(0.0, 0.3), 0.1, 0.0)))
    assert unknown.sentence.endswith(
        "Causally, the shortcut was carried by no component that was patched, and the rule at the "
        "end by no component that was patched."
    )
    many = find_phases(run(**{f"L{layer}_mlp": (0.0, 0.9, 0.0) for layer in range(5)}))
    assert (
        "L0.mlp (shortcut transfer 0.90 against disruption 0.00), L1.mlp (0.90 against 0.00)"
        in (many.sentence)
    )
    assert "L2.mlp (0.90 against 0.00) and 2 more, and the rule" in many.sentence
    never = find_phases(run(adversarial=[0.5] * 10, L1_mlp=(0.0, 0.0, 0.0)))
    assert "Causally" not in never.sentence


def test_carriers_show_themselves() -> None:
    phases = find_phases(synthetic_dataset())
    assert "L1.mlp     shortcut carrier (0.01 / 0.59, 0.04)    -> rule carrier (0.99 / 0.00" in (
        repr(phases)
    )
    html = phases._repr_html_()
    assert "<td>L1.mlp</td><td>shortcut carrier (0.01 / 0.59, 0.04)</td>" in html
    data = synthetic_dataset()
    data["component"] = ["<b>", *data["component"].to_numpy()[1:]]
    assert "<b>" not in find_phases(data)._repr_html_().replace("<b>Phases", "")
