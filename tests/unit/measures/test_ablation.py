"""Ablation: hand-wired models, a plain loop with hooks, single and joint, empty splits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from causal_reference import (
    cached,
    hooked_logits,
    members,
    paired,
    point,
    put,
    random_model,
    three_class_task,
    wired_task,
)
from handwired_causal import gated_model, redundant_heads_model

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.ablation import Ablation, HeadAblation
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.streams import derive_seed, torch_stream

OUTCOMES = ("accuracy_drop", "loss_increase", "logit_difference_drop")
ALL = ["L0.H0", "L0.H1", "L0.mlp", "L1.H0", "L1.H1", "L1.mlp"]
SETS = ["L0.heads", "L1.heads", "all heads", "all mlps"]
layers = pytest.mark.parametrize("layer", [0, 1])


@layers
def test_two_redundant_heads(layer):
    found = Ablation(ablations="zero")(redundant_heads_model(layer=layer), wired_task())
    assert found.component.values.tolist() == ALL + SETS
    assert found.ablation_n.values.tolist() == [40, 40]
    total = {f"L{layer}.heads", f"L{layer}.mlp", "all heads", "all mlps"}
    labels = {name: wired_task().split(name).labels for name in found.split.values}
    for name in found.component.values:
        for split in found.split.values:
            here = found.sel(component=name, split=split, ablation="zero")
            drop = here.ablation_logit_difference_drop
            interval = here.ablation_accuracy_drop_interval
            if name not in total:  # the other head is enough
                assert float(abs(drop)) < 1e-6
                assert float(here.ablation_accuracy_drop) == 0
                assert interval.values.tolist() == [0, 0]
                continue
            assert float(drop) == pytest.approx(1)  # from logits (1, 0) to (0, 0)
            ones = float(labels[split].double().mean())  # ties are answered with class 0
            assert float(here.ablation_accuracy_drop) == pytest.approx(ones)
            increase = np.log(2) - np.log1p(np.exp(-1))
            assert float(here.ablation_loss_increase) == pytest.approx(increase, abs=1e-6)
            error = 1.959964 * np.sqrt(ones * (1 - ones) / 39)
            assert interval.values == pytest.approx([ones - error, ones + error], abs=1e-5)


@layers
def test_one_head_of_the_gate(layer):
    """Without the rule's head the shortcut is followed: nothing is lost where it is right."""
    found = Ablation(ablations="zero")(gated_model(layer=layer), wired_task())
    drop = found.ablation_accuracy_drop.sel(ablation="zero")
    rule, shortcut = f"L{layer}.H1", f"L{layer}.H0"
    assert drop.sel(component=rule).values.tolist() == [0, 1]
    assert drop.sel(component=shortcut).values.tolist() == [0, 0]
    joint = Ablation(components=f"{rule}+{shortcut}", ablations="zero")
    whole = found.sel(component=f"L{layer}.heads")
    both = joint(gated_model(layer=layer), wired_task()).sel(component=f"{rule} + {shortcut}")
    for outcome in OUTCOMES:
        name = f"ablation_{outcome}"
        assert both[name].values.tolist() == whole[name].values.tolist()
    assert not np.allclose(whole.ablation_loss_increase, found.ablation_loss_increase[0])


@pytest.mark.parametrize("position", ["per position", "pooled"])
@pytest.mark.parametrize("normalization", ["none", "LN"])
def test_it_equals_a_plain_loop_with_hooks(normalization, position):
    task = three_class_task()
    model = random_model(task, normalization=normalization)
    measure = Ablation(position=position, seed=5, reference_examples=20, examples=None, chunk=7)
    found = measure(model, task)
    reference = task.split("train").take(torch.arange(20))
    cache = cached(model, reference.tokens)
    assert np.ptp(found.ablation_accuracy_drop.values) > 0
    for split_name in ("validation", "adversarial"):
        split = task.split(split_name)
        stream = torch_stream(derive_seed(5, "ablation", split_name), "ablate", "resample")
        donors = torch.randint(20, (split.n,), generator=stream)
        plain = hooked_logits(model, split.tokens, [])
        for kind in ("zero", "mean", "resample"):

            def value(layer, head, kind=kind, donors=donors):
                kept = cache[point(layer, head)]
                kept = kept if head is None else kept[:, :, head]
                if kind == "resample":
                    return kept[donors]
                mean = kept.mean((0, 1)) if position == "pooled" else kept.mean(0)
                return 0 * mean if kind == "zero" else mean

            for name in found.component.values:
                edits = [(point(*each), put(each[1], value(*each))) for each in members(name)]
                ablated = hooked_logits(model, split.tokens, edits)
                mean, low = paired(task, split, plain, ablated)
                here = found.sel(component=name, ablation=kind, split=split_name)
                for outcome, expected, bound in zip(OUTCOMES, mean, low, strict=True):
                    at = f"ablation_{outcome}"
                    assert float(here[at]) == pytest.approx(expected, abs=1e-5), (name, kind)
                    interval = here[f"{at}_interval"].sel(bound="low")
                    assert float(interval) == pytest.approx(bound, abs=1e-5), (name, kind)


def test_a_head_is_not_all_heads_and_sets_are_joint():
    task = three_class_task()
    found = Ablation()(random_model(task), task).ablation_loss_increase
    one, layer, every = (found.sel(component=c) for c in ("L0.H0", "L0.heads", "all heads"))
    summed = found.sel(component=["L0.H0", "L0.H1"]).sum("component")
    for different in (one, every, summed):
        assert abs(layer - different).max() > 0.01


def test_the_bias_of_the_layer_stays():
    """A head whose values are zero adds nothing, though the layer has b_O: ablating it is free."""
    task = three_class_task()
    model = random_model(task)
    with torch.no_grad():
        model.blocks[0].attn.W_V[1] = 0
        model.blocks[0].attn.b_V[1] = 0
    found = Ablation(components=["L0.H1"], ablations="zero")(model, task)
    assert abs(found.ablation_loss_increase.values).max() < 1e-6


def test_the_first_examples_of_each_split():
    task, k = three_class_task(), 11
    model = random_model(task)
    found = Ablation(components="all mlps", examples=k)(model, task)
    assert found.ablation_n.values.tolist() == [k, k]
    split = task.split("validation").take(torch.arange(k))
    plain = hooked_logits(model, split.tokens, [])
    edits = [(point(*each), put(None, 0.0)) for each in members("all mlps")]
    mean, _ = paired(task, split, plain, hooked_logits(model, split.tokens, edits))
    here = found.sel(component="all mlps", ablation="zero", split="validation")
    assert float(here.ablation_loss_increase) == pytest.approx(mean[1], abs=1e-5)


def test_heads_alone():
    task = three_class_task()
    model = random_model(task)
    heads, every = HeadAblation()(model, task), Ablation()(model, task)
    assert heads.component.values.tolist() == [
        *(name for name in ALL if "H" in name),
        *("L0.heads", "L1.heads", "all heads"),
    ]
    same = every.sel(component=heads.component.values)
    assert np.allclose(heads.ablation_loss_increase, same.ablation_loss_increase, atol=1e-6)
    with pytest.raises(MeasureError, match=r"got 'L0\.mlp'"):
        HeadAblation(components="L0.mlp")(model, task)


def test_chunks_make_no_difference_and_the_unablated_run_is_made_once_for_each(monkeypatch):
    task = three_class_task()
    model = random_model(task)
    whole = Ablation(chunk=1000)(model, task)
    from interp_shortcuts.models.staged import StagedModel

    passes = []
    original = StagedModel.embed

    def counted(self, tokens):
        passes.append(len(tokens))
        return original(self, tokens)

    monkeypatch.setattr(StagedModel, "embed", counted)
    observation = Observation(model, task)
    in_parts = Ablation(chunk=20).measure(observation)
    # the reference for the means; then each sequence at most once, be it example or donor
    splits = [task.split(name).tokens for name in ("validation", "adversarial", "train")]
    asked, there = (len(torch.cat(some).unique(dim=0)) for some in (splits[:2], splits))
    assert passes[0] == 50
    assert asked <= sum(passes[1:]) <= there
    for name, array in whole.data_vars.items():
        np.testing.assert_allclose(in_parts[name], array, atol=1e-6)
    passes.clear()
    Ablation(ablations="mean", splits="validation").measure(observation)
    assert passes == []  # the means and the unablated passes are known


def test_an_empty_split_and_an_empty_reference():
    task = wired_task(ratio=1.0)
    found = Ablation(splits=("anti", "validation"))(redundant_heads_model(), task)
    assert found.ablation_n.values.tolist() == [0, 40]
    for outcome in OUTCOMES:
        for name in (f"ablation_{outcome}", f"ablation_{outcome}_interval"):
            assert np.isnan(found[name].sel(split="anti")).all()
            assert np.isfinite(found[name].sel(split="validation")).all()
            assert "the split has" in found[name].attrs["nan_means"]
    with pytest.raises(MeasureError, match=r"`reference` must name .*; 'anti' has none"):
        Ablation(reference="anti")(redundant_heads_model(), task)


def test_one_head_a_layer_is_its_layers_heads():
    task = three_class_task()
    found = Ablation()(random_model(task, n_heads=1, n_layers=1), task).ablation_loss_increase
    assert found.component.values.tolist() == [
        *("L0.H0", "L0.mlp", "L0.heads", "all heads", "all mlps")
    ]
    for name in ("L0.heads", "all heads"):
        assert np.array_equal(found.sel(component=name), found.sel(component="L0.H0"))


def test_definitions_say_where_and_from_what():
    task = three_class_task()
    found = Ablation(position="pooled", reference="adversarial", examples=9)(
        random_model(task), task
    )
    definition = found.ablation_loss_increase.attrs["definition"]
    for part in ("before W_O", "b_O stays", "pooled", "'adversarial'", "first 9", "2607.10116"):
        assert part in definition
    assert found.ablation_loss_increase.attrs["units"] == "nats"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ablations": ("avg",)}, "`ablations` must be 'zero', 'mean' or 'resample'; got 'avg'"),
        ({"ablations": ()}, "`ablations` must be .*; got 'nothing'"),
        ({"position": "all"}, "`position` must be 'per position' or 'pooled'; got 'all'"),
        ({"splits": ()}, "`splits` must name at least one split"),
        ({"examples": 0}, r"`examples` \(=0\) must be at least 1"),
        ({"chunk": 0}, r"`chunk` \(=0\) must be at least 1"),
    ],
)
def test_fields_that_are_refused(fields, message):
    with pytest.raises(MeasureError, match=message):
        Ablation(**fields)


def test_unknown_components_are_listed():
    task = three_class_task()
    model = random_model(task)
    for name in ("L2.H0", "L0.H0 + L9.mlp", "heads"):
        with pytest.raises(MeasureError, match=r"'L0.H0', .*'all mlps', or several .*; got"):
            Ablation(components=name)(model, task)
