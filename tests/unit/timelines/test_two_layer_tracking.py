"""Tracking two-layer networks on pairs: all ways in, and measures of another kind of model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pytest
import torch
import xarray as xr

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.base import Measure, axis_labels
from interp_shortcuts.measures.behaviour import Behaviour
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.measures.qk import QKSpearman
from interp_shortcuts.measures.registry import REGISTRY, default_measures
from interp_shortcuts.models.any_model import build_any
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.two_layer import (
    build_two_layer,
    initial_two_layer_weights,
    load_two_layer_weights,
    read_pair_logits,
)
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.tasks.noisy_task import NOISE_GROUPS, NoisyTask
from interp_shortcuts.tasks.task import ShortcutTask
from interp_shortcuts.timelines.tracker import CircuitTracker

P = 7
SPEC = TwoLayerSpec(n_tokens=P, n_classes=P, width=5)
ON_TOKENS = ModelSpec(n_layers=1, d_model=8, d_mlp=8, d_vocab=P, d_vocab_out=P, n_ctx=2)
TASK = ModularArithmetic(modulus=P, noise=0.25)
STEPS = (0, 10, 20)


@dataclass(frozen=True)
class RightAnswers(Measure):
    """Fraction of each group that is right, whichever the model."""

    name: ClassVar[str] = "right_answers"
    reads: ClassVar[Literal["weights", "activations"]] = "activations"
    asks: ClassVar[type] = NoisyTask
    of_model: ClassVar[type] = object

    def measure(self, observation: Observation) -> xr.Dataset:
        task = observation.noisy
        right = [
            task.correct(observation.answers(name), task.split(name).labels).double().mean()
            for name in NOISE_GROUPS
        ]
        values = self.described(
            ["group"],
            np.array(right),
            long_name="right answers",
            units="1",
            definition="the fraction that is right",
            range="[0, 1]",
        )
        return xr.Dataset({"right": values}, coords=axis_labels(group=NOISE_GROUPS))


@dataclass(frozen=True)
class WeightOfNeurons(Measure):
    """The largest absolute embedding of each neuron."""

    name: ClassVar[str] = "weight_of_neurons"
    reads: ClassVar[Literal["weights", "activations"]] = "weights"
    asks: ClassVar[type] = Task
    of_model: ClassVar[type] = TwoLayerSpec

    def measure(self, observation: Observation) -> xr.Dataset:
        largest = observation.two_layer.U.detach().abs().amax(0).numpy()
        values = self.described(
            ["neuron"],
            largest,
            long_name="largest weight",
            units="1",
            definition="max |U|",
            range="[0, inf)",
        )
        return xr.Dataset({"largest": values}, coords=axis_labels(neuron=len(largest)))


MEASURES = [RightAnswers(), WeightOfNeurons()]


def weights(step: int) -> dict[str, torch.Tensor]:
    return initial_two_layer_weights(SPEC, step)


def trajectory() -> Trajectory:
    return Trajectory.from_checkpoints(
        [(step, weights(step)) for step in STEPS], spec=SPEC, task=TASK
    )


def observed(measures: list[Measure] | None = None) -> CircuitTracker:
    tracker, net = CircuitTracker(TASK, measures=measures, progress=False), build_two_layer(SPEC)
    for step in STEPS:
        load_two_layer_weights(net, weights(step))
        tracker.observe(step, net)
    return tracker


def test_observed_numbers_are_those_of_the_network():
    data = observed(MEASURES).timeline.data
    net = build_two_layer(SPEC)
    for step in STEPS:
        load_two_layer_weights(net, weights(step))
        for name in NOISE_GROUPS:
            split = TASK.split(name)
            right = (read_pair_logits(net, split.tokens).argmax(-1) == split.labels).double().mean()
            found = data["right"].sel(step=step, group=name).item()
            assert found == pytest.approx(right.item(), abs=1e-6)
    assert data["largest"].sel(step=10).values == pytest.approx(weights(10)["U"].abs().amax(0))
    assert data.attrs["task_name"] == "modular_add"
    assert '"width":5' in data.attrs["spec"]


def test_a_trajectory_gives_what_is_observed():
    seen = observed(MEASURES).timeline.data
    tracked = CircuitTracker(trajectory(), measures=MEASURES, progress=False).track().data
    assert seen.attrs["run_id"] == tracked.attrs["run_id"]
    xr.testing.assert_identical(seen.drop_attrs(), tracked.drop_attrs())


def test_a_measure_along_a_trajectory_gives_what_is_tracked():
    data = CircuitTracker(trajectory(), measures=MEASURES, progress=False).track().data
    along = RightAnswers().over(trajectory(), progress=False)
    np.testing.assert_array_equal(along["right"], data["right"])


def test_the_parts_of_train_are_rows_of_one_pass():
    observation = Observation(build_two_layer(SPEC, seed=1), TASK)
    train = observation.answers("train")
    noisy = TASK.split("train").noisy
    assert torch.equal(observation.answers("noisy"), train[noisy])
    assert torch.equal(observation.answers("noisy_true"), train[noisy])
    assert torch.equal(observation.answers("clean"), train[~noisy])
    assert observation.answers("test").shape == (TASK.split("test").n, P)


def test_hooks_and_a_swapped_activation_act_in_an_observation():
    net = build_two_layer(SPEC, seed=1)
    plain = Observation(net, TASK).answers("test")
    handle = net.hook_post.register_forward_hook(
        lambda _module, _inputs, out: torch.zeros_like(out)
    )
    silenced = Observation(net, TASK).answers("test")
    handle.remove()
    assert torch.equal(silenced, net.mu.detach().expand_as(silenced))
    assert not torch.equal(plain, silenced)
    with net.acting_with("quadratic"):
        assert not torch.equal(Observation(net, TASK).answers("test"), plain)
    assert torch.equal(Observation(net, TASK).answers("test"), plain)


def test_a_transformer_on_pairs_is_read_at_its_last_position():
    model = build_any(ON_TOKENS, seed=1)
    tokens = TASK.split("test").tokens
    expected = model(tokens)[:, -1].detach()
    assert torch.allclose(Observation(model, TASK).answers("test"), expected, atol=1e-6)
    found = RightAnswers()(model, TASK)
    right = (expected.argmax(-1) == TASK.split("test").labels).double().mean().item()
    assert found["right"].sel(group="test").item() == pytest.approx(right, abs=1e-6)


def test_a_measure_refuses_a_model_of_another_kind():
    transformer = build_any(ON_TOKENS, seed=1)
    message = r"`WeightOfNeurons` reads a two-layer network.*is a ModelSpec"
    with pytest.raises(MeasureError, match=message):
        WeightOfNeurons()(transformer, TASK)
    with pytest.raises(MeasureError, match=message):
        CircuitTracker(TASK, measures=WeightOfNeurons(), spec=ON_TOKENS)
    with pytest.raises(MeasureError, match=message):
        CircuitTracker(TASK, measures=WeightOfNeurons()).observe(0, transformer)
    with pytest.raises(MeasureError, match=r"the measure needs a transformer .* a TwoLayerNet"):
        _ = Observation(build_two_layer(SPEC), TASK).weights
    with pytest.raises(MeasureError, match=r"the measure needs a two-layer network .* a Hooked"):
        _ = Observation(transformer, TASK).two_layer


def test_a_measure_of_transformers_refuses_a_two_layer_network():
    @dataclass(frozen=True)
    class OfTransformers(RightAnswers):
        name: ClassVar[str] = "of_transformers"
        of_model: ClassVar[type] = ModelSpec

    message = r"`OfTransformers` reads a transformer.*is a TwoLayerSpec.*`default_measures\(task"
    with pytest.raises(MeasureError, match=message):
        CircuitTracker(trajectory(), measures=OfTransformers())
    with pytest.raises(MeasureError, match=message):
        OfTransformers().over(trajectory())
    with pytest.raises(MeasureError, match=r"`Behaviour` asks a task .*\(an AnswerTask\)"):
        CircuitTracker(trajectory(), measures=Behaviour())
    with pytest.raises(MeasureError, match=r"`QKSpearman` asks a task .*\(an AnswerTask\)"):
        CircuitTracker(trajectory(), measures=QKSpearman())


def test_a_measure_of_wrong_labels_refuses_a_task_without():
    task = ShortcutTask.named("max_parity", n_train=8, n_validation=4, n_adversarial=4)
    with pytest.raises(MeasureError, match=r"`RightAnswers` asks a task with wrong training lab"):
        CircuitTracker(task, measures=RightAnswers())


def test_default_measures_fit_the_task_and_the_model(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(REGISTRY, RightAnswers.name, RightAnswers)
    monkeypatch.setitem(REGISTRY, WeightOfNeurons.name, WeightOfNeurons)
    for spec, names in ((None, True), (SPEC, True), (ON_TOKENS, False)):
        found = {measure.name for measure in default_measures(TASK, spec)}
        assert "right_answers" in found
        assert ("weight_of_neurons" in found) == names
    assert {measure.name for measure in default_measures()}.isdisjoint(
        {"right_answers", "weight_of_neurons"}
    )


def test_default_measures_follow_the_first_model_that_is_observed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(REGISTRY, WeightOfNeurons.name, WeightOfNeurons)
    tracker = CircuitTracker(TASK, progress=False)
    assert "weight_of_neurons" in {measure.name for measure in tracker.measures}
    monkeypatch.setitem(REGISTRY, RightAnswers.name, RightAnswers)
    tracker.observe(0, build_any(ON_TOKENS, seed=1))
    assert "weight_of_neurons" not in {measure.name for measure in tracker.measures}
    assert "right" in tracker.timeline.data


def test_a_timeline_of_pairs_is_kept_and_read_again(tmp_path: Path):
    timeline = CircuitTracker(trajectory(), measures=MEASURES, progress=False).track()
    timeline.save(tmp_path / "timeline.nc")
    again = type(timeline).load(tmp_path / "timeline.nc")
    xr.testing.assert_identical(again.data, timeline.data)
    assert "modular_add" in repr(timeline)


def test_observed_networks_must_have_one_spec():
    tracker = CircuitTracker(TASK, measures=MEASURES, progress=False)
    tracker.observe(0, build_two_layer(SPEC, seed=1))
    wider = SPEC.model_copy(update={"width": 6})
    with pytest.raises(MeasureError, match=r"The model at step 1 must have the spec .*width=5"):
        tracker.observe(1, build_two_layer(wider, seed=1))
    with pytest.raises(MeasureError, match=r"`n_tokens` \(=9\) must equal the task's"):
        tracker.observe(1, build_two_layer(TwoLayerSpec(n_tokens=9, n_classes=7), seed=1))
