"""95% intervals of a proportion and of a mean over examples.

Intervals over seeds (bootstrap, survival) are another matter and live with the sweeps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped
from scipy import stats

LEVEL = 0.95


class Mean(NamedTuple):
    """A mean over examples with its interval and the number of examples that defined it."""

    value: Float[np.ndarray, "..."]
    interval: Float[np.ndarray, "... bound"]
    n: Shaped[np.ndarray, "..."]


def proportion_interval(
    successes: Shaped[np.ndarray, "*batch"],
    n: Shaped[np.ndarray, "*batch"],
    *,
    level: float = LEVEL,
) -> Float[np.ndarray, "*batch bound"]:
    """Clopper-Pearson interval, exact for independent examples; NaN where n = 0.

    Args:
        successes: Number of examples that count.
        n: Number of examples.
        level: Coverage.

    Returns:
        Low and high along the last axis, in [0, 1].
    """
    k = np.asarray(successes, dtype=np.float64)
    n = np.asarray(n, dtype=np.float64)
    tail = (1 - level) / 2
    with np.errstate(invalid="ignore"):
        low = np.where(k > 0, stats.beta.ppf(tail, np.maximum(k, 1), n - k + 1), 0.0)
        high = np.where(k < n, stats.beta.ppf(1 - tail, k + 1, np.maximum(n - k, 1)), 1.0)
    return np.where((n > 0)[..., None], np.stack([low, high], axis=-1), np.nan)


def mean_with_interval(
    values: Float[np.ndarray, "example *batch"], *, level: float = LEVEL
) -> Mean:
    """Mean over the first axis and its normal interval, mean -+ z * sd / sqrt(n).

    NaN among the values are examples where the quantity is undefined; they are left out of n.
    The mean is NaN for n = 0, the interval for n < 2.
    """
    values = np.asarray(values, dtype=np.float64)
    defined = np.isfinite(values)
    n = defined.sum(axis=0)
    some = np.maximum(n, 1)
    total = np.where(defined, values, 0.0).sum(axis=0)
    mean = np.where(n > 0, total / some, np.nan)
    squares = np.where(defined, (values - mean) ** 2, 0.0).sum(axis=0)
    error = np.where(n > 1, np.sqrt(squares / np.maximum(n - 1, 1) / some), np.nan)
    half = stats.norm.ppf(0.5 + level / 2) * error
    return Mean(mean, np.stack([mean - half, mean + half], axis=-1), n)
