"""Two-layer networks on modular arithmetic whose accuracy on every group is known beforehand.

A lookup neuron answers one pair and is silent on all others: u and v are 1 at its residues and -1
elsewhere, so that u_a + v_b is 2 at the pair and at most 0 off it. A network of them memorises any
labels. Taking one frequency out of u and v moves their entries by at most 4 / P and leaves the sum
at most 0 off the pair, so that network R remembers what the whole network does.
"""

from __future__ import annotations

import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from interp_shortcuts.measures.modular.spectra import NeuronSpectra
from interp_shortcuts.models.analytic import analytic_network
from interp_shortcuts.models.two_layer import (
    TwoLayerNet,
    build_two_layer,
    load_two_layer_weights,
    two_layer_weights,
)
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.residues import Arithmetic
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.tasks.pair_split import PairSplit


def lookup_weights(
    split: PairSplit, modulus: int, *, size: float = 1.0
) -> dict[str, Float[Tensor, "..."]]:
    """A lookup neuron for each pair of a split, which adds 2 `size` to the logit of its label."""
    n = split.n
    first, second = torch.full((2, modulus, n), -1.0)
    first[split.tokens[:, 0], torch.arange(n)] = 1.0
    second[split.tokens[:, 1], torch.arange(n)] = 1.0
    unembed = torch.zeros(n, modulus)
    unembed[torch.arange(n), split.labels] = size
    return {"U": first, "V": second, "W": unembed, "mu": torch.zeros(modulus)}


def network_of(weights: dict[str, Tensor], **changes: object) -> TwoLayerNet:
    """A ReLU network with these weights."""
    width, modulus = weights["W"].shape
    spec = TwoLayerSpec(n_tokens=modulus, n_classes=modulus, width=width)
    net = build_two_layer(spec.model_copy(update=changes))
    load_two_layer_weights(net, weights)
    return net


def memorising_network(task: ModularArithmetic) -> TwoLayerNet:
    """Every training label is remembered; of the other pairs nothing is known: all logits are 0."""
    return network_of(lookup_weights(task.split("train"), task.modulus))


def rule_under_noise(task: ModularArithmetic, *, width: int = 1024) -> TwoLayerNet:
    """The analytic solution, with the wrong labels remembered on top."""
    rule = two_layer_weights(
        analytic_network(
            task.modulus, width=width, activation="relu", arithmetic=task.arithmetic, seed=1
        )
    )
    wrong = lookup_weights(task.split("noisy"), task.modulus, size=width / 4)
    return network_of(
        {
            "U": torch.cat([rule["U"], wrong["U"]], dim=1),
            "V": torch.cat([rule["V"], wrong["V"]], dim=1),
            "W": torch.cat([rule["W"], wrong["W"]], dim=0),
            "mu": rule["mu"],
        }
    )


def spectra_of(net: TwoLayerNet, arithmetic: Arithmetic = "add") -> xr.Dataset:
    """The spectra of a network, round the circle of an operation."""
    task = ModularArithmetic(arithmetic=arithmetic, modulus=net.spec.n_tokens)
    return NeuronSpectra()(net, task)
