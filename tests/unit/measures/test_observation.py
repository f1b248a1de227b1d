"""One forward pass a split, shared; the parts of train come from the pass over train."""

from __future__ import annotations

import pytest
import torch

from interp_shortcuts.errors import ConfigError, TaskError
from interp_shortcuts.measures import observation as module
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.measures.registry import default_measures
from interp_shortcuts.models.build import build
from interp_shortcuts.models.forward import read_attention, read_logits
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.tasks.task import ShortcutTask

TASK = ShortcutTask.named("first_parity", n_train=40, n_validation=20, n_adversarial=10)
SPEC = ModelSpec(d_model=8, d_mlp=8, d_vocab=11, d_vocab_out=2, n_ctx=5)


def test_each_split_is_passed_once(monkeypatch):
    asked = []
    original = module.read_clean

    def counted(clean, tokens):
        asked.append(len(tokens))
        return original(clean, tokens)

    monkeypatch.setattr(module, "read_clean", counted)
    observation = Observation(build(SPEC, seed=0), TASK)
    for measure in default_measures():
        measure.measure(observation)
    assert sorted(asked) == [10, 20, 40]


def test_parts_of_train_equal_passes_of_their_own():
    model = build(SPEC, seed=0)
    observation = Observation(model, TASK)
    for name in ("consistent", "anti"):
        alone = read_logits(model, TASK.split(name).tokens, position=TASK.read_position)
        assert observation.logits(name).shape == alone.shape
        torch.testing.assert_close(observation.logits(name), alone)


@pytest.mark.parametrize("attention", ["causal", "bidirectional"])
def test_readings_are_those_of_the_model_s_own_pass(attention):
    model = build(SPEC.model_copy(update={"attention": attention}), seed=0)
    observation, tokens = Observation(model, TASK), TASK.split("train").tokens
    expected = read_attention(model, tokens, position=TASK.read_position)
    for name in ("logits", "attention", "scores"):
        found = getattr(observation, name)("train")
        torch.testing.assert_close(found, getattr(expected, name), atol=1e-6, rtol=0)


def test_hooks_that_are_attached_act_in_readings():
    model = build(SPEC, seed=0)
    plain = Observation(model, TASK).logits("train")
    model.hook_dict["blocks.0.hook_mlp_out"].add_hook(lambda tensor, hook: tensor + 1)
    hooked = Observation(model, TASK).logits("train")
    assert (hooked - plain).abs().max() > 1e-3
    expected = read_logits(model, TASK.split("train").tokens, position=TASK.read_position)
    torch.testing.assert_close(hooked, expected)


def test_exact_logits_are_those_of_the_model_in_float64():
    model, tokens = build(SPEC, seed=0), TASK.split("validation").tokens
    found = Observation(model, TASK).exact_logits(tokens)
    assert found.dtype == torch.float64
    exact = read_logits(model.to(torch.float64, print_details=False), tokens)
    torch.testing.assert_close(found, exact, atol=1e-13, rtol=0)


def test_step_is_named_in_errors_and_splits_are_listed():
    observation = Observation(build(SPEC, seed=0), TASK, 70)
    assert observation.step == 70
    with pytest.raises(TaskError, match="'validation'"):
        observation.logits("test")


def test_not_a_transformer():
    with pytest.raises(ConfigError, match="HookedTransformer"):
        Observation(torch.nn.Linear(2, 2), TASK)
