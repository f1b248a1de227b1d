"""The spec: its hash, its errors, and what it refuses to describe of a user's model."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest
import torch
from pydantic import ValidationError
from small_models import NORMALIZATIONS, small_spec
from transformer_lens import HookedTransformer, HookedTransformerConfig

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.build import build
from interp_shortcuts.models.spec import Architecture, ModelSpec


def users_model(**changes):
    settings = {
        "n_layers": 1,
        "d_model": 8,
        "d_head": 4,
        "n_heads": 2,
        "d_mlp": 16,
        "n_ctx": 5,
        "d_vocab": 20,
        "d_vocab_out": 2,
        "act_fn": "relu",
        "normalization_type": "LN",
        "device": "cpu",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return HookedTransformer(HookedTransformerConfig(**(settings | changes)))


def test_hash_is_pinned():
    """Stored checkpoints carry it: a change here makes them unreadable."""
    assert ModelSpec(d_vocab=11, d_vocab_out=2, n_ctx=5).hash == "34c3327c8eb865a4"


@pytest.mark.parametrize(
    "change",
    [
        {"n_layers": 1},
        {"n_heads": 4},
        {"d_model": 16},
        {"d_mlp": 13},
        {"activation": "gelu"},
        {"normalization": "LN"},
        {"attention": "bidirectional"},
        {"d_vocab": 8},
        {"d_vocab_out": 2},
        {"n_ctx": 6},
        {"eps": 1e-6},
    ],
)
def test_every_field_is_in_the_hash(change):
    assert small_spec(**change).hash != small_spec().hash


def test_d_head_is_derived():
    assert Architecture(n_heads=4, d_model=64).d_head == 16


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match=r"`n_heads` \(=3\) must divide `d_model` \(=64\)\."):
        Architecture(n_heads=3)


def test_a_mistyped_field_is_an_error():
    with pytest.raises(ValidationError, match="n_layer\n"):
        Architecture.model_validate({"n_layer": 1})


def test_a_spec_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        small_spec().n_layers = 3  # type: ignore[misc]


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("attention", ["causal", "bidirectional"])
def test_a_built_model_gives_its_spec_back(normalization, attention):
    spec = small_spec(normalization=normalization, attention=attention, activation="gelu_new")
    assert ModelSpec.from_model(build(spec)) == spec


def test_a_users_model_is_described():
    spec = ModelSpec.from_model(users_model(eps=1e-6))
    assert spec.eps == 1e-6
    assert spec.normalization == "LN"
    assert spec.d_vocab == 20
    assert ModelSpec.from_model(build(spec)).hash == spec.hash


def test_epsilon_does_not_matter_without_a_normalisation():
    assert ModelSpec.from_model(users_model(normalization_type=None, eps=1e-6)).eps == 1e-5


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"positional_embedding_type": "rotary"},
            "`positional_embedding_type` must be 'standard'; the model has 'rotary'.",
        ),
        (
            {"positional_embedding_type": "alibi"},
            "`positional_embedding_type` must be 'standard'; the model has 'alibi'.",
        ),
        ({"attn_only": True}, "`attn_only` must be False; the model has True."),
        ({"parallel_attn_mlp": True}, "`parallel_attn_mlp` must be False; the model has True."),
        ({"gated_mlp": True}, "`gated_mlp` must be False; the model has True."),
        ({"n_key_value_heads": 1}, "`n_key_value_heads` must be None; the model has 1."),
        ({"use_attn_scale": False}, "`use_attn_scale` must be True; the model has False."),
        ({"final_rms": True}, "`final_rms` must be False; the model has True."),
        ({"use_qk_norm": True}, "`use_qk_norm` must be False; the model has True."),
        (
            {"attn_scores_soft_cap": 30.0},
            "`attn_scores_soft_cap` must be -1.0; the model has 30.0.",
        ),
        (
            {"attn_scale": 1.0},
            "`attn_scale` (=1) must be the square root of `d_head` (=4).",
        ),
        (
            {"d_head": 8},
            "`d_head` (=8) times `n_heads` (=2) must equal `d_model` (=8).",
        ),
        (
            {"original_architecture": "Olmo2ForCausalLM"},
            "`original_architecture` must not normalise elsewhere than before each block's parts; "
            "the model has 'Olmo2ForCausalLM'.",
        ),
    ],
)
def test_what_a_spec_cannot_say_is_refused(change, text):
    with pytest.raises(ConfigError) as caught:
        ModelSpec.from_model(users_model(**change))
    assert str(caught.value) == text


def test_an_unknown_activation_is_refused_with_the_choices():
    with pytest.raises(ConfigError, match=r"`activation` \(='solu'\).*'relu', 'gelu'"):
        ModelSpec.from_model(users_model(act_fn="solu"))


def test_another_kind_of_model_is_refused():
    with pytest.raises(ConfigError, match="`model` must be a HookedTransformer; got Linear"):
        ModelSpec.from_model(torch.nn.Linear(2, 2))


def test_the_spec_loads_no_torch():
    code = (
        "import sys, interp_shortcuts.models.spec, interp_shortcuts.models.sites; "
        "assert not {'torch', 'transformer_lens'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
