"""What small dense networks share: named matrices, one activation that can be swapped, hook points.

The kinds say which matrices there are and how they are composed: `two_layer.py`, `picture_net.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.func import functional_call

from interp_shortcuts.models.activations import activation_function
from interp_shortcuts.models.build import check_weights, without_extras
from interp_shortcuts.models.lens import HookedRootModule
from interp_shortcuts.models.random_state import kept_random_state
from interp_shortcuts.streams import numpy_stream


@runtime_checkable
class DenseSpec(Protocol):
    """What the description of a dense network says."""

    @property
    def activation(self) -> Any:
        """Name of the activation of its neurons."""
        ...

    @property
    def init_scale(self) -> float:
        """Factor on the standard deviation of all initial weights."""
        ...

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter by name; a matrix maps its rows to its columns."""
        ...


Spec = TypeVar("Spec", bound=DenseSpec)
Net = TypeVar("Net", bound="DenseNet[Any]")


class DenseNet(HookedRootModule, Generic[Spec]):
    """A network whose parameters are those that its spec names; all of them are zero at first.

    Attributes:
        spec: What it was built from.
    """

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec = spec
        self._activation: str = spec.activation
        for name, shape in spec.shapes.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape)))

    @property
    def activation(self) -> str:
        """The activation that acts now: the spec's, unless it is swapped."""
        return self._activation

    @contextmanager
    def acting_with(self: Net, activation: str) -> Iterator[Net]:
        """The network with another activation while the block runs; then with the one before.

        Raises:
            ConfigError: If there is no such activation.
        """
        activation_function(activation)  # refuses an unknown one
        before = self._activation
        self._activation = activation
        try:
            yield self
        finally:
            self._activation = before


def built(
    kind: Callable[[Spec], Net],
    spec: Spec,
    weights: Mapping[str, Tensor] | None,
    device: str | torch.device,
) -> Net:
    """A new network, in float32 and in training mode; global random state stays untouched.

    Args:
        kind: The class of the network.
        spec: What to build.
        weights: Its weights; None leaves them zero.
        device: Where the parameters live.
    """
    with kept_random_state():
        net = kind(spec)
    if weights is not None:
        copy_weights(net, weights)
    for parameter in net.parameters():
        parameter.data = parameter.data.to(device)
    return net


def drawn_weights(spec: DenseSpec, seed: int, *, stream: str) -> dict[str, Tensor]:
    """Initial weights: normal with standard deviation s / sqrt(rows), and biases of zero.

    s is `init_scale`, and the rows of a matrix are the inputs that it takes. Each matrix has the
    stream `("init", stream, name)`; the draws are NumPy's.

    Returns:
        float32 tensors on the CPU, by the names of the spec's `shapes`.
    """
    weights = {}
    for name, shape in spec.shapes.items():
        weights[name] = torch.zeros(shape)
        if len(shape) > 1:
            draw = numpy_stream(seed, "init", stream, name).standard_normal(shape)
            weights[name].copy_(torch.from_numpy(spec.init_scale / math.sqrt(shape[0]) * draw))
    return weights


def weights_in(net: DenseNet[Any]) -> dict[str, Tensor]:
    """A copy of every parameter, on the CPU and in the network's dtype."""
    return {
        name: parameter.detach().to("cpu", copy=True).contiguous()
        for name, parameter in net.named_parameters()
    }


def copy_weights(net: DenseNet[Any], weights: Mapping[str, Any]) -> None:
    """Copies weights into a network; nothing is changed unless all of them fit.

    Args:
        net: The network, whose dtype and device are kept.
        weights: Exactly its parameters, by name; the prefix of a compiled network is ignored.

    Raises:
        StorageError: If a name is missing or unknown, a shape differs, or a value is not finite.
    """
    given = without_extras(weights)
    check_weights(given, net.spec.shapes)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.copy_(given[name])


def logits_in_chunks(
    net: DenseNet[Any], inputs: Shaped[Tensor, "example input"], *, chunk: int
) -> Float[Tensor, "example class"]:
    """The logits, without gradients, on the CPU, computed in float32 or float64.

    Hooks that are attached act, and so does a swapped activation. The network is left as it was.

    Args:
        net: The network.
        inputs: What its forward pass takes; no example is fine.
        chunk: Examples per forward pass.
    """
    parameters = dict(net.named_parameters())
    one = next(iter(parameters.values()))
    wide = torch.promote_types(one.dtype, torch.float32)
    weights = {name: parameter.detach().to(wide) for name, parameter in parameters.items()}
    with torch.no_grad():
        parts = [
            functional_call(
                net, weights, (part.to(one.device, wide if part.is_floating_point() else None),)
            ).cpu()
            for part in inputs.split(chunk)
        ]
    return torch.cat(parts)
