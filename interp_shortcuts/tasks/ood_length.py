"""Which held-out length a model is asked about: one at which it neither succeeds nor fails.

The rule is that of the paper on hidden heroes and gradient bloats (arXiv 2602.01442).
"""

from __future__ import annotations

from collections.abc import Mapping

OOD_RANGE = (0.2, 0.75)
"""The exact match, a fraction, that the chosen length has; both ends belong to it."""


def choose_ood_length(accuracies: Mapping[int, float]) -> int | None:
    """The shortest length whose exact match lies in `OOD_RANGE`.

    Args:
        accuracies: Exact match by held-out length, fractions in [0, 1].

    Returns:
        The length; None if no length qualifies, and the run is to be excluded.
    """
    low, high = OOD_RANGE
    return next((n for n in sorted(accuracies) if low <= accuracies[n] <= high), None)
