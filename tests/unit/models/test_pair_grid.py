"""The logits of all pairs at once, against the network's own forward pass."""

from __future__ import annotations

import pytest
import torch

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.activations import PAIR_ACTIVATIONS
from interp_shortcuts.models.pair_grid import grid_logits, neuron_logits
from interp_shortcuts.models.two_layer import (
    build_two_layer,
    load_two_layer_weights,
    read_pair_logits,
    two_layer_weights,
)
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.tasks.modular import ModularArithmetic


def net_of(n=11, *, width=150, **changes):
    spec = TwoLayerSpec(n_tokens=n, n_classes=n, width=width, **changes)
    net = build_two_layer(spec, seed=0)
    with torch.no_grad():
        net.mu.copy_(torch.arange(n))
    return net


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("activation", PAIR_ACTIVATIONS)
@pytest.mark.parametrize("arithmetic", ["add", "multiply"])
def test_it_is_the_forward_pass(arithmetic, activation, tied):
    net, task = (
        net_of(tied=tied, activation=activation),
        ModularArithmetic(arithmetic=arithmetic, modulus=11),
    )
    residues = torch.from_numpy(task.residues)
    found = grid_logits(two_layer_weights(net), residues, activation=activation)
    torch.testing.assert_close(found.T, read_pair_logits(net, task.pairs.tokens))


def test_neurons_add_up():
    net, residues = net_of(), torch.arange(11)
    weights, everyone = two_layer_weights(net), torch.arange(150)
    whole = grid_logits(weights, residues, activation="relu")
    parts = [everyone[::2], everyone[1::2].flip(0)]
    halves = [neuron_logits(weights, residues, part, activation="relu") for part in parts]
    torch.testing.assert_close(halves[0] + halves[1] + net.mu[:, None], whole)
    none = neuron_logits(weights, residues, everyone[:0], activation="relu")
    assert none.shape == (11, 121)
    assert not none.any()


def test_half_precision_is_widened_and_double_is_kept():
    net, residues = net_of().bfloat16(), torch.arange(11)
    half = grid_logits(two_layer_weights(net), residues, activation="relu")
    full = net_of()
    load_two_layer_weights(full, {name: w.float() for name, w in two_layer_weights(net).items()})
    assert half.dtype == torch.float32
    assert torch.equal(half, grid_logits(two_layer_weights(full), residues, activation="relu"))
    double = grid_logits(two_layer_weights(full.double()), residues, activation="relu")
    assert double.dtype == torch.float64


def test_an_unknown_activation_is_refused():
    with pytest.raises(ConfigError, match=r"`activation` must be 'relu', .* got 'tanh'"):
        grid_logits(two_layer_weights(net_of()), torch.arange(11), activation="tanh")
