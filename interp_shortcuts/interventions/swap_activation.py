"""A two-layer network acts with another activation than it was trained with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import nn

from interp_shortcuts.errors import ConfigError, InterventionError
from interp_shortcuts.models.activations import activation_function
from interp_shortcuts.models.two_layer import TwoLayerNet, two_layer_of


@dataclass(frozen=True)
class SwapActivation:
    """Every neuron's activation is replaced; the weights are kept.

    From arXiv 2605.18022: a network trained with ReLU keeps or improves its test accuracy with
    `"quadratic"` or `"reverse_relu"`.

    Attributes:
        to: The activation that acts.

    Raises:
        InterventionError: If there is no such activation.
    """

    to: str

    def __post_init__(self) -> None:
        try:
            activation_function(self.to)
        except ConfigError as error:
            raise InterventionError(str(error).replace("`activation`", "`to`")) from error

    def describe(self) -> dict[str, Any]:
        """The intervention in words, fit for JSON."""
        return {
            "intervention": "SwapActivation",
            "acts on": "all neurons, between hook_pre and hook_post",
            "to": self.to,
        }


@contextmanager
def swapped(model: nn.Module, swap: SwapActivation) -> Iterator[TwoLayerNet]:
    """The network under a swapped activation, while the block runs; then it is as before.

    Hooks stay and act: those at `hook_pre` before the new activation, the others after it.

        with swapped(net, SwapActivation("quadratic")) as quadratic:
            logits = read_pair_logits(quadratic, task.split("test").tokens)

    Args:
        model: A `TwoLayerNet`. Of a compiled one, run what the block yields, the eager network.
        swap: What it acts with.

    Yields:
        The eager network.
    """
    with two_layer_of(model).acting_with(swap.to) as net:
        yield net
