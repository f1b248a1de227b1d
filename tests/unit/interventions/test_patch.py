"""Patching against activations edited by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from edited_transformer import edited_logits, recorded, small_model, small_tokens

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.interventions.apply import applied
from interp_shortcuts.interventions.patch import Patch, read_activations

SITES = {"mlp": "mlp_out", "resid_pre": "resid_pre", "resid_post": "resid_post"}
NAMES = [
    ("L0.H1",),
    ("L1.H0",),
    ("L0.attn",),
    ("L0.mlp",),
    ("L1.mlp",),
    ("L0.resid_pre",),
    ("L1.resid_pre",),
    ("L0.resid_post",),
    ("L1.resid_post",),
    ("L0.H0", "L1.H2", "L1.mlp"),
]


def by_hand(model, tokens, names, source, positions):
    values, counts = recorded(model, source), {}

    def edit(site, layer, array):
        example = counts[site, layer] = counts.get((site, layer), -1) + 1
        rows = list(range(5)) if positions is None else positions
        for name in names:
            at, part = int(name[1]), name.split(".")[1]
            if at != layer or SITES.get(part, "z") != site:
                continue
            value = values[site, layer][example % len(source)]
            if site != "z":
                array[rows] = value[rows]
            for head in range(3) if part == "attn" else [int(part[1])] if part[0] == "H" else []:
                array[head, rows] = value[head, rows]
        return array

    return edited_logits(model, tokens, edit)


def patched(model, tokens, *interventions):
    with torch.no_grad(), applied(model, *interventions) as changed:
        return changed(tokens)


@pytest.mark.parametrize("positions", [None, [-1], [0, 3]], ids=str)
@pytest.mark.parametrize("names", NAMES, ids="+".join)
def test_a_patch_equals_an_edit_by_hand(names, positions):
    model = small_model(dtype=torch.float64)
    tokens, source = small_tokens(4), small_tokens(4, seed=5)
    found = patched(model, tokens, Patch(names, source, positions))
    expected = by_hand(model, tokens, names, source, positions)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-9)


def test_activations_can_be_given_and_edited():
    model, tokens, source = small_model(), small_tokens(4), small_tokens(4, seed=5)
    names = ("L0.H1", "L1.attn", "L0.mlp", "L1.resid_pre")
    read = read_activations(model, names, source)
    assert [str(component) for component in read] == list(names)
    assert [list(value.shape) for value in read.values()] == [
        [4, 5, 4],
        [4, 5, 3, 4],
        [4, 5, 12],
        [4, 5, 12],
    ]
    for name in names:
        assert torch.equal(
            patched(model, tokens, Patch(name, read)), patched(model, tokens, Patch(name, source))
        )
    halved = {str(component): value / 2 for component, value in read.items()}
    assert not torch.equal(
        patched(model, tokens, Patch("L0.H1", halved)), patched(model, tokens, Patch("L0.H1", read))
    )


def test_given_activations_carry_gradients():
    model, tokens = small_model(), small_tokens(4)
    (activation,) = read_activations(model, "L0.H1", tokens).values()
    activation.requires_grad_()
    with applied(model, Patch("L0.H1", {"L0.H1": activation})) as changed:
        (gradient,) = torch.autograd.grad(changed(tokens)[:, -1, 0].sum(), activation)
    assert gradient.abs().sum() > 0


def test_a_source_of_one_example_donates_to_all():
    model, tokens, source = small_model(), small_tokens(4), small_tokens(1, seed=5)
    found = patched(model, tokens, Patch("L0.H1", source))
    expected = patched(model, tokens, Patch("L0.H1", source.expand(4, -1)))
    torch.testing.assert_close(found, expected)


def test_positions_may_be_one_number():
    model, tokens, source = small_model(), small_tokens(4), small_tokens(4, seed=5)
    found, expected = (
        patched(model, tokens, Patch("L0.H1", source, positions)) for positions in (-1, [4])
    )
    assert torch.equal(found, expected)
    assert Patch("L0.H1", source, -1).describe()["positions"] == [-1]
    assert Patch("L0.H1", source).describe() == {
        "intervention": "Patch",
        "components": ["L0.H1"],
        "acts on": "heads: z, before W_O; MLPs: mlp_out, bias included; the residual stream",
        "source": {"split": "tokens", "n": 4, "sha": None},
        "positions": "all",
    }


def test_errors():
    model, tokens, source = small_model(), small_tokens(4), small_tokens(3, seed=5)
    with pytest.raises(InterventionError, match=r"as many as the model is run on \(=4\).*has 3"):
        patched(model, tokens, Patch("L0.H1", source))
    read = read_activations(model, "L0.H1", source)
    with pytest.raises(
        InterventionError, match="activations of 3 examples; the model was run on 4"
    ):
        patched(model, tokens, Patch("L0.H1", read))
    with pytest.raises(InterventionError, match=r"lacks L1.H0 and holds L0.H1"):
        Patch(("L0.H1", "L1.H0"), read)
    with pytest.raises(InterventionError, match=r"L0.H1 must have the axes \[example position"):
        patched(model, tokens, Patch("L0.H1", {"L0.H1": torch.zeros(5, 4)}))
    with pytest.raises(InterventionError, match=r"`positions` must be in \[-5, 4\].*got 5"):
        patched(model, small_tokens(3), Patch("L0.H1", source, 5))
    with pytest.raises(InterventionError, match="at least one position"):
        Patch("L0.H1", source, [])
    with pytest.raises(InterventionError, match=r"from sequences of 4 positions.* sequences of 5"):
        patched(model, small_tokens(3), Patch("L0.H1", source[:, 1:]))
    with pytest.raises(InterventionError, match=r"at most `n_ctx` \(=5\)"):
        patched(model, tokens, Patch("L0.H1", torch.zeros(4, 6, dtype=torch.long)))
    with pytest.raises(InterventionError, match=r"from 0 to `d_vocab` - 1"):
        patched(model, tokens, Patch("L0.H1", torch.full((4, 5), 7)))


@pytest.mark.usefixtures("unchecked")
def test_the_name_of_a_split_is_no_source():
    with pytest.raises(InterventionError, match=r"`source` must .*`task.split\('adversarial'\)`"):
        Patch("L0.H0", source="adversarial")  # type: ignore[arg-type]
    with pytest.raises(InterventionError, match=r"`source` must .*got ndarray"):
        Patch("L0.H0", source=np.zeros((2, 5)))  # type: ignore[arg-type]
