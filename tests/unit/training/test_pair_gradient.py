"""The fast gradient on pairs: by hand, and against autograd and a plain one-hot network."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

import pytest
import torch
from torch import nn
from torch.nn import functional

from interp_shortcuts.models.two_layer import TwoLayerNet, build_two_layer
from interp_shortcuts.models.two_layer_spec import PairActivation, TwoLayerSpec
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.training import pair_gradient
from interp_shortcuts.training.environment import training_environment
from interp_shortcuts.training.pair_gradient import PairLoss

TASK = ModularArithmetic(modulus=7, noise=0.3)
ACTIVATIONS = get_args(PairActivation)


def network(activation: str = "relu", *, tied: bool = False, n: int = 7) -> TwoLayerNet:
    spec = TwoLayerSpec(
        n_tokens=n,
        n_classes=n,
        width=11,
        activation=activation,  # type: ignore[arg-type]
        tied=tied,
        init_scale=2.0,
    )
    net = build_two_layer(spec, seed=3)
    with torch.no_grad():
        net.mu += torch.linspace(-1, 1, n)
    return net


def on_train(net: TwoLayerNet, task: ModularArithmetic = TASK) -> PairLoss:
    train = task.split("train")
    return PairLoss(net, task, train.tokens, train.labels)


def gradients(net: TwoLayerNet) -> dict[str, torch.Tensor]:
    found = {}
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None
        found[name] = parameter.grad.clone()
        parameter.grad = None
    return found


def by_autograd(net: TwoLayerNet, tokens: torch.Tensor, labels: torch.Tensor) -> float:
    loss = functional.cross_entropy(net(tokens), labels)
    loss.backward()
    return loss.item()


def test_the_gradient_of_a_network_without_weights_is_known():
    """With zero weights each class has probability 1 / P, and only mu gets a gradient."""
    net = build_two_layer(TwoLayerSpec(n_tokens=7, n_classes=7, width=5))
    loss = on_train(net).backward()
    assert loss == pytest.approx(torch.log(torch.tensor(7.0)).item(), abs=1e-6)
    found = gradients(net)
    train = TASK.split("train")
    shares = torch.bincount(train.labels, minlength=7) / train.n
    assert found["mu"] == pytest.approx((1 / 7 - shares).numpy(), abs=1e-6)
    for name in ("U", "V", "W"):
        assert not found[name].any()


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_it_equals_autograd_through_the_forward(
    activation: str, tied: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pair_gradient, "PAIRS_AT_ONCE", 13)  # 39 pairs: three chunks
    net, train = network(activation, tied=tied).double(), TASK.split("train")
    loss = on_train(net).backward()
    found = gradients(net)
    assert loss == pytest.approx(by_autograd(net, train.tokens, train.labels), rel=1e-12)
    wanted = gradients(net)
    assert list(found) == list(wanted) == (["U", "W", "mu"] if tied else ["U", "V", "W", "mu"])
    for name, value in wanted.items():
        assert torch.linalg.norm(found[name] - value) <= 1e-12 * torch.linalg.norm(value), name
        assert found[name].any()


def test_it_equals_one_hot_inputs_through_linear_layers_in_float32():
    task = ModularArithmetic(modulus=23, noise=0.3)
    net, train = network(n=23), task.split("train")
    first, second, out = (
        nn.Linear(23, 11, bias=False),
        nn.Linear(23, 11, bias=False),
        nn.Linear(11, 23),
    )
    with torch.no_grad():
        first.weight.copy_(net.U.T)
        second.weight.copy_(net.V.T)
        out.weight.copy_(net.W.T)
        out.bias.copy_(net.mu)
    a, b = functional.one_hot(train.tokens, 23).float().unbind(1)
    functional.cross_entropy(out(torch.relu(first(a) + second(b))), train.labels).backward()
    on_train(net, task).backward()
    found = gradients(net)
    for name, parameter in {"U": first.weight, "V": second.weight, "W": out.weight}.items():
        assert parameter.grad is not None
        apart = torch.linalg.norm(found[name] - parameter.grad.T)
        assert apart <= 1e-6 * torch.linalg.norm(parameter.grad), name


@pytest.mark.parametrize("tied", [False, True])
def test_a_batch_and_gradients_that_are_there_are_added(tied: bool):
    net, train = network(tied=tied).double(), TASK.split("train")
    batches = [torch.tensor([5, 0, 17, 5]), torch.tensor([2])]
    loss = on_train(net)
    values = [loss.backward(batch) for batch in batches]
    found = gradients(net)
    plain = [by_autograd(net, train.tokens[batch], train.labels[batch]) for batch in batches]
    assert values == pytest.approx(plain, rel=1e-12)
    for name, value in gradients(net).items():
        assert torch.allclose(found[name], value, rtol=1e-12, atol=1e-14), name


def test_a_swapped_activation_acts():
    net, train = network("relu").double(), TASK.split("train")
    with net.acting_with("quadratic"):
        loss = on_train(net).backward()
        assert loss == pytest.approx(by_autograd(net, train.tokens, train.labels), rel=1e-12)
    assert loss != pytest.approx(on_train(net).backward(), rel=1e-3)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_bits_each_time_at_any_thread_count(threads: int):
    task = ModularArithmetic(modulus=59)
    spec = TwoLayerSpec(n_tokens=59, n_classes=59, width=512)
    with training_environment(threads=threads, device=torch.device("cpu")):
        found = []
        for _ in range(3):
            net = build_two_layer(spec, seed=0)
            on_train(net, task).backward()
            found.append(gradients(net))
    for one, other in pairwise(found):
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_no_graph_is_left_behind():
    net = network()
    with torch.no_grad():
        on_train(net).backward()
    assert all(not value.requires_grad for value in gradients(net).values())
