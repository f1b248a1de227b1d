"""Components and sites: their text, their errors, and that every site is there and fires."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_models import random_model, random_tokens, small_spec

from interp_shortcuts.errors import ConfigError, InterventionError
from interp_shortcuts.models.hooks import hooked
from interp_shortcuts.models.sites import SITES, Component, components, site

component_strategy = st.one_of(
    st.builds(Component, st.integers(0, 20), st.just("head"), st.integers(0, 20)),
    st.builds(Component, st.integers(0, 20), st.sampled_from(["mlp", "attention"])),
)


@given(component_strategy)
def test_text_and_component_are_the_same(component):
    assert Component.parse(str(component)) == component


def test_the_words():
    assert str(Component(0, "head", 1)) == "L0.H1"
    assert str(Component(1, "mlp")) == "L1.mlp"
    assert str(Component(0, "attention")) == "L0.attn"


@pytest.mark.parametrize("text", ["", "L0", "L0.h1", "l0.H1", "L0.H", "L0.H1 ", "L-1.H0", "0.1"])
def test_other_text_is_refused(text):
    with pytest.raises(ConfigError) as caught:
        Component.parse(text)
    assert str(caught.value) == (
        f"A component must read like 'L0.H1', 'L1.mlp' or 'L0.attn'; got {text!r}."
    )


def test_a_head_needs_its_number_and_others_have_none():
    with pytest.raises(ConfigError, match=r"got head=None with kind 'head'\."):
        Component(0, "head")
    with pytest.raises(ConfigError, match=r"got head=1 with kind 'mlp'\."):
        Component(0, "mlp", 1)
    with pytest.raises(ConfigError, match="must not be negative"):
        Component(-1, "mlp")


def test_components_come_layer_by_layer():
    names = [str(component) for component in components(small_spec())]
    assert names == ["L0.H0", "L0.H1", "L0.mlp", "L1.H0", "L1.H1", "L1.mlp"]
    assert [str(c) for c in components(small_spec(), ("attention",))] == ["L0.attn", "L1.attn"]


def test_components_sort():
    found = components(small_spec(), ("head", "mlp", "attention"))
    assert [str(c) for c in sorted(found)][:4] == ["L0.attn", "L0.H0", "L0.H1", "L0.mlp"]


def test_a_component_that_the_model_lacks():
    Component(1, "head", 1).check(small_spec())
    with pytest.raises(ConfigError, match=r"layer of L2.mlp must be below `n_layers` \(=2\)"):
        Component(2, "mlp").check(small_spec())
    with pytest.raises(ConfigError, match=r"head of L0.H2 must be below `n_heads` \(=2\)"):
        Component(0, "head", 2).check(small_spec())


def test_site_errors():
    with pytest.raises(InterventionError, match=r"`site` must be one of 'embed', .*; got 'result'"):
        site("result", 0)
    with pytest.raises(InterventionError, match="Site 'z' needs `layer`; got None"):
        site("z")
    with pytest.raises(InterventionError, match="Site 'embed' takes no `layer`; got 0"):
        site("embed", 0)
    assert site("z", 1) == "blocks.1.attn.hook_z"


@pytest.mark.parametrize("name", SITES)
def test_every_site_fires_and_has_an_effect(name):
    model = random_model(small_spec())
    layer = 1 if "{layer}" in SITES[name] else None
    before = model(random_tokens())
    with hooked(model, [(name, layer, torch.zeros_like)]) as fired:
        after = model(random_tokens())
    assert fired == {site(name, layer): 1}
    assert not torch.allclose(before, after)


@pytest.mark.usefixtures("unchecked")
def test_a_component_must_be_text():
    with pytest.raises(ConfigError, match=r"must be text such as 'L0.H1'.*got 3"):
        Component.parse(3)  # type: ignore[arg-type]
