"""One forward pass a split, shared; the parts of train come from the pass over train."""

from __future__ import annotations

import pytest
import torch

from interp_shortcuts.errors import ConfigError, TaskError
from interp_shortcuts.measures import observation as module
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.measures.registry import default_measures
from interp_shortcuts.models.build import build
from interp_shortcuts.models.forward import read_logits
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.tasks.task import ShortcutTask

TASK = ShortcutTask.named("first_parity", n_train=40, n_validation=20, n_adversarial=10)
SPEC = ModelSpec(d_model=8, d_mlp=8, d_vocab=11, d_vocab_out=2, n_ctx=5)


def test_each_split_is_passed_once(monkeypatch):
    asked = []
    original = module.read_attention

    def counted(model, tokens, **named):
        asked.append(len(tokens))
        return original(model, tokens, **named)

    monkeypatch.setattr(module, "read_attention", counted)
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


def test_step_is_named_in_errors_and_splits_are_listed():
    observation = Observation(build(SPEC, seed=0), TASK, 70)
    assert observation.step == 70
    with pytest.raises(TaskError, match="'validation'"):
        observation.logits("test")


def test_not_a_transformer():
    with pytest.raises(ConfigError, match="HookedTransformer"):
        Observation(torch.nn.Linear(2, 2), TASK)
