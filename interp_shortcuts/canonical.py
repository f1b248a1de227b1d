"""Canonical JSON and the short hashes made from it: the identity of configs, specs and tasks."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> str:
    """One text for one value: keys sorted, no spaces, no NaN.

    Args:
        value: A pydantic model, or anything that `json.dumps` takes.

    Raises:
        ValueError: If a number is not finite.
    """
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def short_hash(value: Any) -> str:
    """The first 16 hex digits of the SHA-256 of `canonical_json(value)`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:16]
