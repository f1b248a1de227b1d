"""What the gaps of many seeds say together: mean rho, roles by identity and layer, thresholds.

A seed is what is resampled. One seed's ranks and roles are `gap`'s. Loads no torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Shaped
from scipy import stats

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.attribution.gap import THRESHOLD, check_threshold
from interp_shortcuts.measures.intervals import LEVEL
from interp_shortcuts.models.sites import Component
from interp_shortcuts.streams import numpy_stream

SIDES = ("hero", "bloat")
_CHUNK = 1000  # permutations held at a time


@dataclass(frozen=True)
class SeedMean:
    """A mean over seeds with two intervals.

    Attributes:
        mean: Mean over the seeds that define it; NaN for none.
        sd: Sample standard deviation (n - 1); NaN for fewer than two seeds.
        low: Lower end of the 95% t interval, mean -+ t(n - 1) sd / sqrt(n). The one to read.
        high: Upper end.
        bootstrap_low: Lower end of the 95% percentile bootstrap interval over seeds. It knows of no
            values but those seen, and is too narrow for few seeds.
        bootstrap_high: Upper end.
        n: Seeds that define the value.
        n_undefined: Seeds that were asked and do not; they are in no number above.
        reason: Why there is no mean or no interval; empty if there are both.
    """

    mean: float
    sd: float
    low: float
    high: float
    bootstrap_low: float
    bootstrap_high: float
    n: int
    n_undefined: int
    reason: str = ""


def mean_over_seeds(
    values: Shaped[np.ndarray, " seed"] | Sequence[float],
    *,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> SeedMean:
    """Mean, standard deviation, t interval and bootstrap interval over seeds.

    Args:
        values: One value a seed; NaN where it is undefined.
        n_resamples: Bootstrap resamples.
        seed: Seed of the stream `("attribution gap", "bootstrap over seeds")`.
    """
    _positive("n_resamples", n_resamples)
    values = np.asarray(values, dtype=np.float64)
    defined = values[np.isfinite(values)]
    n, missing = defined.size, int(values.size - defined.size)
    nan = float("nan")
    if n == 0:
        return SeedMean(nan, nan, nan, nan, nan, nan, 0, missing, "no seed defines it")
    mean = float(defined.mean())
    if n == 1:
        return SeedMean(mean, nan, nan, nan, nan, nan, 1, missing, "one seed alone has no interval")
    sd = float(defined.std(ddof=1))
    half = float(stats.t.ppf(0.5 + LEVEL / 2, n - 1)) * sd / np.sqrt(n)
    stream = numpy_stream(seed, "attribution gap", "bootstrap over seeds")
    resampled = defined[stream.integers(0, n, size=(n_resamples, n))].mean(axis=1)
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(resampled, [tail, 100 - tail])
    return SeedMean(
        mean, sd, float(mean - half), float(mean + half), float(low), float(high), n, missing
    )


@dataclass(frozen=True, eq=False)
class RoleStability:
    """In how many seeds each component is a hero or a bloat, against shuffled ranks.

    Attributes:
        threshold: Ranks at which a gap makes a hero or a bloat.
        n_seeds: Seeds that are counted.
        n_undefined: Seeds without ranks to compare; they are in no count.
        identities: One row a component and side: `component`, `layer`, `side` (`hero` or `bloat`),
            `seeds` (how many have that role), `of` (n_seeds), `expected` (mean over the shuffles),
            `p` (share of shuffles in which this component has at least as many) and `p_any` (share
            in which any component has: the one to read where one looks for the largest).
        layers: The same by layer, with `count` components over all seeds.
        n_permutations: Shuffles.
        seed: Seed of their stream.
    """

    threshold: float
    n_seeds: int
    n_undefined: int
    identities: pd.DataFrame
    layers: pd.DataFrame
    n_permutations: int
    seed: int

    def most(self, side: str) -> dict[str, Any] | None:
        """The row of the component with that role in most seeds; None if none ever has it."""
        rows = [row for row in self.identities.to_dict("records") if row["side"] == side]
        first = max(rows, key=lambda row: row["seeds"])
        return {str(name): value for name, value in first.items()} if first["seeds"] else None


def role_stability(
    attribution_rank: Float[np.ndarray, "seed component"],
    importance_rank: Float[np.ndarray, "seed component"],
    components: Sequence[str],
    *,
    threshold: float = THRESHOLD,
    n_permutations: int = 10_000,
    seed: int = 0,
) -> RoleStability:
    """Counts roles by identity and by layer, and asks how often shuffled ranks give as many.

    A shuffle permutes the importance ranks among all components within each seed, so that which
    component is important has nothing to do with its attribution, nor with its name. It keeps both
    sets of ranks with their ties. p-values are (1 + shuffles at least as large) / (1 + shuffles):
    never 0.

    Args:
        attribution_rank: A row of ranks a seed; NaN in a row leaves that seed out.
        importance_rank: The same by importance.
        components: The names of the columns, e.g. `"L3.H3"`.
        threshold: Ranks at which a gap makes a hero or a bloat.
        n_permutations: How many shuffles.
        seed: Seed of the stream `("attribution gap", "shuffled importance")`.

    Raises:
        MeasureError: If the shapes do not fit, or a number is not positive.
    """
    check_threshold(threshold)
    _positive("n_permutations", n_permutations)
    first, second = np.asarray(attribution_rank, float), np.asarray(importance_rank, float)
    if first.shape != second.shape or first.ndim != 2 or first.shape[1] != len(components):
        raise MeasureError(
            "`attribution_rank` and `importance_rank` must be [seed component] over "
            f"{len(components)} components; got shapes {first.shape} and {second.shape}."
        )
    counted = np.isfinite(first).all(axis=1) & np.isfinite(second).all(axis=1)
    first, second = first[counted], second[counted]
    layers = np.array([Component.parse(name).layer for name in components])
    members = (layers[:, None] == np.unique(layers)).astype(np.int64)  # component layer
    observed = _side_counts(first - second, threshold)  # side component
    shuffled = np.concatenate(
        [
            _side_counts(first - chunk, threshold)
            for chunk in _shuffles(second, n_permutations, seed)
        ],
        axis=1,
    )  # side permutation component
    return RoleStability(
        threshold=threshold,
        n_seeds=int(counted.sum()),
        n_undefined=int((~counted).sum()),
        identities=_table(
            {"component": list(components), "layer": layers.tolist()},
            "seeds",
            observed,
            shuffled,
            of=int(counted.sum()),
        ),
        layers=_table(
            {"layer": np.unique(layers).tolist()},
            "count",
            observed @ members,
            shuffled @ members,
            of=[int(counted.sum() * size) for size in members.sum(axis=0)],
        ),
        n_permutations=n_permutations,
        seed=seed,
    )


def threshold_agreement(
    delta: Float[np.ndarray, "seed component"],
    *,
    thresholds: Sequence[float],
    reference: float = THRESHOLD,
) -> pd.DataFrame:
    """How much of the roles depends on the threshold.

    Args:
        delta: Rank by attribution minus rank by importance; a row with NaN is left out.
        thresholds: Those that are compared.
        reference: The one they are compared with.

    Returns:
        A row a threshold: `threshold`, `heroes` and `bloats` (over all seeds), `seeds`,
        `same_role` (fraction of components that have the role they have at the reference; NaN
        without a seed), `shared_heroes` and `shared_bloats` (those at both, over those at either;
        NaN where there is none at either).
    """
    delta = np.asarray(delta, dtype=np.float64)
    delta = delta[np.isfinite(delta).all(axis=1)]
    check_threshold(reference)
    at_reference = (delta <= -reference, delta >= reference)
    rows = []
    for threshold in thresholds:
        check_threshold(threshold)
        own = (delta <= -threshold, delta >= threshold)
        same = (own[0] == at_reference[0]) & (own[1] == at_reference[1])
        shared = [_share(a & b, a | b) for a, b in zip(own, at_reference, strict=True)]
        rows.append(
            {
                "threshold": float(threshold),
                "heroes": int(own[0].sum()),
                "bloats": int(own[1].sum()),
                "seeds": len(delta),
                "same_role": float(same.mean()) if same.size else float("nan"),
                "shared_heroes": shared[0],
                "shared_bloats": shared[1],
            }
        )
    return pd.DataFrame(rows)


def _side_counts(
    delta: Float[np.ndarray, "*batch seed component"], threshold: float
) -> Int[np.ndarray, "side *batch component"]:
    """In how many seeds each component is a hero, and a bloat."""
    return np.stack([(delta <= -threshold).sum(axis=-2), (delta >= threshold).sum(axis=-2)])


def _shuffles(
    ranks: Float[np.ndarray, "seed component"], n: int, seed: int
) -> Iterator[Float[np.ndarray, "permutation seed component"]]:
    """The ranks, permuted within each seed, in pieces."""
    stream = numpy_stream(seed, "attribution gap", "shuffled importance")
    for begin in range(0, n, _CHUNK):
        size = min(_CHUNK, n - begin)
        yield stream.permuted(np.broadcast_to(ranks, (size, *ranks.shape)), axis=-1)


def _table(
    labels: dict[str, list],
    count: str,
    observed: Int[np.ndarray, "side item"],
    shuffled: Int[np.ndarray, "side permutation item"],
    *,
    of: int | list[int],
) -> pd.DataFrame:
    """Counts with what shuffled ranks give, the heroes first."""
    tables = []
    n = shuffled.shape[1]
    for side, found, null in zip(SIDES, observed, shuffled, strict=True):
        as_large = (null >= found).sum(axis=0)
        any_as_large = (null.max(axis=1)[:, None] >= found).sum(axis=0)
        tables.append(
            pd.DataFrame(
                {
                    **labels,
                    "side": side,
                    count: found,
                    "of": of,
                    "expected": null.mean(axis=0),
                    "p": (1 + as_large) / (1 + n),
                    "p_any": (1 + any_as_large) / (1 + n),
                }
            )
        )
    return pd.concat(tables, ignore_index=True)


def _share(both: np.ndarray, either: np.ndarray) -> float:
    return float(both.sum() / either.sum()) if either.any() else float("nan")


def _positive(name: str, value: int) -> None:
    if value < 1:
        raise MeasureError(f"`{name}` must be at least 1; got {value}.")
