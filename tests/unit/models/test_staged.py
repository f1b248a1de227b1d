"""The plain forward against the model itself: logits, gradients, every stage."""

from __future__ import annotations

import pytest
import torch
from small_models import (
    ACTIVATIONS,
    NORMALIZATIONS,
    random_model,
    random_tokens,
    small_spec,
)

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.models.replacements import Donors, Replacement
from interp_shortcuts.models.staged import StagedModel, read_logits_pruned
from interp_shortcuts.models.variants import variant_logits


@pytest.mark.parametrize("attention", ["causal", "bidirectional"])
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_it_gives_the_models_logits_and_gradients(normalization, attention):
    spec = small_spec(normalization=normalization, attention=attention)
    model = random_model(spec).to(torch.float64, print_details=False)
    tokens = random_tokens()
    for position in (-1, 2):
        expected = model(tokens)[:, position]
        found = read_logits_pruned(model, tokens, position=position)
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-12)
        parameters = list(model.parameters())
        weights = torch.randn(expected.shape, dtype=torch.float64)
        left, right = (
            torch.autograd.grad((logits * weights).sum(), parameters)
            for logits in (found, expected)
        )
        for a, b in zip(left, right, strict=True):
            torch.testing.assert_close(a, b, atol=1e-10, rtol=1e-9)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 1), (1, 4), (3, 2)])
def test_every_activation_and_size(activation, n_layers, n_heads):
    spec = small_spec(activation=activation, n_layers=n_layers, n_heads=n_heads)
    model, tokens = random_model(spec, size=0.3), random_tokens()
    with torch.no_grad():
        expected = model(tokens)[:, -1]
        found = read_logits_pruned(model, tokens)
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=1e-6)


def test_shorter_sequences_and_one_token():
    model = random_model(small_spec()).to(torch.float64, print_details=False)
    for tokens in (random_tokens(length=2), random_tokens(length=0)):
        torch.testing.assert_close(read_logits_pruned(model, tokens), model(tokens)[:, -1])


@pytest.mark.parametrize("normalization", ["none", "LN"])
def test_every_stage_is_the_models_own_activation(normalization):
    model = random_model(small_spec(normalization=normalization))
    model.to(torch.float64, print_details=False)
    tokens = random_tokens()
    _, cache = model.run_with_cache(tokens)
    staged = StagedModel.of(model)
    whole, pruned = list(staged.stages(tokens)), list(staged.stages(tokens, row=3))
    for layer, stage in enumerate(whole):
        block = f"blocks.{layer}"
        found = {
            "hook_resid_pre": stage.resid_pre,
            "attn.hook_v": staged.values(layer, stage.x),
            "attn.hook_pattern": stage.pattern,
            "attn.hook_z": stage.z,
            "hook_resid_mid": stage.resid_mid,
            "hook_mlp_out": stage.mlp_out,
            "hook_resid_post": stage.resid_post,
        }
        for name, activation in found.items():
            torch.testing.assert_close(activation, cache[f"{block}.{name}"], atol=1e-12, rtol=1e-12)
    for name in ("z", "mlp_out", "resid_mid", "resid_post"):
        expected = getattr(whole[-1], name)[:, 3:4]
        torch.testing.assert_close(getattr(pruned[-1], name), expected, atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(pruned[-1].pattern, whole[-1].pattern[:, :, 3:4])
    torch.testing.assert_close(pruned[0].z, whole[0].z)


def test_half_precision_is_read_in_float32_unless_asked_otherwise():
    model, tokens = random_model(small_spec(normalization="LN")), random_tokens()
    model.to(torch.bfloat16, print_details=False)
    with torch.no_grad():
        native = read_logits_pruned(StagedModel.of(model, dtype=torch.bfloat16), tokens)
        torch.testing.assert_close(native, model(tokens)[:, -1], atol=0.1, rtol=0.05)
        found = read_logits_pruned(model, tokens)
        model.to(torch.float32, print_details=False)
        torch.testing.assert_close(found, model(tokens)[:, -1], atol=1e-5, rtol=1e-5)


def test_hooks_do_not_act_and_a_compiled_model_is_unwrapped():
    model, tokens = random_model(small_spec()), random_tokens()
    expected = read_logits_pruned(model, tokens)
    model.hook_dict["blocks.0.attn.hook_z"].add_hook(lambda z, hook: z * 0)
    compiled = torch.compile(model, backend="eager")  # compiled when first called, so never
    assert torch.equal(read_logits_pruned(compiled, tokens), expected)


def test_a_position_that_is_not_there():
    model = random_model(small_spec())
    with pytest.raises(InterventionError, match=r"`position` must be in \[-5, 4\]; got -6"):
        read_logits_pruned(model, random_tokens(), position=-6)


def test_variants_that_share_donors_share_their_pass(monkeypatch):
    model, tokens = random_model(small_spec()), random_tokens()
    staged, passes = StagedModel.of(model), []
    original = StagedModel.embed

    def counted(self, tokens):
        passes.append(len(tokens))
        return original(self, tokens)

    monkeypatch.setattr(StagedModel, "embed", counted)
    donors = Donors(random_tokens(seed=1))
    variants = [(Replacement("z", layer, head, donors),) for layer in (0, 1) for head in (0, 1)]
    variant_logits(staged, tokens, variants)
    assert passes == [7, 7]


def test_a_donated_value_is_the_donors_v():
    model, tokens = random_model(small_spec()), random_tokens()
    model.to(torch.float64, print_details=False)
    donors = random_tokens(seed=1)
    _, cache = model.run_with_cache(donors)
    with torch.no_grad():
        for layer in (0, 1):
            name = f"blocks.{layer}.attn.hook_v"

            def put(v, hook, name=name):
                v = v.clone()
                v[:, :, 1] = cache[name][:, :, 1]
                return v

            expected = model.run_with_hooks(tokens, fwd_hooks=[(name, put)])[:, -1]
            variant = (Replacement("v", layer, 1, Donors(donors)),)
            torch.testing.assert_close(variant_logits(model, tokens, [variant])[0], expected)


def test_replacement_errors():
    model, tokens = random_model(small_spec()), random_tokens()
    cases = {
        r"layer of a replacement \(=2\) must be below": Replacement("z", 2, 0, torch.zeros(())),
        r"head of a replacement \(=2\) must be below": Replacement("z", 0, 2, torch.zeros(())),
        "needs a value or its donors; got neither": Replacement("z", 0, 0),
        "Donors must have the shape": Replacement("z", 0, 0, Donors(tokens[:2])),
        r"as many as the tokens \(=7\); got 3": Replacement("z", 0, 0, torch.zeros(3, 5, 4)),
        r"as many positions as the sequences \(=5\)": Replacement("z", 0, 0, torch.zeros(4, 4)),
        "`positions` must be in": Replacement("z", 0, 0, torch.zeros(()), positions=(7,)),
    }
    for message, replacement in cases.items():
        with pytest.raises(InterventionError, match=message):
            variant_logits(model, tokens, [(replacement,)])
    with pytest.raises(InterventionError, match="on no other site; got head=None on 'z'"):
        Replacement("z", 0)
    with pytest.raises(InterventionError, match="on no other site; got head=1 on 'mlp_out'"):
        Replacement("mlp_out", 0, 1)
