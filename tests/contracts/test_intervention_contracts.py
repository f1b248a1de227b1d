"""What every registered intervention promises, whichever it is."""

from __future__ import annotations

import json

import pytest
import torch

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.interventions import INTERVENTIONS, applied, read_logits_under
from interp_shortcuts.models.build import build, load_weights, parameter_shapes
from interp_shortcuts.models.sites import components
from interp_shortcuts.models.spec import ModelSpec

SPEC = ModelSpec(d_model=8, d_mlp=8, d_vocab=7, d_vocab_out=2, n_ctx=5, normalization="LN")


def tokens_of(n, seed):
    return torch.randint(7, (n, 5), generator=torch.Generator().manual_seed(seed))


TOKENS, REFERENCE = tokens_of(6, 0), tokens_of(6, 1)
CASES = [
    pytest.param(kind, component, id=f"{name}-{component}")
    for name, kind in INTERVENTIONS.items()
    for component in components(SPEC, kind.kinds)
]
each_case = pytest.mark.parametrize(("kind", "component"), CASES)
each_kind = pytest.mark.parametrize("kind", INTERVENTIONS.values(), ids=INTERVENTIONS)


@pytest.fixture
def model():
    generator = torch.Generator().manual_seed(0)
    model = build(SPEC)
    weights = {
        name: torch.randn(shape, generator=generator)
        for name, shape in parameter_shapes(SPEC).items()
    }
    load_weights(model, weights)
    return model


def state_of(model):
    return {
        name: (list(part._forward_hooks), part.training) for name, part in model.named_modules()
    }


def run(model, tokens, *interventions):
    with torch.no_grad(), applied(model, *interventions) as changed:
        return changed(tokens)


@each_case
def test_ones_own_activation_changes_nothing(kind, component, model):
    example = TOKENS[:1]
    found = run(model, example, kind.from_reference(component, example))
    torch.testing.assert_close(found, model(example), atol=1e-5, rtol=1e-5)


@each_case
def test_it_acts_and_restores(kind, component, model):
    before, plain = state_of(model), model(TOKENS)
    changed = run(model, TOKENS, kind.from_reference(component, REFERENCE))
    assert (changed - plain).abs().max() > 1e-4
    assert state_of(model) == before
    assert torch.equal(model(TOKENS), plain)


@each_case
def test_without_hooks_it_is_the_same(kind, component, model):
    intervention = kind.from_reference(component, REFERENCE)
    found = read_logits_under(model, TOKENS, [intervention])[0]
    torch.testing.assert_close(found, run(model, TOKENS, intervention)[:, -1], atol=2e-5, rtol=1e-5)


@each_kind
def test_it_restores_after_an_exception(kind, model):
    before = state_of(model)
    with (
        pytest.raises(ZeroDivisionError),
        applied(model, kind.from_reference("L0.H1", REFERENCE)),
    ):
        raise ZeroDivisionError
    assert state_of(model) == before


@each_kind
def test_it_leaves_the_users_hooks(kind, model):
    calls = []
    for point in model.hook_dict.values():
        point.add_hook(lambda activation, hook: calls.append(hook.name))
    run(model, TOKENS, kind.from_reference("L0.H1", REFERENCE))
    n_sites = len(calls)
    model(TOKENS)
    assert len(calls) == 2 * n_sites
    assert all(len(point.fwd_hooks) == 1 for point in model.hook_dict.values())


@each_kind
def test_gradients_flow(kind, model):
    with applied(model, kind.from_reference("L0.H1", REFERENCE)) as changed:
        changed(TOKENS).sum().backward()
    assert model.W_E.grad.abs().sum() > 0
    assert torch.is_grad_enabled()


@each_kind
def test_one_head_is_not_the_whole_layer(kind, model):
    one, other, whole = (
        run(model, TOKENS, kind.from_reference(name, REFERENCE))
        for name in ("L0.H0", "L0.H1", "L0.attn")
    )
    for a, b in ((one, other), (one, whole), (other, whole)):
        assert (a - b).abs().max() > 1e-4
    both = run(model, TOKENS, kind.from_reference(("L0.H0", "L0.H1"), REFERENCE))
    torch.testing.assert_close(both, whole)


@each_kind
def test_it_refuses_names_that_are_not_there(kind, model):
    for name in ("L7.H0", "L0.H9"):
        with (
            pytest.raises(InterventionError, match=f"{name}, which is not there.*There are L0.H0"),
            applied(model, kind.from_reference(name, REFERENCE)),
        ):
            pass
    with pytest.raises(InterventionError, match="must read like"):
        kind.from_reference("head 1", REFERENCE)


@each_kind
def test_it_says_when_it_never_fired(kind, model):
    with (
        pytest.raises(InterventionError, match=rf"{kind.__name__}\(L1.H0\) never fired"),
        applied(model, kind.from_reference("L1.H0", REFERENCE)),
    ):
        pass


@each_kind
def test_it_describes_itself(kind):
    said = kind.from_reference(("L0.H1", "L1.H0"), REFERENCE).describe()
    assert json.loads(json.dumps(said)) == said
    assert said["intervention"] == kind.__name__
    assert said["components"] == ["L0.H1", "L1.H0"]
    assert {"split": "tokens", "n": 6, "sha": None} in said.values()


@each_kind
def test_it_is_data(kind):
    intervention = kind.from_reference("L0.H1", REFERENCE)
    assert intervention == kind.from_reference("L0.H1", REFERENCE)
    with pytest.raises(AttributeError):
        intervention.components = ("L0.H0",)
