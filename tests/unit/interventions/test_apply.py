"""`applied`: what it restores, what it leaves alone, and when it speaks up."""

from __future__ import annotations

import pytest
import torch
from edited_transformer import small_model, small_tokens

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.interventions.ablate import Ablate, AblateQK
from interp_shortcuts.interventions.apply import applied
from interp_shortcuts.interventions.patch import Patch
from interp_shortcuts.models.forward import read_logits
from interp_shortcuts.models.sites import Component


def hooks_of(model):
    return {name: list(part._forward_hooks) for name, part in model.named_modules()}


def test_later_interventions_act_on_what_earlier_ones_left():
    model, tokens, source = small_model(), small_tokens(4), small_tokens(4, seed=5)
    patch, zero = Patch("L1.H0", source), Ablate("L1.H0")
    with torch.no_grad():
        results = []
        for interventions in ((patch,), (zero,), (patch, zero), (zero, patch)):
            with applied(model, *interventions) as changed:
                results.append(changed(tokens))
    patched, zeroed, then_zeroed, then_patched = results
    assert torch.equal(then_zeroed, zeroed)
    assert torch.equal(then_patched, patched)
    assert not torch.equal(patched, zeroed)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("L0.H0", r"got 'L0.H0'. .* `applied\(model, Ablate\('L0.H0'\)\)`"),
        (Component.parse("L0.H0"), r"`applied\(model, Ablate\('L0.H0'\)\)`"),
        ([Ablate("L0.H0")], r"unpack the list: `applied\(model, \*interventions\)`"),
        (Ablate, r"Give one made of it: `applied\(model, Ablate\('L0.H0'\)\)`"),
        (3, r"got 3. Give them after the model"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_is_no_intervention_says_what_to_pass(given, message):
    model = small_model()
    before = hooks_of(model)
    with (
        pytest.raises(InterventionError, match=f"must be interventions, .*{message}"),
        applied(model, given),
    ):
        pass
    assert hooks_of(model) == before


def test_the_users_hooks_stay_and_act_before_and_after():
    model, tokens = small_model(), small_tokens(4)
    seen = {}
    point = model.hook_dict["blocks.0.attn.hook_z"]
    point.add_hook(lambda z, hook: seen.update(before=z), is_permanent=True)
    with torch.no_grad(), applied(model, Ablate("L0.H1")) as changed:
        point.add_hook(lambda z, hook: seen.update(inside=z))
        changed(tokens)
        changed.run_with_hooks(tokens, fwd_hooks=[(point.name, lambda z, hook: None)])
        changed.reset_hooks()  # does not remove an intervention
        changed(tokens)
    assert seen["before"][:, :, 1].abs().max() > 0
    assert seen["inside"][:, :, 1].abs().max() == 0
    assert len(point.fwd_hooks) == len(point._forward_hooks) == 1


def test_a_users_hook_added_inside_outlives_the_block():
    model, tokens = small_model(), small_tokens(4)
    point = model.hook_dict["blocks.0.attn.hook_z"]
    with applied(model, Ablate("L0.H1")) as changed:
        changed(tokens)
        point.add_hook(lambda z, hook: z * 2)
    assert len(point._forward_hooks) == 1


def test_references_are_read_without_any_hooks():
    model, tokens, source = small_model(), small_tokens(4), small_tokens(4, seed=5)
    with torch.no_grad(), applied(model, Patch("L0.H1", source)) as changed:
        expected = changed(tokens)
        calls = []
        point = model.hook_dict["blocks.0.attn.hook_z"]
        point.add_hook(lambda z, hook: calls.append(len(z)))
    with torch.no_grad(), applied(model, Patch("L0.H1", source)) as changed:
        assert not calls
        assert torch.equal(changed(tokens), expected)
    assert calls == [4]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_exception_passes_through_and_everything_is_restored(error):
    model = small_model()
    model.train()
    before = hooks_of(model)
    with (
        pytest.raises(error, match="the user's"),
        applied(model, Ablate("L0.H1"), Ablate("L1.mlp")),
    ):
        raise error("the user's")
    assert hooks_of(model) == before
    assert model.training


def test_an_exception_inside_the_forward_pass_is_restored_too():
    model = small_model()
    before = hooks_of(model)
    with pytest.raises(IndexError), applied(model, Ablate("L0.H1")) as changed:
        changed(torch.full((2, 5), 99))
    assert hooks_of(model) == before


def test_an_intervention_that_never_fired():
    model, tokens = small_model(), small_tokens(4)
    before = hooks_of(model)
    with (
        pytest.raises(InterventionError, match=r"Ablate\(L0.H1\) never fired at z of layer 0"),
        applied(model, Ablate("L0.H1")),
    ):
        pass
    with (
        pytest.raises(
            InterventionError, match=r"Ablate\(L1.mlp\) never fired at mlp_out of layer 1"
        ),
        applied(model, Ablate("L0.H1"), Ablate("L1.mlp")) as changed,
    ):
        changed(tokens, stop_at_layer=1)
    assert hooks_of(model) == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("L2.mlp", r"names L2.mlp, which is not there.*`n_layers` \(=2\).*There are L0.H0, L0.H1"),
        ("L0.H3", r"names L0.H3, which is not there.*`n_heads` \(=3\).*L1.mlp"),
    ],
)
def test_a_component_that_is_not_there(name, message):
    with pytest.raises(InterventionError, match=message), applied(small_model(), Ablate(name)):
        pass


def test_no_interventions_change_nothing():
    model, tokens = small_model(), small_tokens(4)
    with applied(model) as changed:
        assert changed is model
        assert torch.equal(changed(tokens), model(tokens))


def test_a_compiled_model_is_handed_over():
    model, tokens = small_model(), small_tokens(4)
    compiled = torch.compile(model, backend="eager")
    plain = compiled(tokens)
    with torch.no_grad(), applied(compiled, Ablate("L0.H1")) as changed:
        assert changed is model
        ablated = changed(tokens)
    assert (plain - ablated).abs().max() > 1e-3
    assert torch.equal(compiled(tokens), plain)
    with (
        pytest.raises(InterventionError, match="a compiled model ignores hooks"),
        applied(compiled, Ablate("L0.H1")),
    ):
        compiled(tokens)


def test_a_model_compiled_in_place_runs_eagerly_inside():
    model, tokens = small_model(), small_tokens(4)
    with torch.no_grad(), applied(model, Ablate("L0.H1")) as changed:
        expected = changed(tokens)
    model.compile(backend="eager")
    model(tokens)
    with torch.no_grad(), applied(model, Ablate("L0.H1")) as changed:
        assert torch.equal(changed(tokens), expected)
    assert model._compiled_call_impl is not None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("training", [True, False])
def test_any_precision_and_mode(dtype, training):
    model, tokens, source = small_model(dtype=dtype), small_tokens(4), small_tokens(4, seed=5)
    model.train(training)
    state = torch.get_rng_state()
    interventions = (
        Ablate("L0.H1", kind="mean", reference=source),
        Ablate("L0.H2", kind="resample", reference=source),
        AblateQK("L1.H0"),
        Patch("L1.mlp", source, -1),
    )
    with applied(model, *interventions) as changed:
        logits = changed(tokens)
        logits.sum().backward()
        read = read_logits(changed, tokens)
    assert logits.dtype == dtype
    assert model.training == training
    assert torch.equal(torch.get_rng_state(), state)
    gradient = model.blocks[0].attn.W_O.grad
    assert gradient[0].abs().sum() > 0
    assert all(p.requires_grad for p in model.parameters())
    assert read.dtype == torch.promote_types(dtype, torch.float32)


def test_gradients_flow_around_what_is_replaced():
    model, tokens = small_model(), small_tokens(4)
    with applied(model, Ablate("L1.H1")) as changed:
        changed(tokens)[:, -1, 0].sum().backward()
    assert model.blocks[1].attn.W_O.grad[1].abs().sum() == 0
    assert model.blocks[1].attn.W_V.grad[1].abs().sum() == 0
    assert model.blocks[1].attn.W_V.grad[0].abs().sum() > 0
