"""Completeness, the exact answer on a linear path, and the number of nodes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from copying import SEQUENCES, CopyTask, random_model, wired_model

from interp_shortcuts.interventions.ablate import Ablate
from interp_shortcuts.measures.attribution.ablated_scores import ablated_scores
from interp_shortcuts.measures.attribution.gradient_measures import ActivationGradient
from interp_shortcuts.measures.attribution.integrated_gradients import (
    IntegratedGradients,
    integrate_gradients,
)
from interp_shortcuts.measures.attribution.ood_examples import fresh_examples
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.component_forward import StagedForward
from interp_shortcuts.models.hooked_forward import HookedForward
from interp_shortcuts.models.staged import StagedModel

SIZES = {"split": "length_5", "examples": 13, "reference_examples": 17}


def test_completeness_and_its_gap():
    model = random_model(size=1.0)
    observation = Observation(model, SEQUENCES)
    found = IntegratedGradients(**SIZES, steps=6).measure(observation)
    assert float(found.integrated_gradients_gap.max()) < 1e-5
    # what it should be: the rise of the loss under mean ablation of each component
    sample = fresh_examples(observation, "length_5", "examples", n=13, seed=0)
    reference = fresh_examples(observation, "length_5", "reference", n=17, seed=0)
    names = found.component.values.tolist()
    runs = [Ablate(name, kind="mean", reference=reference) for name in names]
    rises = ablated_scores(model, sample, [(), *runs]).rises().mean(1)
    np.testing.assert_allclose(found.integrated_gradients_signed, rises, atol=1e-5)
    assert abs(rises).max() > 0.01
    np.testing.assert_allclose(found.integrated_gradients, abs(rises), atol=1e-5)
    coarse = IntegratedGradients(**SIZES, steps=1).measure(observation)
    assert float(coarse.integrated_gradients_gap.max()) > 1e-3


def test_for_a_small_step_it_is_the_gradient():
    """Where the mean is nearly the activation, one gradient says it all."""
    model = random_model(dtype=torch.float64)
    forward = StagedForward(StagedModel.of(model))
    split = SEQUENCES.split("length_3")
    seen = {}
    for layer, stage in enumerate(forward.clean(split.tokens)):
        seen["z", layer], seen["mlp_out", layer] = stage.z, stage.mlp_out

    def loss(logits, targets):
        return logits.sum((1, 2)).sin()

    means = {place: value + 1e-6 for place, value in seen.items()}
    batch = (split.tokens, split.targets)
    found = integrate_gradients(forward, batch, loss, means, steps=2)
    np.testing.assert_allclose(found.towards_mean, found.rise, rtol=1e-4, atol=1e-12)
    by_hooks = integrate_gradients(HookedForward(model), batch, loss, means, steps=2)
    np.testing.assert_allclose(found.towards_mean, by_hooks.towards_mean, rtol=1e-6, atol=1e-13)


def test_it_sees_the_whole_path_where_the_gradient_at_its_end_is_flat():
    """A saturated head: hardly any gradient where it is, and all of the loss without it."""
    model, task = wired_model([(4.0, 5.0)]), CopyTask()
    sizes = {"split": "length_2", "reference_examples": 40}
    flat = ActivationGradient(**sizes, n_batches=2)(model, task).activation_gradient
    whole = IntegratedGradients(**sizes, steps=24)(model, task)
    assert float(flat.sel(component="L0.H0")) < 1e-4
    assert float(whole.integrated_gradients.sel(component="L0.H0")) > 0.8
    assert float(whole.integrated_gradients_gap.max()) < 1e-3
    assert float(whole.integrated_gradients.sel(component="L0.mlp")) == 0


def test_chunks_change_nothing():
    model = random_model()
    one, other = (IntegratedGradients(**SIZES, chunk=n)(model, SEQUENCES) for n in (4, 64))
    np.testing.assert_allclose(
        one.integrated_gradients_signed, other.integrated_gradients_signed, atol=1e-6
    )


def test_mean_activations_need_no_example_of_their_own():
    with pytest.raises(ValueError, match=r"`steps` \(=0\) must be at least 1"):
        IntegratedGradients(steps=0)
