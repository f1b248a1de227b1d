"""Which variants share their layers, and what a kept unablated pass makes of them."""

from __future__ import annotations

import pytest
import torch
from small_models import random_model, random_tokens, small_spec

from interp_shortcuts.models.clean import CleanPasses
from interp_shortcuts.models.replacements import Donors, Replacement
from interp_shortcuts.models.staged import StagedModel
from interp_shortcuts.models.variant_tree import tree_of
from interp_shortcuts.models.variants import variant_logits

ZERO = torch.zeros(())


def z(layer: int, head: int, value: torch.Tensor | Donors = ZERO) -> Replacement:
    return Replacement("z", layer, head, value)


def test_variants_are_one_until_they_part():
    both = (z(0, 0), z(0, 1))
    other = torch.ones(())
    variants = [both, (*both, z(1, 0)), (z(0, 0), z(0, 1, other)), (), (z(1, 0),)]
    tree = tree_of(variants, n_layers=2, row=4, length=5)
    assert [len(level.nodes) for level in tree.levels] == [2, 4]
    first, second, third, unablated, late = (
        None if leaf is None else (leaf, tree.levels[1].nodes[leaf].parent) for leaf in tree.leaves
    )
    assert unablated is None
    assert first
    assert second
    assert third
    assert late
    assert len({first, second, third, late}) == 4
    assert first[1] == second[1] != third[1]
    assert late[1] is None


def test_what_is_not_read_changes_nothing():
    donors = Donors(random_tokens(seed=1))
    late = [Replacement(site, 1, None, donors, (0, 2)) for site in ("mlp_out", "resid_post")]
    tree = tree_of([(edit,) for edit in late], n_layers=2, row=4, length=5)
    assert tree.leaves == (None, None)
    read = Replacement("resid_post", 1, None, donors, (0, -1))
    (node,) = tree_of([(z(0, 0), read)], n_layers=2, row=4, length=5).levels[1].nodes
    assert not node.attends
    assert not node.needs_mlp


@pytest.mark.parametrize(
    "changes", [{}, {"normalization": "RMS"}, {"attention": "bidirectional"}], ids=str
)
def test_kept_passes_change_no_logits(changes):
    staged = StagedModel.of(random_model(small_spec(n_layers=3, **changes)), dtype=torch.float64)
    tokens, donors = random_tokens(11), Donors(random_tokens(11, seed=1))
    swapped = Replacement("resid_pre", 0, None, donors, (1, -3))
    variants = [
        (),
        (swapped,),
        (swapped, Replacement("resid_pre", 0, None, donors, (0,))),
        (swapped, z(1, 0)),
        (z(0, 0), z(1, 1)),
        (z(0, 0, donors), z(2, 1, donors)),
        (Replacement("pattern", 2, 0, torch.full((5, 5), 0.2)), z(0, 1)),
        (Replacement("v", 1, 0, donors, (0, 3)), Replacement("mlp_out", 1, None, donors)),
    ]
    expected = variant_logits(staged, tokens, variants, chunk=4)
    clean = CleanPasses(staged, length=5, row=4)
    for chunk in (4, 100):
        found = variant_logits(staged, tokens, variants, chunk=chunk, clean=clean)
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    assert not torch.allclose(expected[0], expected[1])


def test_another_token_s_stream_before_the_first_layer_is_that_token():
    model, tokens = random_model(small_spec()), random_tokens()
    donors = random_tokens(seed=1)
    exchanged = tokens.clone()
    exchanged[:, 2] = donors[:, 2]
    variant = (Replacement("resid_pre", 0, None, Donors(donors), (2,)),)
    found = variant_logits(model, tokens, [variant])[0]
    with torch.no_grad():
        torch.testing.assert_close(found, model(exchanged)[:, -1])
