"""How numbers, counts and lists are written in sentences. What is said is left to others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def count_of(n: int, what: str, many: str | None = None) -> str:
    """`1 seed`, `3 seeds`."""
    return f"{n:,} {what if n == 1 else many or what + 's'}"


def interval_text(low: float, high: float) -> str:
    """` (0.12 to 0.34)`; empty if an end is undefined."""
    return f" ({signed(low)} to {signed(high)})" if np.isfinite(low) and np.isfinite(high) else ""


def signed(value: float, digits: int = 2) -> str:
    """A number with a minus sign that is as wide as a plus."""
    return f"{value:.{digits}f}".replace("-", "−")


def listed(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def capital(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]
