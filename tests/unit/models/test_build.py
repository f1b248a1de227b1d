"""Building: the weights a seed stands for, nothing disturbed, and weights in and out."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from plain_transformer import plain_forward
from small_models import (
    ACTIVATIONS,
    NORMALIZATIONS,
    random_model,
    random_tokens,
    random_weights,
    small_spec,
)

import interp_shortcuts
from interp_shortcuts.errors import ConfigError, StorageError
from interp_shortcuts.models.build import (
    build,
    eager,
    initial_weights,
    load_weights,
    parameter_shapes,
    weights_of,
)
from interp_shortcuts.models.random_state import kept_random_state
from interp_shortcuts.models.spec import ModelSpec


def global_random_state():
    legacy = np.random.get_state()  # noqa: NPY002
    return random.getstate(), legacy[1].tolist(), torch.get_rng_state().tolist()


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_shapes_are_those_of_the_built_model(normalization):
    spec = small_spec(normalization=normalization)
    built = {name: tuple(p.shape) for name, p in build(spec).named_parameters()}
    assert built == parameter_shapes(spec)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_every_parameter_is_drawn(normalization):
    spec = small_spec(normalization=normalization)
    model = build(spec, seed=3)
    drawn = initial_weights(spec, 3)
    assert same(weights_of(model), drawn)
    for name, parameter in model.named_parameters():
        kind = name.rpartition(".")[2]
        assert torch.isfinite(parameter).all()
        if kind.startswith("W_"):
            assert len(parameter.unique()) == parameter.numel()
        else:
            assert (parameter == (1.0 if kind == "w" else 0.0)).all()


def test_without_a_seed_only_gains_are_not_zero():
    for name, parameter in build(small_spec(normalization="LN")).named_parameters():
        assert (parameter == (1.0 if name.endswith(".w") else 0.0)).all()


def test_the_seed_decides():
    spec = small_spec()
    assert same(initial_weights(spec, 0), initial_weights(spec, 0))
    assert not same(initial_weights(spec, 0), initial_weights(spec, 1))


def test_initial_weights_are_pinned():
    """A golden: a seed keeps its meaning over versions of torch and TransformerLens."""
    weights = initial_weights(ModelSpec(d_vocab=11, d_vocab_out=2, n_ctx=5), 0)
    drawn = weights["blocks.0.attn.W_Q"][0, 0, :3].tolist()
    assert drawn == pytest.approx([-0.163676962, -0.0460899435, -0.114002608], rel=1e-6)


def test_matrices_have_the_documented_spread():
    spec = ModelSpec(d_vocab=101, d_vocab_out=2, n_ctx=5, d_model=64)
    weights = initial_weights(spec, 0)
    for name in ("embed.W_E", "blocks.0.mlp.W_in", "blocks.1.attn.W_O"):
        assert weights[name].std().item() == pytest.approx(0.1, rel=0.05)
        assert abs(weights[name].mean().item()) < 0.005


def test_every_matrix_has_its_own_stream():
    weights = initial_weights(small_spec(n_layers=3), 0)
    for matrix in ("attn.W_Q", "attn.W_O", "mlp.W_in"):
        assert not torch.equal(weights[f"blocks.0.{matrix}"], weights[f"blocks.1.{matrix}"])
    assert not torch.equal(weights["blocks.0.attn.W_Q"], weights["blocks.0.attn.W_K"])


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_layers_and_normalisations_leave_the_other_matrices(normalization):
    small = initial_weights(small_spec(n_layers=1), 5)
    large = initial_weights(small_spec(n_layers=3, normalization=normalization), 5)
    assert all(torch.equal(tensor, large[name]) for name, tensor in small.items())


USE_EVERYTHING = """
import random
import numpy as np, torch
from interp_shortcuts.models.spec import ModelSpec

def state():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()

before = state()
from interp_shortcuts.models import build, forward, weights
after_import = state()
spec = ModelSpec(d_vocab=7, d_vocab_out=2, n_ctx=5, d_model=8, normalization="LN")
model = build.build(spec, seed=0)
build.load_weights(model, build.initial_weights(spec, 1))
weights.Weights.of(model)
forward.read_attention(model, torch.zeros(3, 5, dtype=torch.int64))
assert after_import == before, "import"
assert state() == before, "use"
"""


def test_nothing_global_is_disturbed():
    """In a process of its own, because the run-time type checks here draw from `random`."""
    command = [sys.executable, "-W", "error", "-c", USE_EVERYTHING]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_build_prints_nothing(capfd):
    before = torch.get_rng_state()
    build(small_spec(normalization="LN"), seed=0)
    assert capfd.readouterr() == ("", "")
    assert torch.equal(torch.get_rng_state(), before)


def test_random_state_is_restored_after_an_exception():
    before = global_random_state()

    def reseed_and_stop():
        with kept_random_state():
            torch.manual_seed(1)
            np.random.seed(1)  # noqa: NPY002
            random.seed(1)
            assert global_random_state() != before
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        reseed_and_stop()
    assert global_random_state() == before


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("attention", ["causal", "bidirectional"])
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_the_forward_pass_is_the_plain_one(normalization, attention, activation):
    spec = small_spec(normalization=normalization, attention=attention, activation=activation)
    weights = random_weights(spec, size=0.3)
    tokens = random_tokens(2)
    logits = random_model(spec, size=0.3)(tokens).detach().numpy()
    for example, logit in zip(tokens.tolist(), logits, strict=True):
        expected, _ = plain_forward(weights, spec, example)
        np.testing.assert_allclose(logit, expected, atol=1e-5)


def test_a_build_lands_on_the_device():
    assert {p.device.type for p in build(small_spec(), device="cpu").parameters()} == {"cpu"}


def test_weights_of_are_copies_of_the_parameters_alone():
    model = build(small_spec(), seed=0)
    weights = weights_of(model)
    assert set(weights) == set(parameter_shapes(small_spec()))
    weights["embed.W_E"].zero_()
    assert model.embed.W_E.abs().sum() > 0
    assert not any(tensor.requires_grad for tensor in weights.values())


def test_a_state_dict_goes_in_with_its_masks():
    model = build(small_spec(), seed=0)
    state = build(small_spec(), seed=1).state_dict()
    assert any(name.endswith("IGNORE") for name in state)
    load_weights(model, state)
    assert same(weights_of(model), initial_weights(small_spec(), 1))


def test_loading_keeps_the_dtype_of_the_model():
    model = build(small_spec(), seed=0).double()
    load_weights(model, initial_weights(small_spec(), 1))
    assert model.embed.W_E.dtype == torch.float64


def test_causal_and_bidirectional_weights_differ_in_their_spec_alone():
    """The weights fit either model, so it is the spec's hash that must tell them apart."""
    causal, bidirectional = small_spec(), small_spec(attention="bidirectional")
    load_weights(build(causal), weights_of(build(bidirectional, seed=0)))
    assert causal.hash != bidirectional.hash


def changed(name, value):
    weights = initial_weights(small_spec(), 0)
    if value is None:
        del weights[name]
    else:
        weights[name] = value
    return weights


def nan_at_one_place():
    tensor = torch.zeros(12)
    tensor[3] = torch.nan
    return tensor


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        (
            lambda: changed("blocks.7.attn.W_Q", torch.zeros(1)),
            "The weights hold `blocks.7.attn.W_Q`, which the model does not have; "
            "they belong to another spec.",
        ),
        (
            lambda: changed("embed.W_E", None),
            "The weights lack `embed.W_E`, which the model has; they belong to another spec.",
        ),
        (
            dict,
            "The weights lack `blocks.0.attn.W_K`, `blocks.0.attn.W_O`, `blocks.0.attn.W_Q` and "
            "25 more, which the model has; they belong to another spec.",
        ),
        (
            lambda: changed("embed.W_E", torch.zeros(9, 8)),
            "`embed.W_E` must have shape [7, 8]; got [9, 8]. The weights belong to another spec.",
        ),
        (
            lambda: changed("blocks.1.mlp.b_in", nan_at_one_place()),
            "`blocks.1.mlp.b_in` must be finite; 1 of its 12 values are not.",
        ),
        (
            lambda: changed("unembed.b_U", torch.zeros(3, dtype=torch.int64)),
            "`unembed.b_U` must be a tensor of floating-point numbers; got torch.int64.",
        ),
    ],
)
def test_weights_that_do_not_fit_are_named_and_change_nothing(weights, text):
    model = build(small_spec(), seed=0)
    with pytest.raises(StorageError) as caught:
        load_weights(model, weights())
    assert str(caught.value) == text
    assert same(weights_of(model), initial_weights(small_spec(), 0))


def test_a_compiled_model_is_unwrapped():
    model = build(small_spec(), seed=0)
    compiled = torch.compile(model, backend="eager")
    assert eager(compiled) is model
    assert eager(model) is model
    assert same(weights_of(compiled), weights_of(model))
    state = build(small_spec(), seed=1).state_dict()
    load_weights(compiled, {f"_orig_mod.{name}": tensor for name, tensor in state.items()})
    assert same(weights_of(model), initial_weights(small_spec(), 1))


def test_only_a_hooked_transformer_is_taken():
    with pytest.raises(ConfigError, match="`model` must be a HookedTransformer; got Linear"):
        weights_of(torch.nn.Linear(2, 2))


def test_the_function_is_exported_although_a_module_has_its_name():
    assert interp_shortcuts.build is build
