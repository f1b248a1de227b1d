"""Shapley values of components: each one's share of the model's score, redundancy accounted for.

The value v(S) of a set S of components is the score when all others are ablated. A component's
Shapley value is the mean, over all orders in which the components could be put back, of what its
return adds (Shapley 1953). Orders are sampled, each with its reverse, whose mean spreads less
(antithetic sampling, arXiv 2104.12199), and every value comes with its standard error over these
pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.attribution.importance import HOW, MATCHED, ScoredAblations
from interp_shortcuts.measures.attribution.target_measure import PAPER, Quantity
from interp_shortcuts.measures.effects import require_choices, require_positive
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.sites import components
from interp_shortcuts.streams import numpy_stream

Coalition: TypeAlias = frozenset[int]
"""The players that are there, by their number."""
ValuesOf: TypeAlias = Callable[[Sequence[Coalition]], Sequence[float]]
"""What some coalitions are worth."""

PAIRS_AT_ONCE = 4
"""Orders with their reverses between two looks at the standard errors."""
FEWEST_PAIRS = 8
"""So many are drawn before the standard errors are believed; fewer may be alike by chance."""


class Shapley(NamedTuple):
    """Shapley values by sampled orders.

    Attributes:
        value: The estimate; the estimates add up to v(all) - v(none) exactly.
        se: Its standard error over pairs of orders; NaN for one pair.
        n_permutations: Orders that were used, reverses counted.
    """

    value: Float[np.ndarray, " player"]
    se: Float[np.ndarray, " player"]
    n_permutations: int


def shapley_values(
    values_of: ValuesOf,
    n_players: int,
    stream: np.random.Generator,
    *,
    precision: float,
    max_permutations: int,
) -> Shapley:
    """Samples orders until the largest standard error is small enough.

    Args:
        values_of: What coalitions are worth; each is asked for once.
        n_players: The number of players.
        stream: Where the orders are drawn from.
        precision: Stop when no standard error is larger, at 16 orders at the earliest.
        max_permutations: Stop at so many orders, reverses counted.

    Raises:
        MeasureError: If there is no player, or fewer than two orders are allowed.
    """
    if n_players < 1 or max_permutations < 2:
        raise MeasureError(
            f"`n_players` (={n_players}) must be at least 1 and `max_permutations` "
            f"(={max_permutations}) at least 2."
        )
    known: dict[Coalition, float] = {}
    pairs: list[Float[np.ndarray, " player"]] = []
    while 2 * len(pairs) + 2 <= max_permutations:
        n_new = min(PAIRS_AT_ONCE, max_permutations // 2 - len(pairs))
        orders = [stream.permutation(n_players) for _ in range(n_new)]
        both = [way for order in orders for way in (order, order[::-1])]
        asked = dict.fromkeys(prefix for way in both for prefix in _prefixes(way))
        new = [coalition for coalition in asked if coalition not in known]
        known.update(zip(new, values_of(new), strict=True))
        each = [_marginals(way, known) for way in both]
        pairs += [(each[i] + each[i + 1]) / 2 for i in range(0, len(each), 2)]
        found = _summary(pairs)
        if len(pairs) >= FEWEST_PAIRS and float(found.se.max()) <= precision:
            break
    return _summary(pairs)


def _prefixes(order: np.ndarray) -> list[Coalition]:
    return [frozenset(order[:n].tolist()) for n in range(len(order) + 1)]


def _marginals(order: np.ndarray, known: Mapping[Coalition, float]) -> Float[np.ndarray, " player"]:
    """What each player's coming adds, in this order."""
    worth = np.array([known[prefix] for prefix in _prefixes(order)])
    gained = np.empty(len(order))
    gained[order] = np.diff(worth)
    return gained


def _summary(pairs: Sequence[Float[np.ndarray, " player"]]) -> Shapley:
    sample = np.stack(pairs)
    n = len(sample)
    spread = sample.std(0, ddof=1) if n > 1 else np.full(sample.shape[1], np.nan)
    return Shapley(sample.mean(0), spread / np.sqrt(n), 2 * n)


@dataclass(frozen=True)
class ShapleyImportance(ScoredAblations):
    """Each component's Shapley value, with the absent components mean-ablated.

    A tracker takes it only when told to: it asks for hundreds of passes.
    **Hooks that are attached to the model do not act.**

    Attributes:
        split: See `TargetMeasure`.
        seed: See `TargetMeasure`; also of the orders, stream `("attribution", split, "orders")`.
        reference_examples: See `ScoredAblations`.
        examples: See `ScoredAblations`.
        chunk: See `ScoredAblations`.
        value: `"exact_match"`, or `"loss"` for minus the token loss.
        precision: Sampling stops when no standard error is larger; in units of the value.
        max_permutations: Sampling stops at so many orders, reverses counted.
    """

    name: ClassVar[str] = "shapley"
    by_default: ClassVar[bool] = False

    value: str = "exact_match"
    precision: float = 0.01
    max_permutations: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choices("value", (self.value,), ("exact_match", "loss"))
        require_positive(max_permutations=self.max_permutations)
        if self.max_permutations < 2 or not self.precision > 0:
            raise MeasureError(
                f"`max_permutations` (={self.max_permutations}) must be at least 2 and `precision` "
                f"(={self.precision}) above 0."
            )

    def quantities(self) -> Mapping[str, Quantity]:
        units = "fraction" if self.value == "exact_match" else "nats"
        worth = MATCHED if self.value == "exact_match" else "minus the mean token loss"
        formula = (
            "mean over sampled orders of what the component's return adds to v(S), the value when "
            f"all components but S are ablated; v: {worth}, mean over {self.examples} fresh "
            f"sequences of the length. Mean ablation: {HOW}; orders and their reverses in pairs; "
            f"ours, beyond {PAPER}"
        )
        return {
            "shapley": Quantity(("component",), "Shapley value", units, formula, "(-inf, inf)"),
            "shapley_se": Quantity(
                ("component",),
                "Shapley value, standard error",
                units,
                "over pairs of orders, given the sequences: sd of the pairs' means / sqrt(pairs)",
                "[0, inf)",
                "only one pair of orders was allowed",
            ),
            "shapley_permutations": Quantity(
                (),
                "orders",
                "permutations",
                f"orders used, reverses counted: until no standard error is above "
                f"{self.precision:g}, at most {self.max_permutations}",
                "[0, inf)",
            ),
            **self.n("shapley_n"),
        }

    def values(self, observation: Observation, split: str) -> Mapping[str, Any]:
        players = components(observation.spec)

        def values_of(coalitions: Sequence[Coalition]) -> list[float]:
            absent = [
                tuple(part for number, part in enumerate(players) if number not in present)
                for present in coalitions
            ]
            scores = self.scores(observation, split, [(members, "mean") for members in absent])
            exact = self.value == "exact_match"
            of_run = scores.exact_match.mean(1) if exact else -scores.loss.mean(1)
            return of_run[1:].tolist()

        found = shapley_values(
            values_of,
            len(players),
            numpy_stream(self.seed, "attribution", split, "orders"),
            precision=self.precision,
            max_permutations=self.max_permutations,
        )
        return {
            "shapley": found.value,
            "shapley_se": found.se,
            "shapley_permutations": found.n_permutations,
            "shapley_n": self.examples,
        }
