"""A model that `torch.compile` has wrapped: how it is found inside, and what its names are."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

from interp_shortcuts.errors import ConfigError

_INNER = "_orig_mod"
PREFIX = f"{_INNER}."
"""What a compiled model puts before the names of its parameters."""

Net = TypeVar("Net", bound=nn.Module)


def unwrapped(model: nn.Module, *kinds: type[Net]) -> Net:
    """The model itself, also when a `torch.compile`d one is handed over.

    Args:
        model: The model.
        kinds: The classes that it may be of.

    Raises:
        ConfigError: If there is no model of these kinds inside.
    """
    inner: object = model
    while isinstance(inner, nn.Module):
        if isinstance(inner, kinds):
            return inner
        inner = getattr(inner, _INNER, None)
    *others, last = (kind.__name__ for kind in kinds)
    names = f"{', '.join(others)} or {last}" if others else last
    raise ConfigError(f"`model` must be a {names}; got {type(model).__name__}.")
