"""Cross-split patching: hand-wired gates, a plain loop with hooks pair by pair, empty pairings."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from causal_reference import (
    cached,
    hooked_logits,
    members,
    point,
    random_model,
    three_class_task,
    wired_task,
)
from handwired_causal import LENGTH, gated_model, redundant_heads_model

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.pairs import pairs_of
from interp_shortcuts.measures.patching import CrossSplitPatching

FORWARD, REVERSE = "validation<-adversarial", "adversarial<-validation"
FRACTIONS = ("rule_transfer", "shortcut_transfer", "disruption")
layers = pytest.mark.parametrize("layer", [0, 1])


@layers
def test_a_gate_that_uses_the_rule(layer):
    found = CrossSplitPatching()(gated_model(layer=layer), wired_task())
    carriers = {f"L{layer}.H1", f"L{layer}.mlp", f"L{layer}.heads", "all heads", "all mlps"}
    for direction in (FORWARD, REVERSE):
        for name in found.component.values:
            here = found.sel(component=name, direction=direction)
            carries = float(name in carriers)
            assert float(here.rule_transfer) == carries, name
            assert float(here.rule_recovered) == pytest.approx(carries, abs=1e-6), name
            assert float(here.disruption) == 0, name
            assert [int(here[f"{f}_n"]) for f in ("rule_transfer", "disruption")] == [40, 40]
            assert int(here.rule_recovered_n) == 40
            if direction == FORWARD:
                assert float(here.shortcut_transfer) == 0, name
                assert int(here.shortcut_transfer_n) == 40
            else:  # the source's shortcut label is the target's true label: predicted anyway
                assert np.isnan(float(here.shortcut_transfer))
                assert int(here.shortcut_transfer_n) == 0
            # source and target have the same true label, and so the same logits
            assert np.isnan(float(here.shortcut_recovered))
            assert int(here.shortcut_recovered_n) == 0
            assert int(here.shortcut_recovered_left_out) == 40
    low, high = found.rule_transfer_interval.sel(component="all heads", direction=FORWARD).values
    assert low == pytest.approx(0.025 ** (1 / 40), abs=1e-6)  # Clopper-Pearson of 40 in 40
    assert high == 1


@layers
def test_a_gate_that_uses_the_shortcut(layer):
    found = CrossSplitPatching()(gated_model(uses="shortcut", layer=layer), wired_task())
    carriers = {f"L{layer}.H0", f"L{layer}.mlp", f"L{layer}.heads", "all heads", "all mlps"}
    for name in found.component.values:
        carries = float(name in carriers)
        forward, reverse = (found.sel(component=name, direction=d) for d in (FORWARD, REVERSE))
        assert float(forward.rule_transfer) == 0
        assert float(forward.shortcut_transfer) == carries
        assert float(reverse.shortcut_transfer) == carries
        assert np.isnan(float(reverse.rule_transfer))  # the source's true label is s: predicted
        assert int(reverse.rule_transfer_n) == 0
        assert float(forward.shortcut_recovered) == pytest.approx(carries, abs=1e-6)
        assert float(forward.disruption) == 0
    for direction in (FORWARD, REVERSE):
        assert np.isnan(found.rule_recovered.sel(direction=direction)).all()


@layers
def test_the_residual_stream(layer):
    """The rule enters at the first position and is moved to "=" by the layer that works."""
    found = CrossSplitPatching(n_residual_pairs=20)(gated_model(layer=layer), wired_task())
    assert found.site.values.tolist() == ["resid_pre L0", "resid_pre L1", "resid_post L1"]
    assert found.residual_rule_transfer_n.sel(direction=FORWARD).values.tolist() == [[20] * 5] * 3
    transfer = found.residual_rule_transfer.sel(direction=FORWARD)
    moved_at = {"resid_pre L0": 0, "resid_pre L1": LENGTH if layer == 0 else 0}
    moved_at["resid_post L1"] = LENGTH
    for site, position in moved_at.items():
        expected = [float(p == position) for p in range(LENGTH + 1)]
        assert transfer.sel(site=site).values.tolist() == expected
    assert (found.residual_shortcut_transfer.sel(direction=FORWARD) == 0).all()
    assert (found.residual_disruption == 0).all()


def test_one_of_two_redundant_heads_carries_and_does_not_carry_alone():
    found = CrossSplitPatching()(redundant_heads_model(), wired_task()).sel(direction=FORWARD)
    # the other head still writes the target's class: both classes get 1, and ties go to class 0
    labels = pairs_of(wired_task(), n_pairs=192)[0].sources["rule"].labels
    to_class_0 = float((labels == 0).double().mean())
    assert float(found.rule_transfer.sel(component="L0.H0")) == pytest.approx(to_class_0)
    assert float(found.rule_recovered.sel(component="L0.H0")) == pytest.approx(0.5)
    assert float(found.rule_transfer.sel(component="L0.heads")) == 1
    assert float(found.rule_recovered.sel(component="L0.heads")) == pytest.approx(1)


@pytest.mark.parametrize("make", [wired_task, three_class_task])
def test_it_equals_a_plain_loop_with_hooks(make):
    task = make(n_validation=16, n_adversarial=14)
    model = random_model(task)
    measure = CrossSplitPatching(n_residual_pairs=12, min_difference=0.3, seed=2, chunk=4)
    found = measure(model, task)
    for prefix in ("", "residual_"):  # there is something to compare
        assert sum(float(found[f"{prefix}{fraction}"].std()) > 0.02 for fraction in FRACTIONS) >= 2
    names = ["L0.H0", "L1.H1", "L0.mlp", "L1.mlp", "L0.heads", "all heads", "all mlps"]
    for pairs in pairs_of(task, n_pairs=192, seed=2):
        for pairing, fraction in zip(("rule", "shortcut", "control"), FRACTIONS, strict=True):
            loop = _Loop(model, pairs, pairing)
            for name in names:
                places = [(point(layer, head), head, None) for layer, head in members(name)]
                moved, recovered = loop.patched(places)
                here = found.sel(component=name, direction=pairs.direction)
                _compare(here, fraction, moved)
                if pairing != "control":
                    kept = [r for r, whole in recovered if abs(whole) >= 0.3]
                    assert int(here[f"{pairing}_recovered_n"]) == len(kept)
                    assert int(here[f"{pairing}_recovered_left_out"]) == len(recovered) - len(kept)
                    if kept:
                        value = float(here[f"{pairing}_recovered"])
                        assert value == pytest.approx(np.mean(kept), abs=1e-4)
            for site in found.site.values:
                kind, layer = site.split(" L")
                for position in found.position.values.tolist():
                    places = [(f"blocks.{layer}.hook_{kind}", None, position)]
                    moved, _ = loop.patched(places, n=12)
                    here = found.sel(site=site, position=position, direction=pairs.direction)
                    _compare(here, f"residual_{fraction}", moved)


def _compare(here, fraction, moved):
    assert int(here[f"{fraction}_n"]) == len(moved)
    value = float(here[fraction])
    assert np.isnan(value) if not moved else value == pytest.approx(np.mean(moved))


class _Loop:
    """Runs the sources, keeps their activations, puts them into the targets; counts one by one."""

    def __init__(self, model, pairs, pairing):
        self.model, self.pairs, self.pairing = model, pairs, pairing
        self.source, self.found = pairs.sources[pairing], pairs.found[pairing]
        self.cache = cached(model, self.source.tokens)
        self.of_source = hooked_logits(model, self.source.tokens, [])
        self.plain = hooked_logits(model, pairs.target.tokens, [])

    def patched(self, places, n=None):
        edits = [(at, self._put(self.cache[at], head, p)) for at, head, p in places]
        logits = hooked_logits(self.model, self.pairs.target.tokens, edits)
        moved, recovered = [], []
        for i in range(self.pairs.target.n if n is None else n):
            if not self.found[i]:
                continue
            plain, patched, of_source = self.plain[i], logits[i], self.of_source[i]
            if self.pairing == "control":
                moved.append(int(patched.argmax()) != int(plain.argmax()))
                continue
            labels = "labels" if self.pairing == "rule" else "shortcut_labels"
            new = int(getattr(self.source, labels)[i])
            old = int(getattr(self.pairs.target, labels)[i])
            if int(plain.argmax()) != new:
                moved.append(int(patched.argmax()) == new)
            whole = float((of_source[new] - of_source[old]) - (plain[new] - plain[old]))
            part = float((patched[new] - patched[old]) - (plain[new] - plain[old]))
            recovered.append((part / whole, whole))
        return moved, recovered

    @staticmethod
    def _put(value, head, position):
        def change(activation):
            if position is not None:
                activation[:, position] = value[:, position]
            elif head is None:
                activation[:] = value
            else:
                activation[:, :, head] = value[:, :, head]
            return activation

        return change


def test_an_empty_pairing_is_nan_with_a_reason():
    """One validation example has no control, and a train split with r = 1 has no anti example."""
    task = wired_task(n_validation=1, n_adversarial=40)
    found = CrossSplitPatching()(gated_model(), task)
    here = found.sel(direction=FORWARD)
    assert (here.disruption_n == 0).all()
    assert np.isnan(here.disruption).all()
    assert np.isnan(here.disruption_interval).all()
    assert "hold no pair of this pairing" in here.disruption.attrs["nan_means"]
    assert (here.rule_transfer_n == 1).all()


def test_no_residual_pairs_are_nan_with_none_counted():
    found = CrossSplitPatching(n_residual_pairs=0)(gated_model(), wired_task())
    for fraction in FRACTIONS:
        assert np.isnan(found[f"residual_{fraction}"]).all()
        assert (found[f"residual_{fraction}_n"] == 0).all()
    assert float(found.rule_transfer.sel(component="all heads", direction=FORWARD)) == 1


def test_chosen_components_and_the_same_pairs_at_every_checkpoint():
    task = three_class_task()
    model = random_model(task)
    whole = CrossSplitPatching()(model, task)
    some = CrossSplitPatching(components=["all heads", "L0.H1"])(model, task)
    assert some.component.values.tolist() == ["all heads", "L0.H1"]
    for name in ("rule_transfer", "shortcut_recovered"):
        same = whole[name].sel(component=some.component.values)
        assert np.allclose(some[name], same, atol=1e-5, equal_nan=True)
    other = CrossSplitPatching(seed=1)(model, task)
    assert not np.allclose(other.rule_recovered, whole.rule_recovered, equal_nan=True)


def test_definitions_cite_and_say_what_is_ours():
    found = CrossSplitPatching()(gated_model(), wired_task())
    for name in (*FRACTIONS, "residual_rule_transfer", "rule_recovered"):
        for part in ("2607.10116", "2106.02997", "ours"):
            assert part in found[name].attrs["definition"], name
    assert "before W_O" in found.rule_transfer.attrs["definition"]
    assert "other true label, same shortcut label" in found.rule_transfer.attrs["definition"]
    assert "other shortcut label, same true label" in found.shortcut_transfer.attrs["definition"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n_pairs": 0}, r"`n_pairs` \(=0\) must be at least 1"),
        ({"n_residual_pairs": -1}, r"`n_residual_pairs` \(=-1\) must be at least 0"),
        ({"min_difference": 0.0}, r"`min_difference` \(=0.0\) must be above 0"),
        ({"chunk": 0}, r"`chunk` \(=0\) must be at least 1"),
    ],
)
def test_fields_that_are_refused(fields, message):
    with pytest.raises(MeasureError, match=message):
        CrossSplitPatching(**fields)


def test_the_model_may_be_in_training_mode_with_gradients():
    model, task = gated_model(), wired_task()
    model.train()
    found = CrossSplitPatching()(model, task)
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.is_grad_enabled()
    assert float(found.rule_transfer.sel(component="L0.H1", direction=FORWARD)) == 1
