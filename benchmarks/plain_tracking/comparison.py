"""How far the package's numbers are from the plain ones, by what rounding can do to them.

Both sides run in float32, in another order of additions. That moves a number by rounding, except
where a single example decides: a prediction at a tie of two logits, two scores that swap ranks, a
pair at the threshold of the recovered fraction. Then a fraction moves by one example, on whichever
side of the tie rounding falls. Such numbers are compared too, and those that differ are counted.

Ratios of gradients are a kind of their own: once the loss is saturated, gradients are small
differences of float32 numbers. Both sides compute losses from logits in float64, which keeps the
digits of p - y; on the trained demo they are then up to 2e-5 from each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from plain_tracking.reading import Numbers

TOLERANCE = 1e-5
RATIO_TOLERANCE = 1e-4
KINDS = ("continuous", "gradient ratios", "by example")
GRADIENT_RATIOS = (
    "gradient_cosine",
    "gradient_amplification",
    "gradient_excess",
    "gradient_share",
)
BY_EXAMPLE = (
    "accuracy",
    "shortcut_rate",
    "transfer",
    "disruption",
    "spearman_activation",
    "recovered_n",
    "left_out",
)
"""Parts of the names of the variables that single examples decide."""


class Difference(NamedTuple):
    """How far the numbers of one kind are apart, relative to those above 1."""

    n: int
    n_differ: int
    """Those that are apart by more than the tolerance."""
    largest: float
    largest_absolute: float
    variable: str
    """The one with the largest difference."""


def differences(library: Numbers, plain: Numbers) -> dict[str, Difference]:
    """By kind, over all variables of the plain side.

    Raises:
        ValueError: If a variable has another shape, or NaN elsewhere.
    """
    return {
        kind: _difference(library, plain, (name for name in plain if kind_of(name) == kind))
        for kind in KINDS
    }


def agree(found: Mapping[str, Difference]) -> bool:
    """Whether the two sides differ by no more than rounding; fractions are left to the reader."""
    return (
        found["continuous"].largest <= TOLERANCE
        and found["gradient ratios"].largest <= RATIO_TOLERANCE
    )


def kind_of(name: str) -> str:
    """What rounding can do to a variable, see above."""
    if name in GRADIENT_RATIOS:
        return "gradient ratios"
    return "by example" if any(part in name for part in BY_EXAMPLE) else "continuous"


def _difference(library: Numbers, plain: Numbers, names: Iterable[str]) -> Difference:
    n = n_differ = 0
    largest, largest_absolute, variable = 0.0, 0.0, ""
    for name in names:
        ours, theirs = library[name].astype(np.float64), plain[name].astype(np.float64)
        if ours.shape != theirs.shape:
            raise ValueError(f"`{name}` has shape {ours.shape}; the plain one {theirs.shape}.")
        if not np.array_equal(np.isnan(ours), np.isnan(theirs)):
            raise ValueError(f"`{name}` is NaN elsewhere than the plain one.")
        absolute = np.nan_to_num(np.abs(ours - theirs))
        absolute[_other_examples(library, plain, name)] = 0  # seen where the counts are compared
        apart = absolute / np.maximum(np.nan_to_num(np.abs(theirs)), 1)
        n += apart.size
        n_differ += int((apart > TOLERANCE).sum())
        largest_absolute = max(largest_absolute, float(absolute.max(initial=0)))
        if apart.max(initial=0) > largest:
            largest, variable = float(apart.max()), name
    return Difference(n, n_differ, largest, largest_absolute, variable)


def _other_examples(library: Numbers, plain: Numbers, name: str) -> np.ndarray:
    """Where the two sides averaged over another number of examples."""
    count = f"{name.removesuffix('_interval')}_n"
    if count not in plain or count not in library:
        return np.zeros(plain[name].shape, dtype=bool)
    other = library[count] != plain[count]
    with_bounds = other[..., None] if name.endswith("_interval") else other
    return np.broadcast_to(with_bounds, plain[name].shape)
