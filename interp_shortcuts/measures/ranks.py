"""Average ranks, Spearman correlations and their ceiling, vectorised over all leading axes.

Values closer than the resolution of the arithmetic that made them count as tied, so that a tie in
exact arithmetic stays one after rounding. What the ranked values are is left to the measures.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Shaped

WEIGHTS_RESOLUTION = 1e-10
"""Relative resolution of what is computed from weights in float64."""

ACTIVATIONS_RESOLUTION = 1e-6
"""Relative resolution of what a float32 forward pass computes."""


def average_ranks(
    values: Shaped[np.ndarray, "*batch item"], *, resolution: float = WEIGHTS_RESOLUTION
) -> Float[np.ndarray, "*batch item"]:
    """Ranks 1..n along the last axis; tied values share the mean of their ranks.

    Args:
        values: Finite numbers.
        resolution: Neighbours in the sorted order are tied if they differ by at most this share
            of the largest magnitude in their vector.
    """
    values = np.asarray(values, dtype=np.float64)
    n_items = values.shape[-1]
    if n_items == 0:
        return values.copy()
    order = np.argsort(values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=-1)
    reach = resolution * np.maximum(np.abs(ordered[..., :1]), np.abs(ordered[..., -1:]))
    step = np.diff(ordered, axis=-1) > reach  # True where a new group of ties begins
    edge = np.ones((*values.shape[:-1], 1), dtype=bool)
    places = np.arange(n_items)
    begins = np.concatenate([edge, step], axis=-1)
    ends = np.concatenate([step, edge], axis=-1)
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=-1)
    last_place = np.where(ends, places, n_items - 1)[..., ::-1]
    last = np.minimum.accumulate(last_place, axis=-1)[..., ::-1]
    ranks = np.empty_like(values)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=-1)
    return ranks


def rank_correlation(
    first: Float[np.ndarray, "*#batch item"], second: Float[np.ndarray, "*#batch item"]
) -> Float[np.ndarray, "*batch"]:
    """Pearson correlation of ranks along the last axis, in [-1, 1]; NaN where either is constant.

    The leading axes broadcast, so that the ranks of a feature are made once for all heads.
    """
    first = first - first.mean(axis=-1, keepdims=True)
    second = second - second.mean(axis=-1, keepdims=True)
    product = np.sum(first * second, axis=-1)
    spread = np.sum(first**2, axis=-1) * np.sum(second**2, axis=-1)
    defined = spread > 0
    return np.where(defined, product / np.sqrt(np.where(defined, spread, 1.0)), np.nan)


def spearman(
    first: Shaped[np.ndarray, "*#batch item"],
    second: Shaped[np.ndarray, "*#batch item"],
    *,
    resolution: float = WEIGHTS_RESOLUTION,
) -> Float[np.ndarray, "*batch"]:
    """Spearman's rho along the last axis, ties averaged; NaN where either vector is constant."""
    return rank_correlation(
        average_ranks(first, resolution=resolution), average_ranks(second, resolution=resolution)
    )


def spearman_ceiling(
    first: Shaped[np.ndarray, "*#batch item"],
    second: Shaped[np.ndarray, "*#batch item"],
    *,
    resolution: float = WEIGHTS_RESOLUTION,
) -> Float[np.ndarray, "*batch"]:
    """The largest Spearman that any arrangement of the same values allows.

    By the rearrangement inequality it is reached when both are sorted. It lies below 1 when the
    two have different ties: for a tie-free vector of even length V against a balanced two-valued
    one it is `sqrt(3)/2 * sqrt(V**2 / (V**2 - 1))`, about 0.87.
    """
    return spearman(np.sort(first, axis=-1), np.sort(second, axis=-1), resolution=resolution)
