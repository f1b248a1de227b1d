"""Which length is asked, what is said where none qualifies, and which tasks fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from copying import SEQUENCES, CopyTask, random_model, wired_model

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.attribution.gradient_measures import GradientNorm
from interp_shortcuts.measures.attribution.importance import ComponentImportance
from interp_shortcuts.measures.attribution.ood_examples import (
    NO_SPLIT,
    fresh_batches,
    fresh_examples,
    ood_split,
)
from interp_shortcuts.measures.behaviour import Behaviour
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.measures.registry import REGISTRY, default_measures
from interp_shortcuts.models.build import weights_of
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.tasks.task import ShortcutTask
from interp_shortcuts.timelines.tracker import CircuitTracker

IMPORTANCE = ComponentImportance(examples=8, reference_examples=8, ablations="zero")


class PartlyRight(CopyTask):
    """Half of the held-out examples ask for a token that is never due."""

    def split(self, name):
        found = super().split(name)
        if name == "length_2":
            found.targets[::2, 1] = 0
        return found


def carrier():
    return wired_model([(2.0, 2.0)])


def test_the_model_itself_decides_on_the_length():
    assert ood_split(Observation(carrier(), PartlyRight())).name == "length_2"
    found = IMPORTANCE(carrier(), PartlyRight())
    assert found.exact_match_drop.attrs["split"] == "length_2"
    assert not np.isnan(found.exact_match_drop).any()


def test_a_model_without_a_length_is_excluded_with_the_reason():
    """Exact match 1 at the only held-out length: not in [0.2, 0.75]."""
    found = IMPORTANCE(carrier(), CopyTask())
    for name in ("exact_match_drop", "loss_rise_interval", "exact_match"):
        assert np.isnan(found[name]).all()
        reason = found[name].attrs["nan_means"]
        assert reason == (
            "no held-out length has an exact match in [0.2, 0.75], so the model is excluded "
            "(length_2: 1.00)"
        )
    assert int(found.n_examples) == 0
    assert found.sizes == IMPORTANCE(carrier(), PartlyRight()).sizes
    assert found.exact_match.attrs["split"] == NO_SPLIT


def three_checkpoints(task, last):
    model = carrier()
    states = [(0, weights_of(model))]
    with torch.no_grad():
        model.blocks[0].attn.W_V[0] *= 0.9
        states.append((5, weights_of(model)))
        if last == "wrong":
            model.unembed.b_U[1] = 99.0
        else:
            model.blocks[0].attn.W_V[0] *= 0.9
    states.append((9, weights_of(model)))
    return Trajectory.from_checkpoints(states, spec=ModelSpec.from_model(model), task=task)


def test_a_trajectory_is_asked_about_the_length_of_its_last_checkpoint():
    trajectory = three_checkpoints(PartlyRight(), "right")
    along = IMPORTANCE.over(trajectory, progress=False)
    tracked = CircuitTracker(trajectory, measures=IMPORTANCE, progress=False)
    assert [measure.split for measure in tracked.measures] == ["length_2"]
    named = ComponentImportance(
        split="length_2", examples=8, reference_examples=8, ablations="zero"
    ).over(trajectory, progress=False)
    xr.testing.assert_identical(along, named)
    data = tracked.track().data
    np.testing.assert_array_equal(data.exact_match_drop, along.exact_match_drop)
    assert not np.isnan(along.exact_match_drop).any()


def test_if_the_last_checkpoint_has_none_all_steps_are_excluded():
    trajectory = three_checkpoints(PartlyRight(), "wrong")
    assert ood_split(Observation(trajectory.model(0), PartlyRight())).name == "length_2"
    along = IMPORTANCE.over(trajectory, progress=False)
    assert along.sizes["step"] == 3
    assert np.isnan(along.exact_match_drop).all()
    assert "none qualified at the last checkpoint" in along.exact_match_drop.attrs["nan_means"]


def test_a_tracker_that_observes_asks_the_shortest_held_out_length():
    tracker = CircuitTracker(SEQUENCES, measures=IMPORTANCE, progress=False)
    assert tracker.measures[0].split == "length_5"
    tracker.observe(0, random_model())
    assert tracker.timeline.data.exact_match_drop.attrs["split"] == "length_5"


def test_default_measures_depend_on_the_task():
    shortcut = ShortcutTask.named("max_parity", n_train=20, n_validation=8, n_adversarial=8)
    answers, targets = default_measures(shortcut), default_measures(SEQUENCES)
    assert answers == default_measures()
    assert {measure.name for measure in targets} >= {
        *("gradient_norm", "weight_gradient", "activation_gradient"),
        *("integrated_gradients", "component_importance"),
    }
    taken = {measure.name for measure in (*answers, *targets)}
    assert taken.isdisjoint({"joint_importance", "shapley", "component_interaction"})
    fitting = {
        name
        for name, kind in REGISTRY.items()
        if kind.by_default and (kind.fits(shortcut) or kind.fits(SEQUENCES))
    }
    assert taken == fitting
    tracker = CircuitTracker(SEQUENCES, progress=False)
    assert [type(measure) for measure in tracker.measures] == [type(one) for one in targets]


def test_a_measure_on_the_wrong_kind_of_task():
    shortcut = ShortcutTask.named("max_parity", n_train=20, n_validation=8, n_adversarial=8)
    message = (
        r"`GradientNorm` asks a task whose answer is a sequence of tokens \(a TargetTask\); "
        r"'max_parity' is a ShortcutTask\. `default_measures\(task\)` gives measures that fit"
    )
    model = random_model()
    with pytest.raises(MeasureError, match=message):
        GradientNorm()(model, shortcut)
    with pytest.raises(MeasureError, match=message):
        CircuitTracker(shortcut, measures=[Behaviour(), GradientNorm()])
    message = r"`Behaviour` asks a task whose answer is one class.*'sequence_reversal' is a Seq"
    with pytest.raises(MeasureError, match=message):
        Behaviour()(model, SEQUENCES)
    with pytest.raises(MeasureError, match=message):
        CircuitTracker(SEQUENCES, measures=Behaviour())


def test_an_unknown_split_is_refused():
    with pytest.raises(MeasureError, match=r"`split` must be 'length_3', .*'length_6', or None"):
        ComponentImportance(split="length_9")(random_model(), SEQUENCES)


def test_samples_are_fresh_named_and_the_same_at_every_checkpoint():
    one, other = (Observation(random_model(seed=seed), SEQUENCES) for seed in (0, 1))
    sample = fresh_examples(one, "length_5", "examples", n=9, seed=0)
    assert sample == fresh_examples(other, "length_5", "examples", n=9, seed=0)
    assert sample is fresh_examples(one, "length_5", "examples", n=9, seed=0)
    others = [
        fresh_examples(one, "length_5", "reference", n=9, seed=0),
        fresh_examples(one, "length_5", "examples", n=9, seed=1),
        *fresh_batches(one, "length_5", n_batches=2, batch_size=9, seed=0),
    ]
    assert len({split.sha for split in (sample, *others)}) == 5
