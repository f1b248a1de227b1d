"""How much of what a head writes depends on the class of the integer: eta squared before W_U.

It sees a class that a later layer or MLP reads, whatever its direction. What reaches the logits
directly is in `ov`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.base import DIRECT_PATH, WeightsMeasure, axis_labels, require_finite
from interp_shortcuts.measures.feature_field import (
    FeatureSpec,
    as_features,
    feature_values,
    of_integers,
)
from interp_shortcuts.measures.ranks import WEIGHTS_RESOLUTION
from interp_shortcuts.models.views import ov_outputs
from interp_shortcuts.models.weights import Weights
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.tasks.features import Feature


@dataclass(frozen=True)
class OVClassFraction(WeightsMeasure):
    """Share of the variance of o_v = (x_v W_V + b_V) W_O that lies between feature classes.

    Variances over the integers v, summed over d_model. An arrangement of the integers that knows
    nothing of K classes gives (K - 1) / (V - 1) on average, which is reported beside it.

    Attributes:
        feature: Name, `Feature` or function of the integer, or a tuple of them; None means the
            feature of the task's label (parity for two classes, the residue for more). It must
            take at least two values, and fewer than there are integers: with as many (magnitude)
            the fraction would be 1 whatever the head writes.
    """

    name: ClassVar[str] = "ov_class_fraction"
    constant: ClassVar[frozenset[str]] = frozenset({"ov_class_fraction_chance"})

    feature: FeatureSpec | Sequence[FeatureSpec] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.feature is not None:
            as_features(self.feature)

    def of_weights(self, weights: Weights, task: Task) -> xr.Dataset:
        """The measure of stacked weights, with `checkpoint` as the leading dimension."""
        features = as_features(
            of_integers(task).label_feature if self.feature is None else self.feature
        )
        n_integers = of_integers(task).n_integers
        read_position = of_integers(task).read_position
        values = feature_values(features, n_integers)
        n_classes = np.array(
            [_n_classes(item, row) for item, row in zip(features, values, strict=True)]
        )
        outputs = require_finite(
            ov_outputs(weights, n_integers=n_integers, read_position=read_position),
            "OV outputs",
        )
        return xr.Dataset(
            {
                "ov_class_fraction": self.described(
                    ["checkpoint", "layer", "head", "feature"],
                    np.stack([between_share(outputs, row) for row in values], axis=-1),
                    long_name="OV class fraction",
                    units="fraction",
                    definition="eta squared: between-class share of the variance over integers v "
                    "of o_v = (x_v W_V + b_V) W_O, summed over d_model, classes by f(v); before "
                    f"W_U; {DIRECT_PATH} (ours)",
                    range="[0, 1]",
                    nan_means="what the head writes is constant over the integers",
                ),
                "ov_class_fraction_chance": self.described(
                    ["feature"],
                    (n_classes - 1) / (n_integers - 1),
                    long_name="OV class fraction, chance",
                    units="fraction",
                    definition="(K - 1) / (V - 1) for K feature values among V integers: the mean "
                    "over all assignments of the integers to classes of these sizes",
                    range="[0, 1]",
                ),
            },
            coords=axis_labels(
                layer=weights.spec.n_layers,
                head=weights.spec.n_heads,
                feature=tuple(item.name for item in features),
            ),
        )


def between_share(outputs: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Eta squared of [... integer d_model] for the classes of the integers, NaN if constant.

    Args:
        outputs: One vector for each integer.
        classes: The class of each integer, as any number.
    """
    spread = (outputs.max(axis=-2) - outputs.min(axis=-2)).max(axis=-1)
    size = np.abs(outputs).max(axis=(-2, -1))
    varies = spread > WEIGHTS_RESOLUTION * size
    centred = outputs - outputs.mean(axis=-2, keepdims=True)
    total = np.sum(centred**2, axis=(-2, -1))
    between = np.zeros_like(total)
    for value in np.unique(classes):
        members = centred[..., classes == value, :]
        between += members.shape[-2] * np.sum(members.mean(axis=-2) ** 2, axis=-1)
    return np.where(varies, between / np.where(varies, total, 1.0), np.nan)


def _n_classes(item: Feature, values: np.ndarray) -> int:
    found = len(np.unique(values))
    if not 2 <= found < len(values):
        raise MeasureError(
            f"the class fraction needs a `feature` with at least 2 and fewer than `n_integers` "
            f"(={len(values)}) distinct values; {item.name!r} has {found}."
        )
    return found
