"""Parts of a model's parameters: every parameter in exactly one, under the documented names."""

from __future__ import annotations

import pytest
import torch
from small_models import NORMALIZATIONS, random_weights, small_spec

from interp_shortcuts.models.build import parameter_shapes
from interp_shortcuts.models.parts import part_vectors, parts


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("n_layers", [1, 3])
def test_every_parameter_is_in_exactly_one_part(normalization, n_layers):
    spec = small_spec(normalization=normalization, n_layers=n_layers)
    counts = {name: torch.zeros(shape) for name, shape in parameter_shapes(spec).items()}
    for pieces in parts(spec).values():
        for name, index in pieces:
            counts[name][index] += 1
    for name, count in counts.items():
        assert (count == 1).all(), name


def test_names_in_the_order_of_the_forward_pass():
    assert list(parts(small_spec(n_layers=1, normalization="LN"))) == [
        "embed",
        "pos_embed",
        *("L0.H0.Q", "L0.H0.K", "L0.H0.V", "L0.H0.O"),
        *("L0.H1.Q", "L0.H1.K", "L0.H1.V", "L0.H1.O"),
        "L0.b_O",
        "L0.mlp",
        "norms",
        "unembed",
    ]
    assert "norms" not in parts(small_spec(normalization="none"))
    assert "norms" not in parts(small_spec(normalization="LNPre"))
    assert len(parts(small_spec(normalization="LN"))["norms"]) == 10


def test_a_heads_slices_hold_its_own_weights_and_biases():
    spec = small_spec()
    weights = random_weights(spec)
    vectors = part_vectors(weights, spec)
    for letter in "QKV":
        own = [weights[f"blocks.1.attn.{kind}_{letter}"][1].flatten() for kind in "Wb"]
        assert torch.equal(vectors[f"L1.H1.{letter}"], torch.cat(own).double())
    assert torch.equal(vectors["L1.H0.O"], weights["blocks.1.attn.W_O"][0].flatten().double())
    assert torch.equal(vectors["L0.b_O"], weights["blocks.0.attn.b_O"].double())
    sizes = sum(vector.numel() for vector in vectors.values())
    assert sizes == sum(weight.numel() for weight in weights.values())
