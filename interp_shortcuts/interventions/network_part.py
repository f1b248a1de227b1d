"""A part of a two-layer network as a network of its own: the same spec, some weights removed.

Which weights a part keeps is said by data: `FrequencyFilter` in `spectral.py`, `NeuronPartition`
in `neurons.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.models.two_layer import (
    TwoLayerNet,
    build_two_layer,
    load_two_layer_weights,
    two_layer_of,
)


class NetworkPart(ABC):
    """A described part of a two-layer network."""

    @abstractmethod
    def weights(self, net: TwoLayerNet) -> dict[str, Tensor]:
        """What the part keeps of every parameter, by name, on the CPU."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The part in words and numbers, fit for JSON, to be stored with its results."""


def subnetwork(model: nn.Module, part: NetworkPart) -> TwoLayerNet:
    """A new network with a part of the weights of another, which is left as it is.

        general = subnetwork(net, FrequencyFilter("dominant"))
        accuracy = task.correct(read_pair_logits(general, test.tokens), test.labels)

    Args:
        model: A `TwoLayerNet`, also a compiled one.
        part: What is kept.

    Returns:
        A network with the spec, dtype and device of the given one and the spec's activation, in
        eval mode; hooks are not copied.

    Raises:
        InterventionError: If the part is not one of the network.
    """
    net = two_layer_of(model)
    copy = build_two_layer(net.spec, device=net.mu.device)
    for parameter in copy.parameters():
        parameter.data = parameter.data.to(net.mu.dtype)
    load_two_layer_weights(copy, part.weights(net))
    return copy.eval()


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuses a value that is not among the choices, which the message lists.

    Raises:
        InterventionError: Names the field, the choices and the value.
    """
    if value not in choices:
        *others, last = map(repr, choices)
        raise InterventionError(f"`{name}` must be {', '.join(others)} or {last}; got {value!r}.")
