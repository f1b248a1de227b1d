"""The `feature` field of a measure: what it may hold, its values over the integers, its identity.

The features themselves are in tasks/features.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.tasks.features import Feature, feature

FeatureSpec = str | Feature | Callable[..., Any]

PROBED_INTEGERS = 256
"""A user's feature is known by its values on 0..255 (or as far as it goes)."""


@runtime_checkable
class IntegerTask(Protocol):
    """What measures with a feature ask of a task beside what every task has."""

    @property
    def n_integers(self) -> int:
        """V; the integers are the tokens 0..V-1."""
        ...

    @property
    def read_position(self) -> int:
        """The position whose logits are the model's answer."""
        ...

    @property
    def label_feature(self) -> Feature:
        """The feature of a single integer that the label is made of."""
        ...


def as_features(spec: FeatureSpec | Sequence[FeatureSpec]) -> tuple[Feature, ...]:
    """The features that a measure's `feature` field names.

    Raises:
        MeasureError: If two of them share a name, which labels the result.
    """
    specs = spec if isinstance(spec, Sequence) and not isinstance(spec, str) else (spec,)
    features = tuple(feature(item) for item in specs)
    names = [item.name for item in features]
    if not names or len(set(names)) != len(names):
        raise MeasureError(
            f"`feature` must hold one or more features of distinct names; got {names}."
        )
    return features


def of_integers(task: Task) -> IntegerTask:
    """The task, once it is known to be about integers that features are functions of.

    Raises:
        MeasureError: If it is another kind of task.
    """
    if not isinstance(task, IntegerTask):
        raise MeasureError(
            "the measure needs a task of integers, with `n_integers` and `label_feature`; "
            f"{task.name!r} is a {type(task).__name__}."
        )
    return task


def feature_values(features: Sequence[Feature], n_integers: int) -> np.ndarray:
    """Values of the features on 0..V-1, float64 [feature integer]."""
    return np.stack([np.asarray(item.values(n_integers), np.float64) for item in features])


def feature_identity(spec: FeatureSpec) -> dict[str, str]:
    """A feature by its name and its values on 0..255 (or as far as it goes), for keys."""
    item = feature(spec)
    digest = hashlib.sha256()
    for integer in range(PROBED_INTEGERS):
        try:
            value = item(np.array([integer]))
        except Exception:  # a table over the user's own vocabulary ends here
            break
        digest.update(np.asarray(value, dtype=np.float64).tobytes())
    return {"feature": item.name, "values": digest.hexdigest()[:16]}
