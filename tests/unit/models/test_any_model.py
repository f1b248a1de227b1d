"""What is asked of a model of any kind: built, filled, described and read alike."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from interp_shortcuts.errors import ConfigError, StorageError
from interp_shortcuts.models.any_model import (
    KINDS,
    answer_logits,
    build_any,
    check_weights_of,
    load_any,
    misfit,
    own_model,
    own_weights,
    spec_of,
    weights_of_any,
)
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.models.forward import read_logits
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.two_layer import read_pair_logits
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.tasks.modular import ModularArithmetic

P = 5
PAIRS = TwoLayerSpec(n_tokens=P, n_classes=P, width=3)
TIED = PAIRS.model_copy(update={"tied": True})
TOKENS = ModelSpec(n_layers=1, d_model=8, d_mlp=4, d_vocab=P, d_vocab_out=P, n_ctx=2)
SPECS: list[AnySpec] = [PAIRS, TIED, TOKENS]
TASK = ModularArithmetic(modulus=P)
INPUTS = TASK.split("train").inputs


class Compiled(nn.Module):
    """As `torch.compile` wraps a model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._orig_mod = model


def test_every_kind_has_a_spec_and_a_model_of_its_own():
    assert len({kind.spec for kind in KINDS}) == len({kind.net for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_weights_come_out_as_they_went_in(spec: AnySpec):
    model = build_any(spec, seed=1)
    assert spec_of(model) == spec
    weights = weights_of_any(model)
    check_weights_of(weights, spec)
    other = build_any(spec)
    load_any(other, weights)
    again = weights_of_any(other)
    assert weights.keys() == again.keys()
    assert all(torch.equal(weights[name], again[name]) for name in weights)
    state = own_weights({f"_orig_mod.{k}": v for k, v in model.state_dict().items()}, spec)
    assert state.keys() == weights.keys()


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_compiled_model_is_its_inner_one(spec: AnySpec):
    model = build_any(spec, seed=1)
    outer = Compiled(Compiled(model))
    assert own_model(outer) is model
    assert spec_of(outer) == spec
    assert torch.equal(answer_logits(outer, INPUTS), answer_logits(model, INPUTS))


def test_answers_are_what_each_kind_reads():
    pairs, tokens = build_any(PAIRS, seed=1), build_any(TOKENS, seed=1)
    assert torch.equal(answer_logits(pairs, INPUTS), read_pair_logits(pairs, INPUTS))
    assert torch.equal(answer_logits(tokens, INPUTS), read_logits(tokens, INPUTS, position=-1))


@pytest.mark.parametrize("spec", [PAIRS, TOKENS], ids=str)
def test_answers_are_not_rounded_by_a_surrounding_autocast(spec: AnySpec):
    model = build_any(spec, seed=1)
    plain = answer_logits(model, INPUTS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(answer_logits(model, INPUTS), plain)


@pytest.mark.parametrize("spec", [PAIRS, TOKENS], ids=str)
def test_half_precision_weights_are_read_in_float32(spec: AnySpec):
    model = build_any(spec, seed=1).to(torch.bfloat16)
    assert answer_logits(model, INPUTS).dtype == torch.float32
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}


def test_weights_of_another_kind_are_refused():
    weights = weights_of_any(build_any(PAIRS, seed=1))
    with pytest.raises(StorageError, match="which the model does not have"):
        check_weights_of(weights, TOKENS)
    with pytest.raises(StorageError, match="which the model does not have"):
        load_any(build_any(TOKENS), weights)


def test_a_model_of_no_kind_is_refused():
    with pytest.raises(ConfigError, match=r"`model` must be a HookedTransformer.* or .*; got Line"):
        spec_of(nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("spec", "change", "message"),
    [
        (PAIRS, {"n_tokens": 6}, r"`n_tokens` \(=6\) must equal the task's `n_tokens` \(=5\)"),
        (PAIRS, {"n_classes": 6}, r"`n_classes` \(=6\) must equal the task's `n_classes` \(=5\)"),
        (TOKENS, {"d_vocab": 4}, r"`d_vocab` \(=4\) must be at least the task's `n_tokens` \(=5"),
        (TOKENS, {"n_ctx": 1}, r"`n_ctx` \(=1\) must be at least the task's `context` \(=2\)"),
        (TOKENS, {"d_vocab_out": 6}, r"`d_vocab_out` \(=6\) must equal .*`n_classes` \(=5\)"),
    ],
)
def test_a_size_that_does_not_fit_is_named(spec: AnySpec, change: dict, message: str):
    fault = misfit(spec.model_copy(update=change), TASK)
    assert fault is not None
    with pytest.raises(ValueError, match=message):
        raise ValueError(fault)


def test_sizes_that_fit_have_no_fault():
    assert misfit(PAIRS, TASK) is misfit(TOKENS, TASK) is None
    assert misfit(TOKENS.model_copy(update={"d_vocab": 9, "n_ctx": 4}), TASK) is None
