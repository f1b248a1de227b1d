"""The two-layer network: hand-computed outputs, a plain one-hot reference, weights in and out."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from interp_shortcuts.errors import ConfigError, MeasureError, StorageError
from interp_shortcuts.models.activations import PAIR_ACTIVATIONS, activation_function
from interp_shortcuts.models.two_layer import (
    build_two_layer,
    initial_two_layer_weights,
    load_two_layer_weights,
    read_pair_logits,
    two_layer_of,
    two_layer_weights,
)
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec

PAIRS = torch.cartesian_prod(torch.arange(5), torch.arange(5))
PLAIN = {
    "relu": lambda x: max(x, 0.0),
    "quadratic": lambda x: x * x,
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "leaky_relu": lambda x: x if x > 0 else 0.01 * x,
    "reverse_relu": lambda x: max(-x, 0.0),
    "abs": abs,
}


def spec(**changes):
    return TwoLayerSpec(**{"n_tokens": 5, "n_classes": 4, "width": 6, **changes})


def test_a_hand_built_network():
    """One neuron: pre = 2 - 3 = -1, |pre| = 1, logits (10, -10) + (1, 2)."""
    net = build_two_layer(TwoLayerSpec(n_tokens=2, n_classes=2, width=1, activation="abs"))
    weights = {
        "U": torch.tensor([[5.0], [2.0]]),
        "V": torch.tensor([[-3.0], [7.0]]),
        "W": torch.tensor([[10.0, -10.0]]),
        "mu": torch.tensor([1.0, 2.0]),
    }
    load_two_layer_weights(net, weights)
    assert net(torch.tensor([[1, 0]])).tolist() == [[11.0, -8.0]]
    assert net(torch.tensor([[0, 1]])).tolist() == [[121.0, -118.0]]


@pytest.mark.parametrize("name", PLAIN)
def test_activations(name):
    values = torch.linspace(-3, 3, 13, dtype=torch.float64)
    expected = torch.tensor([PLAIN[name](float(value)) for value in values], dtype=torch.float64)
    torch.testing.assert_close(activation_function(name)(values), expected)
    assert set(PLAIN) == set(PAIR_ACTIVATIONS)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("activation", PLAIN)
def test_the_forward_pass_is_the_formula_on_one_hot_vectors(activation, tied):
    net = build_two_layer(spec(activation=activation, tied=tied), seed=3).double()
    with torch.no_grad():
        net.mu.copy_(torch.arange(4))
    weights = {name: tensor.numpy() for name, tensor in two_layer_weights(net).items()}
    first, second = weights["U"], weights["U" if tied else "V"]
    for a, b in PAIRS.tolist():
        pre = np.eye(5)[a] @ first + np.eye(5)[b] @ second
        post = np.array([PLAIN[activation](value) for value in pre])
        expected = post @ weights["W"] + weights["mu"]
        got = net(torch.tensor([[a, b]]))[0].detach().numpy()
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_hook_points_read_and_edit():
    net = build_two_layer(spec(activation="quadratic"), seed=0)
    logits, cache = net.run_with_cache(PAIRS)
    assert set(net.hook_dict) == {"hook_pre", "hook_post", "hook_logits"}
    torch.testing.assert_close(cache["hook_pre"], net.U[PAIRS[:, 0]] + net.V[PAIRS[:, 1]])
    torch.testing.assert_close(cache["hook_post"], cache["hook_pre"] ** 2)
    assert torch.equal(cache["hook_logits"], logits)
    silenced = net.run_with_hooks(
        PAIRS, fwd_hooks=[("hook_post", lambda values, hook: torch.zeros_like(values))]
    )
    assert torch.equal(silenced, net.mu.expand_as(silenced))
    assert torch.equal(net(PAIRS), logits)


def test_every_parameter_learns():
    net = build_two_layer(spec(activation="gelu"), seed=0)
    net(PAIRS).square().sum().backward()
    assert {name for name, _ in net.named_parameters()} == {"U", "V", "W", "mu"}
    assert all(bool(parameter.grad.any()) for parameter in net.parameters())


def test_a_tied_network_has_one_embedding():
    net = build_two_layer(spec(tied=True), seed=0)
    assert net.V is net.U
    assert [name for name, _ in net.named_parameters()] == ["U", "W", "mu"]
    torch.testing.assert_close(net(PAIRS), net(PAIRS.flip(1)))
    assert copy.deepcopy(net).V is not net.U
    copied = build_two_layer(spec(tied=True))
    load_two_layer_weights(copied, net.state_dict())  # which has U under the name V, too
    assert torch.equal(copied(PAIRS), net(PAIRS))


def test_a_seed_means_the_same_weights_and_leaves_random_state_alone():
    before = torch.get_rng_state()
    one, again, other = (build_two_layer(spec(), seed=seed) for seed in (7, 7, 8))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), again.parameters(), strict=True))
    assert not torch.equal(one.U, other.U)
    assert not torch.equal(one.U, one.V)
    assert one.U[0, 0].item() == pytest.approx(-0.43347847, abs=1e-6)


def test_the_scale_of_the_initial_weights():
    """10,000 and more draws: the standard deviation is within 3% of s / sqrt(P), s / sqrt(M)."""
    weights = initial_two_layer_weights(
        TwoLayerSpec(n_tokens=100, n_classes=50, width=400, init_scale=2.0), seed=0
    )
    assert weights["U"].std().item() == pytest.approx(2 / 10, rel=0.03)
    assert weights["V"].std().item() == pytest.approx(2 / 10, rel=0.03)
    assert weights["W"].std().item() == pytest.approx(2 / 20, rel=0.03)
    assert abs(weights["U"].mean().item()) < 0.01
    assert not weights["mu"].any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop("mu"), "The weights lack `mu`"),
        (lambda weights: weights.update(b=torch.zeros(1)), "The weights hold `b`, which the model"),
        (
            lambda weights: weights.update(W=torch.zeros(6, 5)),
            r"`W` must have shape \[6, 4\]; got \[6, 5\]",
        ),
        (
            lambda weights: weights["U"].fill_(torch.nan),
            "`U` must be finite; 30 of its 30 values are not",
        ),
    ],
)
def test_weights_that_do_not_fit_change_nothing(change, message):
    net = build_two_layer(spec(), seed=0)
    before = two_layer_weights(net)
    weights = two_layer_weights(build_two_layer(spec(), seed=1))
    change(weights)
    with pytest.raises(StorageError, match=message):
        load_two_layer_weights(net, weights)
    assert all(torch.equal(tensor, before[name]) for name, tensor in two_layer_weights(net).items())


def test_a_tied_network_refuses_another_second_embedding():
    net = build_two_layer(spec(tied=True), seed=0)
    with pytest.raises(StorageError, match="The weights hold `V`"):
        load_two_layer_weights(net, two_layer_weights(build_two_layer(spec(), seed=0)))


def test_weights_are_copies_and_round_trip():
    net = build_two_layer(spec(), seed=0)
    weights = two_layer_weights(net)
    weights["U"].zero_()
    assert bool(net.U.any())
    other = build_two_layer(spec())
    load_two_layer_weights(other, two_layer_weights(net))
    assert torch.equal(other(PAIRS), net(PAIRS))


def test_logits_are_read_in_chunks_without_gradients():
    net = build_two_layer(spec(), seed=0)
    logits = read_pair_logits(net, PAIRS, chunk=4)
    torch.testing.assert_close(logits, net(PAIRS).detach())
    assert not logits.requires_grad
    assert read_pair_logits(net, PAIRS[:0]).shape == (0, 4)
    with pytest.raises(MeasureError, match="`tokens` must be from 0 to 4; got 0 to 5"):
        read_pair_logits(net, torch.tensor([[0, 5]]))


def test_half_precision_is_read_in_float32():
    net = build_two_layer(spec(), seed=0).to(torch.bfloat16)
    wide = build_two_layer(spec())
    load_two_layer_weights(wide, {k: v.float() for k, v in two_layer_weights(net).items()})
    assert torch.equal(read_pair_logits(net, PAIRS), read_pair_logits(wide, PAIRS))
    assert net.U.dtype == torch.bfloat16


def test_a_swapped_activation_is_put_back_also_after_an_error():
    net = build_two_layer(spec(), seed=0)
    before = net(PAIRS)
    with net.acting_with("abs"):
        assert not torch.equal(net(PAIRS), before)
        with pytest.raises(RuntimeError, match="stop"), net.acting_with("quadratic"):
            raise RuntimeError("stop")
        assert net.activation == "abs"
    assert net.activation == net.spec.activation == "relu"
    assert torch.equal(net(PAIRS), before)
    with pytest.raises(ConfigError, match=r"`activation` must be 'relu', .* or 'abs'; got 'tanh'"):
        activation_function("tanh")


def test_a_compiled_network_is_unwrapped_and_others_are_refused():
    net = build_two_layer(spec(), seed=0)
    assert two_layer_of(torch.compile(net, backend="eager")) is net
    with pytest.raises(ConfigError, match="`model` must be a TwoLayerNet; got Linear"):
        two_layer_of(nn.Linear(2, 2))


def test_specs_are_told_apart_by_their_hash():
    assert spec().hash == spec().hash
    assert len({spec().hash, spec(width=7).hash, spec(tied=True).hash}) == 3
    with pytest.raises(ValueError, match="activation"):
        spec(activation="tanh")
    with pytest.raises(ValueError, match="width"):
        spec(width=0)
