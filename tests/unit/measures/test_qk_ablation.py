"""QK-only ablation: it sees where heads look and not what they move; a plain loop with hooks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from causal_reference import (
    MarkedTask,
    cached,
    hooked_logits,
    members,
    paired,
    random_model,
    three_class_task,
)
from handwired_causal import looking_and_moving_model

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.ov_ablation import OVAblation
from interp_shortcuts.measures.qk_ablation import QKAblation

OUTCOMES = ("accuracy_drop", "loss_increase", "logit_difference_drop")


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("asks", ["content", "place"])
def test_looking_and_moving_are_told_apart(asks, layer):
    """Head 0 moves content from a fixed place; head 1 looks for the marker and moves its place."""
    task, model = MarkedTask(asks), looking_and_moving_model(layer=layer)
    everything = {"examples": None, "reference_examples": None}
    qk, ov = (kind(**everything)(model, task) for kind in (QKAblation, OVAblation))
    looking = qk.qk_ablation_logit_difference_drop.sel(qk_ablation="mean", split="validation")
    moving = ov.ov_ablation_logit_difference_drop.sel(split="validation")
    mover, looker = f"L{layer}.H0", f"L{layer}.H1"
    assert abs(float(looking.sel(component=mover))) < 1e-5
    assert abs(float(moving.sel(component=looker))) < 1e-5
    # What is ablated adds 1 to the true class; then the mean over the examples, p0 and p1, which
    # adds p_y - p_(1-y): on average (p1 - p0)**2.
    ones = float(task.split("validation").labels.double().mean())
    expected = 1 - (2 * ones - 1) ** 2
    if asks == "content":
        assert float(moving.sel(component=mover)) == pytest.approx(expected, abs=1e-5)
        interval = qk.qk_ablation_logit_difference_drop_interval.sel(component=mover)
        assert abs(interval.sel(qk_ablation="mean")).max() < 1e-5
    else:
        assert float(looking.sel(component=looker)) == pytest.approx(expected, abs=1e-5)


def test_uniform_attention_is_no_change_where_attention_is_uniform():
    task = three_class_task()
    model = random_model(task)
    with torch.no_grad():
        model.blocks[1].attn.W_Q[0] = 0
        model.blocks[1].attn.b_Q[0] = 0
    found = QKAblation()(model, task).qk_ablation_loss_increase
    assert abs(found.sel(component="L1.H0")).max() < 1e-5
    assert abs(found.sel(component="L1.H1")).min() > 1e-4


@pytest.mark.parametrize("attention", ["causal", "bidirectional"])
def test_it_equals_a_plain_loop_with_hooks(attention):
    task = three_class_task()
    model = random_model(task, attention=attention)
    found = QKAblation(reference_examples=20, chunk=11)(model, task)
    assert found.component.values.tolist() == [
        *("L0.H0", "L0.H1", "L1.H0", "L1.H1", "L0.heads", "L1.heads", "all heads")
    ]
    cache = cached(model, task.split("train").tokens[:20])
    n = task.context
    allowed = torch.ones(n, n).tril() if attention == "causal" else torch.ones(n, n)
    uniform = allowed / allowed.sum(1, keepdim=True)
    split = task.split("adversarial")
    plain = hooked_logits(model, split.tokens, [])
    for kind in ("uniform", "mean"):
        for name in found.component.values:
            edits = []
            for layer, head in members(name):
                at = f"blocks.{layer}.attn.hook_pattern"
                pattern = uniform if kind == "uniform" else cache[at][:, head].mean(0)

                def change(activation, head=head, pattern=pattern):
                    activation[:, head] = pattern
                    return activation

                edits.append((at, change))
            ablated = hooked_logits(model, split.tokens, edits)
            mean, low = paired(task, split, plain, ablated)
            here = found.sel(component=name, qk_ablation=kind, split="adversarial")
            for outcome, expected, bound in zip(OUTCOMES, mean, low, strict=True):
                at = f"qk_ablation_{outcome}"
                assert float(here[at]) == pytest.approx(expected, abs=1e-5), (name, kind)
                interval = here[f"{at}_interval"].sel(bound="low")
                assert float(interval) == pytest.approx(bound, abs=1e-5), (name, kind)


def test_fields():
    task = three_class_task()
    model = random_model(task)
    found = QKAblation(components=["all heads"], qk_ablations="mean", splits="train")(model, task)
    assert found.qk_ablation.values.tolist() == ["mean"]
    assert np.isfinite(found.qk_ablation_accuracy_drop).all()
    assert "values are kept" in found.qk_ablation_accuracy_drop.attrs["definition"]
    with pytest.raises(MeasureError, match="`qk_ablations` must be 'uniform' or 'mean'"):
        QKAblation(qk_ablations="zero")
    with pytest.raises(MeasureError, match="got 'all mlps'"):
        QKAblation(components="all mlps")(model, task)
