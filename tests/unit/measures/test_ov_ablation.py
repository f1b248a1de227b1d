"""OV-only ablation against a plain loop with hooks; that it is not the QK one is in its test."""

from __future__ import annotations

import pytest
import torch
from causal_reference import cached, hooked_logits, members, paired, random_model, three_class_task

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.ov_ablation import OVAblation

OUTCOMES = ("accuracy_drop", "loss_increase", "logit_difference_drop")


@pytest.mark.parametrize("position", ["per position", "pooled"])
def test_it_equals_a_plain_loop_with_hooks(position):
    task = three_class_task()
    model = random_model(task)
    found = OVAblation(position=position, reference="validation", chunk=8)(model, task)
    assert found.ov_ablation_accuracy_drop.dims == ("component", "split")
    cache = cached(model, task.split("validation").tokens)
    for split_name in found.split.values:
        split = task.split(str(split_name))
        plain = hooked_logits(model, split.tokens, [])
        for name in found.component.values:
            edits = []
            for layer, head in members(name):
                at = f"blocks.{layer}.attn.hook_v"
                kept = cache[at][:, :, head]
                mean = kept.mean((0, 1)) if position == "pooled" else kept.mean(0)

                def change(activation, head=head, mean=mean):
                    activation[:, :, head] = mean
                    return activation

                edits.append((at, change))
            ablated = hooked_logits(model, split.tokens, edits)
            mean, low = paired(task, split, plain, ablated)
            here = found.sel(component=name, split=split_name)
            for outcome, expected, bound in zip(OUTCOMES, mean, low, strict=True):
                at = f"ov_ablation_{outcome}"
                assert float(here[at]) == pytest.approx(expected, abs=1e-5), name
                interval = here[f"{at}_interval"].sel(bound="low")
                assert float(interval) == pytest.approx(bound, abs=1e-5), name


def test_values_that_are_the_same_everywhere_cost_nothing():
    task = three_class_task()
    model = random_model(task)
    with torch.no_grad():
        model.blocks[0].attn.W_V[0] = 0
    found = OVAblation()(model, task).ov_ablation_loss_increase
    assert abs(found.sel(component="L0.H0")).max() < 1e-5
    assert abs(found.sel(component="L0.H1")).min() > 1e-4


def test_fields():
    with pytest.raises(MeasureError, match="`position` must be 'per position' or 'pooled'"):
        OVAblation(position="mean")
    task = three_class_task()
    found = OVAblation(components="L0.H0 + L1.H1")(random_model(task), task)
    assert found.component.values.tolist() == ["L0.H0 + L1.H1"]
    assert "the attention pattern is kept" in found.ov_ablation_accuracy_drop.attrs["definition"]
