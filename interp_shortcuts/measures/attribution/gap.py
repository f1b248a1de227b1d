"""Where attribution and causal importance disagree about a component: ranks, their gap, roles.

After arXiv 2602.01442. A hidden hero matters more than its gradient says, a gradient bloat less.
What the attribution and the importance are is left to the measures; many seeds are `stability`'s.
Loads no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Shaped

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.ranks import (
    ACTIVATIONS_RESOLUTION,
    average_ranks,
    rank_correlation,
)

PAPER = "arXiv:2602.01442"

Role = Literal["hero", "aligned", "bloat", "undefined"]
ROLES: tuple[str, ...] = get_args(Role)

THRESHOLD = 6.0
"""Ranks that attribution and importance lie apart in a hero or a bloat (the paper's 6 of 20)."""

THRESHOLDS = (4.0, 6.0, 8.0)
"""Thresholds at which roles are compared."""


@dataclass(frozen=True, eq=False)
class RankGap:
    """The ranks of components by two quantities, and how far they lie apart.

    Attributes:
        attribution_rank: Rank by attribution; 1 is the smallest, tied components share the mean
            of their ranks. NaN where the attribution is undefined.
        importance_rank: The same by causal importance.
        delta: `attribution_rank - importance_rank`: negative where a component matters more than
            its attribution says. All NaN if there is no order to compare.
        rho: Spearman's rank correlation of the two, in [-1, 1]; NaN if there is none.
        reason: Why rho and delta are NaN; empty if they are not.
    """

    attribution_rank: Float[np.ndarray, " component"]
    importance_rank: Float[np.ndarray, " component"]
    delta: Float[np.ndarray, " component"]
    rho: float
    reason: str = field(default="")

    def roles(self, threshold: float = THRESHOLD) -> tuple[Role, ...]:
        """The role of each component; see `roles`."""
        return roles(self.delta, threshold)


def rank_gap(
    attribution: Shaped[np.ndarray, " component"] | Sequence[float],
    importance: Shaped[np.ndarray, " component"] | Sequence[float],
) -> RankGap:
    """Ranks components by attribution and by importance, and compares the two.

    Values that lie closer than the resolution of a float32 pass (1e-6 of the largest) are tied.

    Args:
        attribution: What a gradient or another cheap reading says of each component.
        importance: What taking the component away costs; of the same components in the same order.

    Raises:
        MeasureError: If the two do not have the same length, or there is no component.
    """
    first = np.asarray(attribution, dtype=np.float64)
    second = np.asarray(importance, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape or not first.size:
        raise MeasureError(
            "`attribution` and `importance` must have one value for each of the same components; "
            f"got shapes {first.shape} and {second.shape}."
        )
    ranks = [_ranks(values) for values in (first, second)]
    reason = "; ".join(
        filter(None, [_no_order("attribution", first), _no_order("importance", second)])
    )
    if reason:
        undefined = np.full(first.shape, np.nan)
        return RankGap(ranks[0], ranks[1], undefined, float("nan"), reason)
    rho = float(rank_correlation(ranks[0], ranks[1]))
    return RankGap(ranks[0], ranks[1], ranks[0] - ranks[1], rho)


def roles(
    delta: Shaped[np.ndarray, " component"] | Sequence[float], threshold: float = THRESHOLD
) -> tuple[Role, ...]:
    """Hero: delta at most -threshold. Bloat: at least threshold. Aligned between the two.

    Args:
        delta: Rank by attribution minus rank by importance.
        threshold: Ranks, above 0.

    Returns:
        A role for each component; `"undefined"` where delta is NaN.

    Raises:
        MeasureError: If the threshold is not positive.
    """
    check_threshold(threshold)
    found: list[Role] = []
    for value in np.asarray(delta, dtype=np.float64).tolist():
        if not np.isfinite(value):
            found.append("undefined")
        elif value <= -threshold:
            found.append("hero")
        else:
            found.append("bloat" if value >= threshold else "aligned")
    return tuple(found)


def check_threshold(threshold: float) -> None:
    """Refuses a threshold at which a component could be hero and bloat at once.

    Raises:
        MeasureError: If it is not positive.
    """
    if not threshold > 0:
        raise MeasureError(f"`threshold` must be above 0; got {threshold}.")


def by_size(
    delta: Shaped[np.ndarray, " component"], names: Sequence[str], role: Role, threshold: float
) -> tuple[str, ...]:
    """The components of a role, the largest gap first; of equal gaps in the order of `names`.

    The paper's released code takes them in the order of their names; this is its text's rule.
    """
    own = [index for index, found in enumerate(roles(delta, threshold)) if found == role]
    own.sort(key=lambda index: -abs(float(delta[index])))
    return tuple(names[index] for index in own)


def _ranks(values: np.ndarray) -> np.ndarray:
    """Average ranks of the defined values; NaN where a value is undefined."""
    defined = np.isfinite(values)
    ranks = np.full(values.shape, np.nan)
    ranks[defined] = average_ranks(values[defined], resolution=ACTIVATIONS_RESOLUTION)
    return ranks


def _no_order(name: str, values: np.ndarray) -> str:
    """Why these values put components in no order; empty if they do."""
    undefined = int((~np.isfinite(values)).sum())
    if undefined:
        return f"the {name} of {undefined} of {values.size} components is undefined"
    ranks = _ranks(values)
    if (ranks == ranks[0]).all():
        return f"the {name} is the same for all components"
    return ""
