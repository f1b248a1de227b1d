"""The differentiable forward with edits: the model's own logits, and edits as hooks make them."""

from __future__ import annotations

import pytest
import torch
from small_models import ACTIVATIONS, NORMALIZATIONS, random_model, random_tokens, small_spec

from interp_shortcuts.errors import ConfigError, InterventionError
from interp_shortcuts.models.component_forward import (
    ComponentForward,
    StagedForward,
    component_forward,
    part_of,
    place_of,
)
from interp_shortcuts.models.hooked_forward import HookedForward
from interp_shortcuts.models.sites import Component, components
from interp_shortcuts.models.staged import StagedModel

TOKENS = random_tokens()


def double(activation):
    return 2 * activation


def under_hooks(model, place):
    site, layer = place
    name = f"blocks.{layer}.attn.hook_z" if site == "z" else f"blocks.{layer}.hook_mlp_out"
    with torch.no_grad():
        return model.run_with_hooks(TOKENS, fwd_hooks=[(name, lambda value, hook: 2 * value)])


PLACES = [(site, layer) for site in ("z", "mlp_out") for layer in (0, 1, 2)]


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("activation", ACTIVATIONS[:2])
def test_logits_and_edits_are_those_of_hooks(normalization, activation):
    spec = small_spec(n_layers=3, normalization=normalization, activation=activation)
    model = random_model(spec).to(torch.float64, print_details=False)
    for forward in (StagedForward(StagedModel.of(model)), HookedForward(model)):
        assert isinstance(forward, ComponentForward)
        assert forward.components == components(spec)
        with torch.no_grad():
            plain = model(TOKENS)
        torch.testing.assert_close(forward.logits(TOKENS, {}).detach(), plain)
        tail = forward.logits(TOKENS, {}, first=3).detach()
        torch.testing.assert_close(tail, plain[:, 3:])
        clean = forward.clean(TOKENS)
        for place in PLACES:
            expected = under_hooks(model, place)
            assert not torch.allclose(expected, plain)
            for start in (None, clean):
                found = forward.logits(TOKENS, {place: double}, clean=start).detach()
                torch.testing.assert_close(found, expected)


def test_several_edits_from_clean_activations():
    model = random_model(small_spec(n_layers=3, normalization="LN"))
    forward = StagedForward(StagedModel.of(model))
    clean = forward.clean(TOKENS)
    for places in ([PLACES[1], PLACES[4]], [PLACES[1], PLACES[5]], [PLACES[4]], []):
        edits = dict.fromkeys(places, double)
        torch.testing.assert_close(
            forward.logits(TOKENS, edits, clean=clean), forward.logits(TOKENS, edits)
        )


def test_the_pieces_are_the_models_own_weights():
    model = random_model(small_spec())
    block = model.blocks[1]
    for forward in (StagedForward(StagedModel.of(model)), HookedForward(model)):
        of_head = {p.name: p.part(p.leaf) for p in forward.pieces[Component(1, "head", 1)]}
        assert set(of_head) == {"W_V", "W_O"}
        for name, own in of_head.items():
            assert own.numel() == 8 * 4
            assert own.sum().item() == pytest.approx(getattr(block.attn, name)[1].sum().item())
        of_mlp = {p.name: p.part(p.leaf) for p in forward.pieces[Component(1, "mlp")]}
        for name, own in of_mlp.items():
            assert own.sum().item() == pytest.approx(getattr(block.mlp, name).sum().item())


def test_places_and_parts():
    z = torch.arange(24.0).reshape(1, 2, 3, 4)
    assert place_of(Component(2, "head", 1)) == ("z", 2)
    assert place_of(Component(2, "mlp")) == ("mlp_out", 2)
    assert torch.equal(part_of(Component(2, "head", 1), z), z[:, :, 1])
    assert part_of(Component(2, "mlp"), z) is z


@pytest.mark.parametrize("hooked", [False, True])
def test_the_model_is_left_as_it_was(hooked):
    model = random_model(small_spec(normalization="LN"))
    model.blocks[0].attn.W_Q.requires_grad_(False)
    model.blocks[1].mlp.train(False)
    if hooked:
        model.blocks[0].hook_resid_pre.add_hook(lambda value, hook: None)
    before = {
        name: (id(w), w.detach().clone(), w.requires_grad) for name, w in model.named_parameters()
    }
    modes = [part.training for part in model.modules()]
    hooks = [len(part._forward_hooks) for part in model.modules()]
    with torch.inference_mode(), component_forward(torch.compile(model, backend="eager")) as it:
        logits = it.logits(TOKENS, {PLACES[0]: double})
        leaves = [piece.leaf for own in it.pieces.values() for piece in own]
        assert all(g.isfinite().all() for g in torch.autograd.grad(logits.sum(), leaves))
    assert isinstance(it, HookedForward if hooked else StagedForward)
    for name, weight in model.named_parameters():
        identity, value, requires_grad = before[name]
        assert id(weight) == identity
        assert torch.equal(weight, value)
        assert weight.requires_grad == requires_grad
        assert weight.grad is None
    assert modes == [part.training for part in model.modules()]
    assert hooks == [len(part._forward_hooks) for part in model.modules()]


def test_errors():
    forward = StagedForward(StagedModel.of(random_model(small_spec())))
    with pytest.raises(InterventionError, match="`tokens` must be from 0"):
        forward.logits(TOKENS + 1, {})
    model = random_model(small_spec())
    del model.blocks[1].mlp.W_in
    with pytest.raises(ConfigError, match=r"weight matrix `blocks\.1\.mlp\.W_in`"):
        HookedForward(model)
