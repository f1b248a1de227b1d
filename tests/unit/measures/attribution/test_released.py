"""The released code's ablation against one of the head: by hooks, and in what it says."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from copying import SEQUENCES, CopyTask, random_model, wired_model

from interp_shortcuts.interventions.ablate import Ablate
from interp_shortcuts.measures.attribution.ablated_scores import ablated_scores
from interp_shortcuts.measures.attribution.gradient_measures import GradientNorm
from interp_shortcuts.measures.attribution.importance import ComponentImportance
from interp_shortcuts.measures.attribution.released import compared_with_released, sliced_drops
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.tasks.target_scores import exact_match, token_loss


def test_overwriting_a_slice_after_w_o_with_the_mean_of_z_ablates_no_head():
    """What the source's released code does: another quantity altogether."""
    model = random_model(size=0.7)
    split = SEQUENCES.split("length_5")
    d_head = model.cfg.d_head
    for head in range(2):
        run = Ablate((f"L1.H{head}",), kind="mean", reference=split)
        (ours,) = ablated_scores(model, split, [run]).loss
        _, cache = model.run_with_cache(split.tokens)
        mean = cache["z", 1][:, :, head].mean(0)

        def at_z(z, hook, head=head, mean=mean):
            z = z.clone()
            z[:, :, head] = mean
            return z

        def after_w_o(out, hook, head=head, mean=mean):
            out = out.clone()
            out[..., head * d_head : (head + 1) * d_head] = mean
            return out

        with torch.no_grad():
            right = model.run_with_hooks(split.tokens, fwd_hooks=[("blocks.1.attn.hook_z", at_z)])
            wrong = model.run_with_hooks(
                split.tokens, fwd_hooks=[("blocks.1.hook_attn_out", after_w_o)]
            )
        right, wrong = (token_loss(logits, split.targets).double() for logits in (right, wrong))
        assert (torch.from_numpy(ours) - right).abs().max() < 1e-5
        assert (torch.from_numpy(ours) - wrong).abs().max() > 0.05


def test_a_head_that_is_all_there_is_can_look_free_in_the_released_way():
    """One head copies; the slice that is overwritten after W_O is not where it writes."""
    model = wired_model([(2.0, 1.0), (0.0, 0.0)])
    split = CopyTask().split("length_1")
    (at_head,) = ablated_scores(model, split, [(), Ablate("L0.H0")]).drops().mean(1)
    assert at_head == 1.0
    drops = sliced_drops(model, split, split)
    clean = exact_match(model(split.tokens), split.targets).double().mean().item()
    assert clean == 1.0
    _, cache = model.run_with_cache(split.tokens)
    for head, drop in enumerate(drops):
        out = cache["attn_out", 0].clone()
        width = model.cfg.d_head
        out[..., head * width : (head + 1) * width] = cache["z", 0][:, :, head].mean(0)
        logits = model.run_with_hooks(
            split.tokens, fwd_hooks=[("blocks.0.hook_attn_out", lambda was, hook, out=out: out)]
        )
        expected = 1.0 - exact_match(logits, split.targets).double().mean().item()
        assert drop == pytest.approx(expected)


def test_both_beside_the_gradient_norm():
    model = random_model(size=0.7)
    observation = Observation(model, SEQUENCES)
    measured = ComponentImportance(split="length_5")(model, SEQUENCES).merge(
        GradientNorm(split="length_5", n_batches=2, batch_size=8)(model, SEQUENCES)
    )
    found = compared_with_released(observation, measured, length=5)
    drops = measured["exact_match_drop"].sel(ablation_kind="mean")
    heads = [name for name in drops["component"].to_numpy() if ".H" in name]
    assert found["mean_drop_at_head"] == pytest.approx(float(drops.sel(component=heads).mean()))
    assert {"rho_W_V_at_head", "rho_W_V+W_O_after_w_o"} <= set(found)
    known = np.array([value for value in found.values() if np.isfinite(value)])
    assert (np.abs(known) <= 1).all()
