"""Features f(v) of a single integer v, with which measures compare what a head does.

Which feature a measure uses by default is the task's business (`ShortcutTask.label_feature`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from interp_shortcuts.errors import ConfigError

_RESIDUE = re.compile(r"residue_([1-9][0-9]*)")


@dataclass(frozen=True)
class Feature:
    """A number for each integer, such as its magnitude or its parity.

    Attributes:
        name: What the feature is called in results.
        function: Takes an int64 NumPy array of integers, returns a number for each.
        definition: The formula, in words that fit into a table.
    """

    name: str
    function: Callable[[Any], Any]
    definition: str = ""

    def __call__(self, integers: Any) -> np.ndarray:
        """The feature of these integers."""
        return np.asarray(self.function(np.asarray(integers, dtype=np.int64)))

    def values(self, n_integers: int) -> Float64[np.ndarray, " integer"]:
        """The feature of 0 to V-1.

        Args:
            n_integers: V.

        Raises:
            ConfigError: If the function does not give one finite number for each integer.
        """
        integers: Int64[np.ndarray, " integer"] = np.arange(n_integers, dtype=np.int64)
        result = self(integers)
        if result.shape != integers.shape or result.dtype.kind not in "biuf":
            raise ConfigError(
                f"A feature must give one number for each integer: `{self.name}` got an array of "
                f"shape {integers.shape} and returned shape {result.shape}, dtype {result.dtype}."
            )
        values = result.astype(np.float64)
        if not np.isfinite(values).all():
            first = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ConfigError(
                f"A feature must be finite: `{self.name}` is {values[first]} at {first}."
            )
        return values

    def n_values(self, n_integers: int) -> int:
        """Number of distinct values over 0 to V-1."""
        return len(np.unique(self.values(n_integers)))


def _magnitude(integers: np.ndarray) -> np.ndarray:
    return integers


def _residue(integers: np.ndarray, *, modulus: int) -> np.ndarray:
    return integers % modulus


FEATURES: MappingProxyType[str, Feature] = MappingProxyType(
    {
        "magnitude": Feature("magnitude", _magnitude, "f(v) = v"),
        "parity": Feature("parity", partial(_residue, modulus=2), "f(v) = v mod 2"),
    }
)
"""The features that have a name of their own; `residue_k` exists for every k >= 2 besides."""


@cache
def _residue_feature(modulus: int) -> Feature:
    return Feature(
        f"residue_{modulus}", partial(_residue, modulus=modulus), f"f(v) = v mod {modulus}"
    )


def feature(spec: str | Feature | Callable[[Any], Any]) -> Feature:
    """The feature that a name, a feature or a function stands for.

    Args:
        spec: `"magnitude"` (v), `"parity"` (v mod 2), `"residue_k"` (v mod k, e.g.
            `"residue_3"`), a `Feature`, or a function from an int64 NumPy array to an array of
            numbers of the same shape.

    Raises:
        ConfigError: If there is no feature of that name.
    """
    if isinstance(spec, Feature):
        return spec
    if isinstance(spec, str):
        if spec in FEATURES:
            return FEATURES[spec]
        match = _RESIDUE.fullmatch(spec)
        if match and int(match[1]) >= 2:
            return _residue_feature(int(match[1]))
        choices = ", ".join(repr(name) for name in FEATURES)
        raise ConfigError(
            f"`feature` must be {choices}, 'residue_k' with k >= 2 (e.g. 'residue_3'), a Feature "
            f"or a function; got {spec!r}."
        )
    name = getattr(spec, "__name__", "custom")
    return Feature("custom" if name == "<lambda>" else name, spec, f"f(v) = {name}(v)")
