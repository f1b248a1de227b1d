"""Models without positional embeddings: what is zero stays zero, and older hashes stay."""

from __future__ import annotations

import json

import pytest
import torch
from small_models import small_spec

from interp_shortcuts.canonical import canonical_json
from interp_shortcuts.errors import StorageError
from interp_shortcuts.models.build import build, initial_weights, weights_of
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.runs.checkpoint import load_checkpoint, save_checkpoint
from interp_shortcuts.runs.config import OptimConfig
from interp_shortcuts.training.optim import make_optimizer

NONE = small_spec(positions="none")


def test_a_spec_with_positions_is_written_as_before():
    spec = ModelSpec(d_vocab=11, d_vocab_out=2, n_ctx=5)
    assert "positions" not in json.loads(canonical_json(spec))
    assert spec.hash == "34c3327c8eb865a4"
    assert json.loads(canonical_json(NONE))["positions"] == "none"
    assert NONE.hash != small_spec().hash
    assert ModelSpec.model_validate(json.loads(canonical_json(NONE))) == NONE
    assert ModelSpec.model_validate(json.loads(canonical_json(spec))) == spec


def test_positions_are_zero_and_all_else_is_drawn_as_with_them():
    learned, none = initial_weights(small_spec(), 3), initial_weights(NONE, 3)
    assert not none["pos_embed.W_pos"].any()
    assert learned["pos_embed.W_pos"].any()
    for name in learned.keys() - {"pos_embed.W_pos"}:
        assert torch.equal(learned[name], none[name]), name


def test_order_is_told_by_the_causal_mask_alone():
    """With one layer, what the last position reads does not depend on the order before it."""
    spec = small_spec(positions="none", n_layers=1)
    model = build(spec, seed=0)
    first, second = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[2, 3, 1, 4]])
    torch.testing.assert_close(model(first)[:, -1], model(second)[:, -1])
    assert not torch.allclose(model(first)[:, 1], model(second)[:, 1])
    learned = build(small_spec(n_layers=1), seed=0)
    assert not torch.allclose(learned(first)[:, -1], learned(second)[:, -1], atol=1e-3)


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_no_optimiser_moves_them(optimizer):
    model = build(NONE, seed=0)
    config = OptimConfig(optimizer=optimizer, lr=0.1, weight_decay=0.5)
    before = weights_of(model)
    steps = make_optimizer(config, model.parameters())
    for _ in range(2):
        model.zero_grad()
        model(torch.tensor([[1, 2, 3]])).square().sum().backward()
        steps.step()
    after = weights_of(model)
    assert not after["pos_embed.W_pos"].any()
    assert not torch.equal(before["embed.W_E"], after["embed.W_E"])


def test_a_model_s_own_spec_has_positions_since_it_cannot_be_told():
    assert ModelSpec.from_model(build(NONE, seed=0)) == small_spec()


def test_a_checkpoint_holds_them_and_refuses_others(tmp_path):
    weights = initial_weights(NONE, 0)
    save_checkpoint(tmp_path / "none.safetensors", weights, step=0, spec=NONE)
    assert not load_checkpoint(tmp_path / "none.safetensors", spec=NONE)["pos_embed.W_pos"].any()
    with pytest.raises(StorageError, match="holds the weights of another model"):
        load_checkpoint(tmp_path / "none.safetensors", spec=small_spec())
    learned = initial_weights(small_spec(), 0)
    with pytest.raises(StorageError, match=r"`pos_embed.W_pos` must be zero, since the spec has"):
        save_checkpoint(tmp_path / "bad.safetensors", learned, step=0, spec=NONE)
    assert not (tmp_path / "bad.safetensors").exists()
