"""The step at which a curve reaches a level: for the first time, or for good.

A step is one of those that were measured; the one measured before it says how finely it is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped


@dataclass(frozen=True)
class Reached:
    """When a level was reached.

    Attributes:
        step: The step; None if the level was not reached.
        before: The last step measured before it; None if there is none.
        reason: Why there is no step; empty if there is one.
        at_last: Whether it is the last step measured, after which nothing could have undone it.
    """

    step: int | None
    before: int | None = None
    reason: str = ""
    at_last: bool = False


def first_at_least(
    steps: Sequence[int], values: Float[np.ndarray, " step"] | Sequence[float], level: float
) -> Reached:
    """The first step at which a curve is at least as high as a level; NaN is not.

    Args:
        steps: Training steps, increasing.
        values: The curve at these steps.
        level: The level.
    """
    enough = np.asarray(values, dtype=np.float64) >= level
    if not enough.any():
        return Reached(None, reason=_never(steps, values, level))
    return _at(steps, int(np.flatnonzero(enough)[0]))


def held_from(
    steps: Sequence[int], values: Float[np.ndarray, " step"] | Sequence[float], level: float
) -> Reached:
    """The first step from which on a curve stays at least as high as a level; NaN is not.

    Args:
        steps: Training steps, increasing.
        values: The curve at these steps.
        level: The level.
    """
    enough = np.asarray(values, dtype=np.float64) >= level
    if not enough.any():
        return Reached(None, reason=_never(steps, values, level))
    if not enough[-1]:
        last = float(np.asarray(values, dtype=np.float64)[-1])
        now = "undefined" if np.isnan(last) else _below(last, level)
        return Reached(None, reason=f"it was at {level:g} but not to the end: {now} at the last")
    return _at(steps, begin_of_end(enough))


def begin_of_end(same: Shaped[np.ndarray, " step"]) -> int:
    """Where the unbroken run of True at the end begins; the last is True."""
    broken = np.flatnonzero(~same)
    return int(broken[-1]) + 1 if broken.size else 0


def _at(steps: Sequence[int], index: int) -> Reached:
    before = int(steps[index - 1]) if index else None
    return Reached(int(steps[index]), before, at_last=index == len(steps) - 1)


def _never(steps: Sequence[int], values: Sequence[float] | np.ndarray, level: float) -> str:
    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known)]
    if not known.size:
        return "it is defined at no step" if len(steps) else "it was measured at no step"
    return f"it never was {level:g}: {_below(float(known.max()), level)} at most"


def _below(value: float, level: float) -> str:
    """A value below a level in as many digits as show that it is."""
    texts = [f"{value:.{digits}f}" for digits in (2, 3, 4)]
    return next((text for text in texts if float(text) < level), f"just below {level:g}")
