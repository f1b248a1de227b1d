"""The parts that a model's parameters fall into, each named by what it belongs to.

Every parameter lies in exactly one part, so squared norms over the parts add up to the model's.
What is computed per part (gradients, norms, differences) is left to the measures.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from interp_shortcuts.models.build import parameter_shapes
from interp_shortcuts.models.sites import Component
from interp_shortcuts.models.spec import ModelSpec

Slices = tuple[tuple[str, int | slice], ...]
"""Pieces of parameters: the parameter's name, and the index of the piece on its first axis."""

WHOLE = slice(None)


def parts(spec: ModelSpec) -> dict[str, Slices]:
    """The pieces of parameters that make up each part, in the order of the forward pass.

    `embed`, `pos_embed`, `unembed` (with b_U); `L0.H1.Q`, `.K`, `.V` (a head's slices of W and b)
    and `.O` (its slice of W_O); `L0.b_O`, which the heads of a layer share; `L0.mlp` (both matrices
    and biases); `norms` (the gains and biases of all normalisations), if the model has any.
    """
    shapes = parameter_shapes(spec)

    def whole(prefix: str) -> Slices:
        return tuple((name, WHOLE) for name in shapes if name.startswith(prefix))

    found = {"embed": whole("embed."), "pos_embed": whole("pos_embed.")}
    for layer in range(spec.n_layers):
        attn = f"blocks.{layer}.attn"
        for head in range(spec.n_heads):
            label = str(Component(layer, "head", head))
            for letter in "QKV":
                found[f"{label}.{letter}"] = (
                    (f"{attn}.W_{letter}", head),
                    (f"{attn}.b_{letter}", head),
                )
            found[f"{label}.O"] = ((f"{attn}.W_O", head),)
        found[f"L{layer}.b_O"] = whole(f"{attn}.b_O")
        found[str(Component(layer, "mlp"))] = whole(f"blocks.{layer}.mlp.")
    norms = tuple((name, WHOLE) for name in shapes if ".ln" in f".{name}")
    if norms:
        found["norms"] = norms
    found["unembed"] = whole("unembed.")
    return found


def part_vectors(
    tensors: Mapping[str, Tensor], spec: ModelSpec
) -> dict[str, Float[Tensor, " parameter"]]:
    """One float64 vector for each part, from tensors that are named and shaped as parameters."""
    return {
        label: torch.cat([tensors[name][index].flatten() for name, index in pieces]).double()
        for label, pieces in parts(spec).items()
    }
