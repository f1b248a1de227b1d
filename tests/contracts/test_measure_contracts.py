"""What every registered measure promises, whichever it is."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import measure_cases
import numpy as np
import pytest
import torch
import xarray as xr
from measure_cases import ANSWERS, CASES, PAIRS, PAIRS_TRANSFORMER, SEQUENCES, case_of

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.base import Measure, Observation, WeightsMeasure
from interp_shortcuts.measures.registry import REGISTRY, default_measures
from interp_shortcuts.tasks.target_task import TargetTask

SMALL = {
    "split": "length_4",
    "examples": 6,
    "reference_examples": 5,
    "n_batches": 2,
    "batch_size": 4,
    "steps": 2,
    "max_permutations": 4,
    "max_k": 2,
    "n_random": 2,
}
"""Sizes at which a measure of sequences is fast; which of them it has differs."""
DIMS = {
    "loss": ("split",),
    "loss_interval": ("split", "bound"),
    "accuracy": ("split",),
    "accuracy_interval": ("split", "bound"),
    "shortcut_rate": ("split",),
    "shortcut_rate_interval": ("split", "bound"),
    "n_examples": ("split",),
    "qk_spearman": ("layer", "head", "feature"),
    "qk_score": ("layer", "head", "integer"),
    "qk_spearman_activation": ("layer", "head", "feature", "split"),
    "qk_spearman_activation_interval": ("layer", "head", "feature", "split", "bound"),
    "qk_spearman_activation_undefined": ("layer", "head", "feature", "split"),
    "attention": ("layer", "head", "position", "split"),
    "attention_to_max": ("layer", "head", "split"),
    "attention_to_max_interval": ("layer", "head", "split", "bound"),
    "attention_entropy": ("layer", "head", "split"),
    "attention_entropy_interval": ("layer", "head", "split", "bound"),
    "attention_example": ("layer", "head", "example", "position"),
    "example_tokens": ("example", "position"),
    "example_label": ("example",),
    "example_shortcut": ("example",),
    "ov_spearman": ("layer", "head", "feature"),
    "ov_spearman_ceiling": ("layer", "head", "feature"),
    "ov_spearman_relative": ("layer", "head", "feature"),
    "ov_logit": ("layer", "head", "integer", "class"),
    "ov_class_fraction": ("layer", "head", "feature"),
    "ov_class_fraction_chance": ("feature",),
    **{
        f"{kind}_{outcome}{interval}": ("component", *ways, "split", *bound)
        for kind, ways in (
            ("ablation", ("ablation",)),
            ("qk_ablation", ("qk_ablation",)),
            ("ov_ablation", ()),
        )
        for outcome in ("accuracy_drop", "loss_increase", "logit_difference_drop")
        for interval, bound in (("", ()), ("_interval", ("bound",)))
    },
    **{f"{kind}_n": ("split",) for kind in ("ablation", "qk_ablation", "ov_ablation")},
    **{
        f"{name}{suffix}": (*dims, *bound)
        for fraction in ("rule_transfer", "shortcut_transfer", "disruption")
        for name, dims in (
            (fraction, ("component", "direction")),
            (f"residual_{fraction}", ("site", "position", "direction")),
        )
        for suffix, bound in (("", ()), ("_interval", ("bound",)), ("_n", ()))
    },
    **{
        f"{pairing}_recovered{suffix}": ("component", "direction", *bound)
        for pairing in ("rule", "shortcut")
        for suffix, bound in (("", ()), ("_interval", ("bound",)), ("_n", ()), ("_left_out", ()))
    },
    "gradient_norm": ("part", "group"),
    "gradient_cosine": ("part",),
    "gradient_amplification": ("part",),
    "gradient_amplification_floor": (),
    "gradient_excess": ("part",),
    "gradient_share": ("part", "group"),
    "gradient_n": ("group",),
    "gradient_example_norm": ("group",),
    "gradient_example_norm_interval": ("group", "bound"),
    "gradient_example_norm_n": ("group",),
    "group_loss": ("group",),
    "group_loss_interval": ("group", "bound"),
    "group_loss_n": ("group",),
    "group_gradient_share": ("group",),
}
TARGET_DIMS = {
    **{
        f"{name}{interval}": (*dims, *bound)
        for name, dims in (
            ("gradient_norm", ("reading", "component")),
            ("weight_gradient_signed", ("component",)),
            ("activation_gradient_signed", ("component",)),
            ("integrated_gradients_signed", ("component",)),
            ("exact_match_drop", ("ablation_kind", "component")),
            ("loss_rise", ("ablation_kind", "component")),
            ("exact_match", ()),
            ("token_loss", ()),
            ("joint_drop", ("component_set",)),
            ("sum_of_drops", ("component_set",)),
            ("interaction", ("component", "component_b")),
        )
        for interval, bound in (("", ()), ("_interval", ("bound",)))
    },
    **dict.fromkeys(
        (
            *("weight_gradient", "activation_gradient", "integrated_gradients"),
            *("integrated_gradients_gap", "shapley", "shapley_se"),
        ),
        ("component",),
    ),
    "super_additivity": ("component_set",),
    **dict.fromkeys(
        (
            *("gradient_norm_n", "weight_gradient_n", "activation_gradient_n", "n_examples"),
            *("integrated_gradients_n", "joint_n", "shapley_n", "shapley_permutations"),
            "interaction_n",
        ),
        (),
    ),
}
PAIRS_DIMS = {
    **{
        f"{name}{interval}": (*dims, *bound)
        for name, dims in (
            ("group_accuracy", ("group",)),
            ("group_loss", ("group",)),
            ("filtered_accuracy", ("network", "acting", "group")),
            ("filtered_loss", ("network", "acting", "group")),
            ("partition_accuracy", ("score", "keep", "share", "group")),
        )
        for interval, bound in (("", ()), ("_interval", ("bound",)))
    },
    **dict.fromkeys(("group_n", "filtered_n", "partition_n"), ("group",)),
    **dict.fromkeys(("partition_random_low", "partition_random_high"), ("keep", "share", "group")),
    "power": ("vector", "neuron", "frequency"),
    **dict.fromkeys(
        ("dominant_frequency", "concentration", "joint_concentration", "phase"),
        ("vector", "neuron"),
    ),
    **dict.fromkeys(("joint_frequency", "phase_error", "strength"), ("neuron",)),
    "ipr": ("convention", "neuron"),
}
PAIRS_TRANSFORMER_DIMS = {
    "unembedding_accuracy": ("keep", "k", "group"),
    "unembedding_accuracy_interval": ("keep", "k", "group", "bound"),
    "unembedding_n": ("group",),
}
OTHERS_DIMS = ("role_pruning",)  # pinned by a test of its own


def sized(kind):
    """The measure as it comes; of sequences, at sizes at which it is fast."""
    has = {item.name for item in fields(kind)}
    small = {name: size for name, size in SMALL.items() if name in has}
    return kind(**small) if kind.asks is TargetTask else kind()


MEASURES = tuple(sized(kind) for kind in REGISTRY.values())
registered = pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)


def hooks_of(model):
    return {
        name: (dict(part._forward_hooks), dict(part._backward_hooks), list(point))
        for name, part in model.named_modules()
        for point in [getattr(part, "fwd_hooks", [])]
    }


def state_of(model):
    return {
        "weights": {
            name: (id(w), w.clone(), w.requires_grad) for name, w in model.named_parameters()
        },
        "gradients": {name: w.grad for name, w in model.named_parameters()},
        "modes": {name: part.training for name, part in model.named_modules()},
        "hooks": hooks_of(model),
        "random": (np.random.get_state(), torch.get_rng_state()),  # noqa: NPY002
    }


def assert_untouched(before, model):
    after = state_of(model)
    for name, (identity, weight, requires_grad) in before["weights"].items():
        assert after["weights"][name][0] == identity
        assert torch.equal(after["weights"][name][1], weight)
        assert after["weights"][name][2] == requires_grad
    assert after["gradients"] == before["gradients"]
    assert after["modes"] == before["modes"]
    assert after["hooks"] == before["hooks"]
    for now, then in zip(after["random"][0], before["random"][0], strict=True):
        assert np.array_equal(now, then)
    assert torch.equal(after["random"][1], before["random"][1])


def test_registry_names_are_the_classes_names():
    assert list(REGISTRY) == [kind.name for kind in REGISTRY.values()]
    taken = {type(measure) for case in CASES for measure in default_measures(case.task, case.spec)}
    assert taken == {kind for kind in REGISTRY.values() if kind.by_default}
    assert default_measures() == default_measures(ANSWERS.task)
    assert all(issubclass(kind, Measure) for kind in REGISTRY.values())


@pytest.mark.parametrize(
    ("case", "dims"),
    [
        (ANSWERS, DIMS),
        (SEQUENCES, TARGET_DIMS),
        (PAIRS, PAIRS_DIMS),
        (PAIRS_TRANSFORMER, PAIRS_TRANSFORMER_DIMS),
    ],
    ids=["one class", "sequences", "pairs", "pairs, transformer"],
)
def test_together_they_give_the_documented_variables(case, dims):
    found = {
        name: array.dims
        for measure in MEASURES
        if case_of(measure) is case and measure.name not in OTHERS_DIMS
        for name, array in measure(case.model(), case.task).data_vars.items()
    }
    assert found == dims


@registered
def test_the_other_kind_of_task_is_refused(measure):
    other = ANSWERS if case_of(measure) is SEQUENCES else SEQUENCES
    with pytest.raises(MeasureError, match=f"`{type(measure).__name__}` asks "):
        measure(other.model(), other.task)


@pytest.mark.parametrize(
    "measure",
    [each for each in MEASURES if case_of(each) in (PAIRS, PAIRS_TRANSFORMER)],
    ids=lambda measure: measure.name,
)
def test_another_kind_of_model_is_refused_unless_it_reads_any(measure):
    other = PAIRS_TRANSFORMER if case_of(measure) is PAIRS else PAIRS
    if isinstance(other.spec, measure.of_model):
        assert set(measure(other.model(), other.task)) == set(measure(PAIRS.model(), PAIRS.task))
    else:
        with pytest.raises(MeasureError, match=f"`{type(measure).__name__}` reads a t"):
            measure(other.model(), other.task)


@registered
def test_variables_are_described(measure):
    found = measure(case_of(measure).model(), case_of(measure).task)
    assert "step" not in found.dims
    for name, array in found.data_vars.items():
        assert array.dtype in (np.float32, np.int64), name
        for attribute in ("long_name", "units", "definition", "range", "nan_means"):
            assert isinstance(array.attrs[attribute], str), (name, attribute)
            assert array.attrs[attribute], (name, attribute)
        assert array.attrs["measure"] == type(measure).__name__
        assert array.attrs["measure_key"] == measure.key
        for dim in array.dims:
            assert dim in found.coords, (name, dim)
        if array.attrs["nan_means"] == "never NaN":
            assert not np.isnan(array.values).any(), name
        low, high = {"[0, 1]": (0, 1), "[-1, 1]": (-1, 1)}.get(array.attrs["range"], (None, None))
        if low is not None:
            finite = array.values[np.isfinite(array.values)]
            assert ((low <= finite) & (finite <= high)).all(), name


@registered
def test_the_same_twice(measure):
    model = case_of(measure).model()
    xr.testing.assert_identical(
        measure(model, case_of(measure).task), measure(model, case_of(measure).task)
    )


@registered
def test_key_is_stable_and_tells_parameters_apart(measure):
    same = sized(type(measure))
    assert same == measure
    assert same.key == measure.key
    assert len({other.key for other in MEASURES}) == len(REGISTRY)

    class Later(type(measure)):
        version = type(measure).version + 1

    assert sized(Later).key != measure.key


@registered
@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_it_was(measure, training):
    case = case_of(measure)
    model = case.model()
    model.train(training)
    case.part(model).train(not training)
    model.get_parameter(case.parameter).requires_grad_(False)
    case.early_hook(model).add_hook(lambda value, hook: None)
    before = state_of(model)
    measure(model, case_of(measure).task)
    assert_untouched(before, model)


WITHOUT_TYPE_CHECKS = """
import random
from dataclasses import fields
from measure_cases import SEQUENCES, case_of
from interp_shortcuts.measures.registry import REGISTRY

small = SMALL
for kind in REGISTRY.values():
    case, sizes = case_of(kind), {}
    if case is SEQUENCES:
        sizes = {f.name: small[f.name] for f in fields(kind) if f.name in small}
    model, measure = case.model(), kind(**sizes)
    before = random.getstate()
    measure(model, case.task)
    assert random.getstate() == before, measure.name
"""


def test_pythons_random_state_is_left_as_it_was():
    # in a process of its own: the run-time type checks of the test suite draw from it
    script = WITHOUT_TYPE_CHECKS.replace("SMALL", repr(SMALL))
    code = [sys.executable, "-c", script]
    path = {**os.environ, "PYTHONPATH": str(Path(measure_cases.__file__).parent)}
    done = subprocess.run(code, capture_output=True, text=True, check=False, env=path)
    assert done.returncode == 0, done.stderr


@registered
def test_the_model_is_left_as_it_was_after_an_error(measure, monkeypatch):
    model = case_of(measure).model()
    observation = Observation(model, case_of(measure).task)
    before = state_of(model)
    with monkeypatch.context() as patch:
        patch.setattr(type(measure), "described", _fails)
        with pytest.raises(RuntimeError, match="on purpose"):
            measure.measure(observation)
    assert_untouched(before, model)

    def raises(value, hook):
        raise RuntimeError("on purpose")

    if measure.reads == "activations":
        plain = measure(model, case_of(measure).task)
        case_of(measure).late_hook(model).add_hook(raises)
        before = state_of(model)
        try:
            found = measure(model, case_of(measure).task)
        except RuntimeError as error:
            assert str(error) == "on purpose"  # noqa: PT017
        else:  # it runs without hooks: then altogether
            assert "do not act" in " ".join(type(measure).__doc__.split())
            xr.testing.assert_identical(found, plain)
        assert_untouched(before, model)


def _fails(*_args, **_named):
    raise RuntimeError("on purpose")


@registered
def test_over_a_trajectory_equals_one_at_a_time(measure):
    trajectory = case_of(measure).trajectory()
    along = measure.over(trajectory, progress=False)
    assert along.step.values.tolist() == [0, 10, 20, 30]
    for step, model in trajectory:
        alone = measure(model, case_of(measure).task)
        assert set(alone.data_vars) == set(along.data_vars)
        xr.testing.assert_identical(along.sel(step=step, drop=True), alone)
    for name, array in along.data_vars.items():
        if name in measure.constant:
            assert "step" not in array.dims
        else:
            assert array.dims[0] == "step", name


@registered
def test_a_compiled_model_gives_the_same(measure):
    model = case_of(measure).model()
    xr.testing.assert_identical(
        measure(torch.compile(model, backend="eager"), case_of(measure).task),
        measure(model, case_of(measure).task),
    )


@registered
def test_half_precision_weights_are_measured_in_full(measure):
    model = case_of(measure).model()
    for weight in model.parameters():
        weight.data = weight.data.bfloat16().float()
    full = measure(model, case_of(measure).task)
    half = case_of(measure).model()
    for weight in half.parameters():
        weight.data = weight.data.bfloat16()
    xr.testing.assert_identical(measure(half, case_of(measure).task), full)


@registered
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(measure, bad):
    case = case_of(measure)
    model = case.model()
    with torch.no_grad():
        model.get_parameter(case.parameter).view(-1)[0] = bad
    with pytest.raises(MeasureError, match=f"weights must be finite; `{case.parameter}`"):
        measure(model, case_of(measure).task)


@registered
def test_a_model_that_does_not_fit_the_task(measure):
    case = case_of(measure)
    for size, (of_task, by, verb) in case.misfits.items():
        due = getattr(case.task, of_task)
        message = rf"`{size}` \(={due + by}\) {verb} the task's `{of_task}` \(={due}\)"
        with pytest.raises(MeasureError, match=message):
            measure(case.model(**{size: due + by}), case.task)


@registered
def test_errors_along_a_trajectory_name_measure_and_step(measure, monkeypatch):
    trajectory = case_of(measure).trajectory()
    target = "of_weights" if isinstance(measure, WeightsMeasure) else "measure"
    original = getattr(type(measure), target)
    third = case_of(measure).model(seed=2)

    def sometimes(self, what, *rest):
        if target == "measure" and what.step == 20:
            raise ZeroDivisionError("on purpose")
        if target == "of_weights" and (what.embed[:, 0, 0] == third.W_E[0, 0].double()).any():
            raise ZeroDivisionError("on purpose")
        return original(self, what, *rest)

    monkeypatch.setattr(type(measure), target, sometimes)
    with pytest.raises(MeasureError, match=f"^{measure.name} at step 20: ZeroDiv.*on purpose") as e:
        measure.over(trajectory, progress=False)
    assert isinstance(e.value.__cause__, ZeroDivisionError)
