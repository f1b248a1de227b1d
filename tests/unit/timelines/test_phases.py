"""Outcomes, circuit events, hand-over order and sentences, from curves with known answers."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr
from synthetic_timeline import OUTCOMES as SYNTHETIC_OUTCOMES
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.timelines.circuit_events import CircuitEvent
from interp_shortcuts.timelines.phase_rules import PhaseRules
from interp_shortcuts.timelines.phases import OUTCOMES, Phases, find_phases
from interp_shortcuts.timelines.sentence import accuracy_text

SPLITS = ["train", "consistent", "anti", "validation", "adversarial"]
HANDOVER = [0.5, 0.1, 0.1, 0.1, 0.7, 0.9, 1.0, 1.0, 1.0, 1.0]
"""Shortcut learned at step 10, onset at 30, generalised at 60."""


def run(
    adversarial: list[float],
    validation: float = 1.0,
    *,
    train: float = 0.9,
    **heads: list[float],
) -> xr.Dataset:
    """Accuracies, and curves of single heads given as `qk_L0H1=[...]` or `ov_L1H0=[...]`."""
    n = len(adversarial)
    accuracy = np.full((n, len(SPLITS)), 0.9, dtype=np.float32)
    accuracy[:, 0], accuracy[:, 3], accuracy[:, 4] = train, validation, adversarial
    variables = {"accuracy": (("step", "split"), accuracy)}
    dims = ("step", "layer", "head", "feature")
    for short, name, index in (("qk", "qk_spearman", 0), ("ov", "ov_spearman", 1)):
        values = np.full((n, 2, 2, 2), np.nan, dtype=np.float32)
        values[..., index] = 0.0
        for head, curve in heads.items():
            measure, place = head.split("_")
            if measure == short:
                values[:, int(place[1]), int(place[3]), index] = curve
        covers = {"covers": json.dumps({"feature": [["magnitude", "parity"][index]]})}
        variables[name] = (dims, values, covers)
    coords = {
        "step": np.arange(n) * 10,
        "split": SPLITS,
        "layer": [0, 1],
        "head": [0, 1],
        "feature": ["magnitude", "parity"],
    }
    return xr.Dataset(variables, coords=coords, attrs={"chance": 0.5, "n_classes": 2})


def circuit(phases: Phases, component: str, measure: str) -> CircuitEvent:
    (event,) = [
        e for e in phases.circuit_events if e.component == component and e.measure == measure
    ]
    return event


@pytest.mark.parametrize("outcome", SYNTHETIC_OUTCOMES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_each_outcome(outcome: str, n_classes: int) -> None:
    phases = find_phases(synthetic_dataset(outcome, n_classes=n_classes))
    assert phases.outcome == outcome
    assert phases.outcome in OUTCOMES


@pytest.mark.parametrize(
    ("outcome", "adversarial", "validation", "train"),
    [
        # balanced training that is memorised answers adversarial examples at about chance
        ("memorised", [0.5, 0.52, 0.55, 0.55], 0.5, 1.0),
        ("memorised", [0.5, 0.52, 0.1, 0.1], 0.94, 0.99),
        ("never learned", [0.5, 0.52, 0.55, 0.55], 0.5, 0.98),
        # without a dated onset, partial needs more than the margin above chance
        ("partial", [0.5, 0.55, 0.61, 0.61], 0.9, 1.0),
        ("memorised", [0.5, 0.55, 0.6, 0.6], 0.9, 1.0),
        # after a dated onset, being above chance is enough
        ("partial", [0.1, 0.1, 0.55, 0.55], 1.0, 1.0),
        ("shortcut", [0.1, 0.1, 0.5, 0.5], 1.0, 1.0),
        ("shortcut", [0.1, 0.1, 0.7, 0.1], 1.0, 1.0),
        ("generalised", [0.1, 0.1, 0.7, 1.0], 1.0, 1.0),
        ("generalised", [0.1, 0.1, 1.0, 0.9], 1.0, 1.0),
        ("transient", [0.1, 0.1, 1.0, 0.9, 0.9], 1.0, 1.0),
        ("transient", [0.5, 0.7, 1.0, 0.9, 0.9], 1.0, 1.0),
        ("direct", [0.5, 0.7, 1.0, 1.0, 1.0], 1.0, 1.0),
        ("direct", [0.5, 0.1, 1.0, 1.0, 1.0], 1.0, 1.0),
    ],
)
def test_outcomes_at_their_boundaries(
    outcome: str, adversarial: list[float], validation: float, train: float
) -> None:
    assert find_phases(run(adversarial, validation, train=train)).outcome == outcome


def test_the_margin_is_a_field() -> None:
    data = run([0.5, 0.52, 0.55, 0.55], 0.5, train=1.0)
    assert find_phases(data, PhaseRules(partial_margin=0.0)).outcome == "partial"


def test_half_way_crossing_known_by_hand() -> None:
    """Phase 1 is steps 10 to 30 (level 0.8), the end is 0.2, so half way is 0.5."""
    qk = [0.0, 0.9, 0.8, 0.7, 0.6, 0.49, 0.55, 0.4, 0.2, 0.2]
    event = circuit(find_phases(run(HANDOVER, qk_L0H1=qk)), "L0.H1", "qk_spearman")
    assert event.phase1_level == pytest.approx(0.8)
    assert event.final_level == pytest.approx(0.2)
    assert event.half_way_value == pytest.approx(0.5)
    assert event.direction == "decline"
    assert event.step == 70  # 0.49 at step 50 is past half way, but it does not stay
    assert event.lag == 40
    assert (event.peak_step, event.feature, event.split) == (10, "magnitude", "")
    assert event.peak_value == pytest.approx(0.9)
    assert event.weakens
    assert not event.strengthens


def test_a_rise_known_by_hand() -> None:
    ov = [0.0, 0.1, 0.1, 0.1, 0.2, 0.5, 0.6, 0.9, 0.9, 0.9]
    event = circuit(find_phases(run(HANDOVER, ov_L1H0=ov)), "L1.H0", "ov_spearman")
    assert event.direction == "rise"
    assert event.step == 50  # half way is 0.5, and being at it is enough
    assert event.lag == 20
    assert event.feature == "parity"


def test_what_hardly_moves_did_not_change() -> None:
    qk = [0.0, *[0.5] * 7, 0.45, 0.45]
    event = circuit(find_phases(run(HANDOVER, qk_L0H0=qk)), "L0.H0", "qk_spearman")
    assert (event.step, event.direction) == (None, "")
    assert event.reason == "did not change (by less than 0.1)"
    small = find_phases(run(HANDOVER, qk_L0H0=qk), PhaseRules(min_change=0.04))
    assert circuit(small, "L0.H0", "qk_spearman").direction == "decline"


def test_undefined_values_are_said() -> None:
    nan = float("nan")
    everywhere = [nan] * 10
    at_end = [0.5] * 8 + [nan, nan]
    gaps = [0.0, 0.8, nan, 0.8, nan, 0.1, nan, 0.1, 0.1, nan]
    phases = find_phases(run(HANDOVER, qk_L0H0=everywhere, qk_L0H1=at_end, qk_L1H0=gaps))
    assert circuit(phases, "L0.H0", "qk_spearman").reason == "undefined at every evaluation"
    assert circuit(phases, "L0.H1", "qk_spearman").reason == "undefined at the last 2 evaluations"
    assert circuit(phases, "L1.H0", "qk_spearman").step == 50
    assert phases.to_dict()["circuit_events"][0]["phase1_level"] is None


def test_without_a_shortcut_phase_there_is_no_level_to_change_from() -> None:
    phases = find_phases(run([0.5, 0.7, 1.0, 1.0], qk_L0H0=[0.0, 0.5, 0.5, 0.0]))
    event = circuit(phases, "L0.H0", "qk_spearman")
    assert event.step is None
    assert event.reason.startswith("no phase-1 level: there is no shortcut phase")
    assert event.peak_step == 10
    assert phases.handover == ()


def test_without_an_onset_the_level_is_that_where_the_shortcut_was_learned() -> None:
    qk = [0.0, 0.8, 0.6, 0.4, 0.2]
    phases = find_phases(run([0.5, 0.1, 0.1, 0.1, 0.1], qk_L0H0=qk))
    event = circuit(phases, "L0.H0", "qk_spearman")
    assert event.phase1_level == pytest.approx(0.8)
    assert (event.step, event.lag) == (30, None)
    assert phases.handover == ()


def test_handover_order_with_lags() -> None:
    phases = find_phases(
        run(
            HANDOVER,
            qk_L0H1=[0.0, 0.8, 0.8, 0.8, 0.8, 0.4, 0.2, 0.2, 0.2, 0.2],
            qk_L0H0=[0.0, 0.1, 0.1, 0.1, 0.5, 0.6, 0.7, 0.7, 0.7, 0.7],  # rises: not handed over
            ov_L1H0=[0.0, 0.0, 0.0, 0.0, -0.7, -0.8, -0.8, -0.8, -0.8, -0.8],  # grows, below zero
            ov_L1H1=[0.0, 0.8, 0.8, 0.8, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],  # declines
        )
    )
    found = [(e.step, e.kind, e.component, e.lag) for e in phases.handover]
    assert found == [
        (30, "onset", "", 0),
        (40, "OV rise", "L1.H0", 10),
        (50, "QK decline", "L0.H1", 20),
        (60, "generalised", "", 30),
    ]
    assert phases.handover[1].what == (
        "L1.H0's OV parity correlation grows (0.00 to -0.80), half way"
    )


def test_a_split_measure_is_read_on_validation_and_padding_is_no_feature() -> None:
    phases = find_phases(synthetic_dataset("generalised"))
    event = circuit(phases, "L0.H0", "attention_to_max")
    assert (event.split, event.feature) == ("validation", "")
    assert circuit(phases, "L1.H1", "ov_spearman").feature == "parity"
    measures = {event.measure for event in phases.circuit_events}
    assert measures == {
        "qk_spearman",
        "qk_spearman_activation",
        "attention_to_max",
        "ov_spearman",
        "ov_class_fraction",
    }
    assert len(phases.circuit_events) == 5 * 4


SENTENCES = {
    "never learned": "Neither the shortcut nor the rule was learned by step 690: accuracy 0.50 in "
    "training, validation 0.50, adversarial 0.50 (chance is 0.50).",
    "memorised": "The training examples were memorised (accuracy 1.00 at step 690) while neither "
    "the shortcut nor the rule was learned: validation 0.52, adversarial 0.48 (chance is 0.50).",
    "shortcut": "Shortcut learned by step 30 and saturated by step 40; no phase 2 was seen: "
    "adversarial accuracy was 0.04 and validation 1.00 at step 690 (chance is 0.50).",
    "direct": "The rule was complete at step 350 (on 1,024 examples) with no shortcut phase "
    "before it.",
    "partial": "Shortcut learned by step 30 and saturated by step 40; phase 2 began at step 230, "
    "but the rule was not complete: adversarial accuracy was 0.82 at step 690 (chance is 0.50); "
    "L0.H0's QK magnitude correlation peaked at 0.72 at step 80 and fell to 0.32; L1.H1's OV "
    "parity correlation rose from 0.06 to 0.83, half way at step 280 (50 steps after the onset); "
    "L1.H1's OV parity class fraction rose from 0.22 to 0.78, half way at step 270 (40 steps after "
    "the onset).",
}


@pytest.mark.parametrize("outcome", SENTENCES)
def test_the_sentence(outcome: str) -> None:
    assert find_phases(synthetic_dataset(outcome, causal=False)).sentence == SENTENCES[outcome]


@pytest.mark.parametrize("outcome", SYNTHETIC_OUTCOMES)
def test_no_phase_2_is_claimed_without_an_onset(outcome: str) -> None:
    phases = find_phases(synthetic_dataset(outcome))
    assert ("phase 2 began" in phases.sentence) == (phases.onset is not None)
    assert ("complete at" in phases.sentence) == (phases.completion is not None)
    assert ("lost from" in phases.sentence) == (outcome == "transient")


def test_sentences_of_rarer_courses() -> None:
    back = find_phases(run([0.1, 0.1, 0.7, 0.7, 0.7, 1.0, 0.1, 0.1]))
    assert (
        "but the rule was lost from step 60: adversarial accuracy was 0.10 at step 70"
        in back.sentence
    )
    early = find_phases(run([0.7, 1.0, 0.1, 0.1]))
    assert early.outcome == "transient"
    assert "no shortcut phase before it; the shortcut was learned by step 20" in early.sentence
    undated = find_phases(run([0.1, 0.1, 0.1, 1.0]))
    assert undated.outcome == "generalised"
    assert undated.sentence == "Shortcut learned by step 0; the rule was complete at step 30."
    unmeasured = find_phases(run([0.1, 0.1]).drop_vars("accuracy"))
    assert "the outcome cannot be told" in unmeasured.sentence
    still = find_phases(run(HANDOVER))
    assert "no head's QK magnitude correlation weakened by 0.1 or more" in still.sentence
    assert "no head's OV parity correlation grew by 0.1 or more" in still.sentence


def test_one_is_written_only_for_one() -> None:
    assert accuracy_text(1.0) == "1.00"
    assert accuracy_text(0.9996) == "0.9996"
    assert accuracy_text(0.00004) == "just above 0"
    assert accuracy_text(0.004) == "0.004"
    assert accuracy_text(0.5) == "0.50"


def test_to_dict_is_json_and_to_dataframe_has_a_row_for_each_event() -> None:
    phases = find_phases(synthetic_dataset("generalised"))
    stored = json.loads(json.dumps(phases.to_dict(), allow_nan=False))
    assert stored["outcome"] == "generalised"
    assert stored["onset"] == phases.onset == 220
    assert stored["completion"] == phases.completion == 350
    assert stored["rules"]["hysteresis"] == 2
    frame = phases.to_dataframe()
    assert len(frame) == 5 + 5 * 4 + 4 * 10 + 2 * 10  # events, circuit, causal, two a carrier
    assert frame["kind"].unique().tolist() == ["behaviour", "circuit", "causal", "carrier"]
    after = frame[(frame["component"] == "L1.mlp") & (frame["event"] == "carries_after")]
    assert after["verdict"].item() == "rule carrier"
    assert after["rule_transfer"].item() == pytest.approx(0.99)
    assert (frame.loc[frame["kind"] == "circuit", "verdict"] == "").all()
    assert frame.loc[frame["event"] == "generalised", "lag"].item() == 130
    assert frame["step"].dtype == "Int64"


def test_phases_show_themselves() -> None:
    phases = find_phases(synthetic_dataset("generalised"))
    text = repr(phases)
    assert text.startswith("Phases: generalised\n  Shortcut learned by step 30")
    assert "  onset                  220  value 0.1086" in text
    assert "  lost                     -  the rule was kept to the end" in text
    assert "       350   +130  the rule is complete" in text
    html = phases._repr_html_()
    assert "<td>onset</td><td>220</td>" in html
    assert "validation accuracy &gt;= 0.95" in html


def test_labels_are_escaped_in_html() -> None:
    data = synthetic_dataset("generalised")
    data = data.assign_coords(feature=["<script>", "parity"])
    data["qk_spearman"].attrs["covers"] = json.dumps({"feature": ["<script>"]})
    data = data.drop_vars([v for v in data.data_vars if str(v).startswith("qk_spearman_activ")])
    phases = find_phases(data)
    assert "<script>" in repr(phases)
    assert "<script>" not in phases._repr_html_()
