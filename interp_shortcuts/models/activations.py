"""The activations of a two-layer network by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.two_layer_spec import PairActivation

ActivationFunction = Callable[[Float[Tensor, "..."]], Float[Tensor, "..."]]

PAIR_ACTIVATIONS: Mapping[PairActivation, ActivationFunction] = MappingProxyType(
    {
        "relu": torch.relu,
        "quadratic": torch.square,
        "gelu": functional.gelu,
        "leaky_relu": functional.leaky_relu,
        "reverse_relu": lambda values: torch.relu(-values),
        "abs": torch.abs,
    }
)


def activation_function(name: str) -> ActivationFunction:
    """The activation of that name.

    Raises:
        ConfigError: If there is none; the message lists the names.
    """
    for known, function in PAIR_ACTIVATIONS.items():
        if known == name:
            return function
    *others, last = map(repr, PAIR_ACTIVATIONS)
    raise ConfigError(f"`activation` must be {', '.join(others)} or {last}; got {name!r}.")
