"""Gradient norm, weight x gradient and attribution patching against slow references."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from copying import SEQUENCES, CopyTask, random_model, wired_model

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.attribution.gradient_measures import (
    ActivationGradient,
    GradientNorm,
    WeightGradient,
)
from interp_shortcuts.measures.attribution.gradient_reading import batch_gradients
from interp_shortcuts.measures.attribution.importance import ComponentImportance
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.component_forward import StagedForward, component_forward
from interp_shortcuts.models.hooked_forward import HookedForward
from interp_shortcuts.models.staged import StagedModel
from interp_shortcuts.streams import torch_stream
from interp_shortcuts.tasks.target_scores import token_loss

SIZES = {"split": "length_5", "n_batches": 3, "batch_size": 7, "reference_examples": 11}


def batches():
    stream = torch_stream(0, "attribution", "length_5", "batches")
    return [SEQUENCES.batch(7, stream, 5) for _ in range(3)]


def reference():
    stream = torch_stream(0, "attribution", "length_5", "reference")
    return SEQUENCES.batch(11, stream, 5)


def slices(model, layer, head):
    """A component's matrices in TransformerLens: (W_V, W_O) or (W_out, W_in)."""
    block = model.blocks[layer]
    if head is None:
        return [(block.mlp.W_out, ()), (block.mlp.W_in, ())]
    return [(block.attn.W_V, (head,)), (block.attn.W_O, (head,))]


PARTS = [(layer, head) for layer in (0, 1) for head in (0, 1, None)]
NAMES = ["L0.H0", "L0.H1", "L0.mlp", "L1.H0", "L1.H1", "L1.mlp"]


def test_norms_are_those_of_autograd_on_the_model_itself():
    model = random_model()
    found = GradientNorm(**SIZES)(model, SEQUENCES)
    assert found.component.values.tolist() == NAMES
    expected = {"W_V": [], "W_V+W_O": []}
    products = []
    for batch in batches():
        model.zero_grad()
        token_loss(model(batch.tokens), batch.targets).mean().backward()
        both, first, product = [], [], []
        for part in PARTS:
            pairs = [(w.grad[at].double(), w[at].double()) for w, at in slices(model, *part)]
            first.append(pairs[0][0].square().mean().sqrt().item())
            all_of = torch.cat([gradient.flatten() for gradient, _ in pairs])
            both.append(all_of.square().mean().sqrt().item())
            product.append(sum(float((g * w.detach()).sum()) for g, w in pairs))
        expected["W_V"].append(first)
        expected["W_V+W_O"].append(both)
        products.append(product)
    for reading, values in expected.items():
        mean = np.mean(values, axis=0)
        np.testing.assert_allclose(found.gradient_norm.sel(reading=reading), mean, rtol=1e-4)
        low = mean - 1.959964 * np.std(values, axis=0, ddof=1) / 3**0.5
        interval = found.gradient_norm_interval.sel(reading=reading, bound="low")
        np.testing.assert_allclose(interval, low, rtol=1e-3, atol=1e-7)
    assert int(found.gradient_norm_n) == 3
    weighted = WeightGradient(**SIZES)(model, SEQUENCES)
    np.testing.assert_allclose(
        weighted.weight_gradient_signed, np.mean(products, axis=0), rtol=1e-3, atol=1e-6
    )
    np.testing.assert_allclose(
        weighted.weight_gradient, abs(weighted.weight_gradient_signed), rtol=1e-6
    )


def test_attribution_patching_is_the_limit_of_small_steps_towards_the_mean():
    model = random_model(dtype=torch.float64)
    found = ActivationGradient(**SIZES)(model, SEQUENCES)
    _, cache = model.run_with_cache(reference().tokens)
    step = 1e-4

    def loss_at(batch, layer, head, t):
        name = f"blocks.{layer}.hook_mlp_out" if head is None else f"blocks.{layer}.attn.hook_z"
        mean = cache[name].mean(0)

        def towards(value, hook):
            moved = value + t * (mean - value)
            if head is None:
                return moved
            value = value.clone()
            value[:, :, head] = moved[:, :, head]
            return value

        with torch.no_grad():
            logits = model.run_with_hooks(batch.tokens, fwd_hooks=[(name, towards)])
        return token_loss(logits, batch.targets).mean().item()

    for name, part in zip(NAMES, PARTS, strict=True):
        slopes = [
            (loss_at(batch, *part, step) - loss_at(batch, *part, -step)) / (2 * step)
            for batch in batches()
        ]
        signed = float(found.activation_gradient_signed.sel(component=name))
        assert signed == pytest.approx(np.mean(slopes), abs=1e-5)
        assert float(found.activation_gradient.sel(component=name)) == abs(signed)


def test_measures_of_one_checkpoint_share_their_backward_passes(monkeypatch):
    model = random_model()
    observation = Observation(model, SEQUENCES)
    runs = []
    original = StagedForward.logits
    monkeypatch.setattr(
        StagedForward, "logits", lambda *a, **k: runs.append(1) or original(*a, **k)
    )
    for kind in (GradientNorm, WeightGradient, ActivationGradient):
        kind(**SIZES).measure(observation)
    assert len(runs) == 3  # batches
    GradientNorm(**SIZES | {"seed": 1}).measure(observation)
    assert len(runs) == 6


def test_the_forward_by_hooks_gives_the_same():
    model = random_model(dtype=torch.float64)
    means = {(site, layer): torch.zeros(()) for site in ("z", "mlp_out") for layer in (0, 1)}
    asked = [(batch.tokens, batch.targets) for batch in batches()[:2]]
    plain = batch_gradients(StagedForward(StagedModel.of(model)), asked, token_loss, means, first=6)
    hooked = batch_gradients(HookedForward(model), asked, token_loss, means)
    for mine, other in zip(plain, hooked, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)
    with component_forward(model) as forward:
        assert isinstance(forward, StagedForward)
    model.blocks[0].hook_resid_pre.add_hook(lambda value, hook: 2 * value)
    with component_forward(model) as forward:
        assert isinstance(forward, HookedForward)
        doubled = batch_gradients(forward, asked, token_loss, means)
    assert not np.allclose(doubled.norm, plain.norm)


def test_a_large_gradient_without_effect_and_a_small_one_with_all_of_it():
    """Head 0 carries the answer. Head 1 writes nothing, through a large W_O that its W_V feels."""
    model, task = wired_model([(2.0, 2.0), (0.0, 40.0)]), CopyTask()
    sizes = {"split": "length_2", "reference_examples": 20}
    norms = GradientNorm(**sizes, n_batches=2)(model, task).gradient_norm
    for reading in ("W_V", "W_V+W_O"):
        carrier, idle, _ = norms.sel(reading=reading).values
        assert idle > 5 * carrier > 0
    found = ComponentImportance(**sizes, examples=24)(model, task).exact_match_drop
    for kind in ("mean", "zero", "resample"):
        carrier, idle, mlp = found.sel(ablation_kind=kind).values
        assert (idle, mlp) == (0, 0)
        assert carrier == 1 if kind != "resample" else carrier > 0.4


@pytest.mark.parametrize("name", ["n_batches", "batch_size", "reference_examples"])
def test_fields_that_are_refused(name):
    with pytest.raises(MeasureError, match=rf"`{name}` \(=0\) must be at least 1"):
        GradientNorm(**{name: 0})


def test_no_batch():
    forward = StagedForward(StagedModel.of(random_model()))
    with pytest.raises(MeasureError, match="`batches` must hold at least one batch"):
        batch_gradients(forward, [], token_loss, {})
