"""What a head writes towards the answer, by rank: Spearman of its logits with a feature.

Reads the full OV path to the logits (models/views). What a head writes before W_U, for a later
layer to read, is in `ov_fraction`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.base import (
    DIRECT_PATH,
    PAPER,
    WeightsMeasure,
    axis_labels,
    require_finite,
)
from interp_shortcuts.measures.feature_field import (
    FeatureSpec,
    as_features,
    feature_values,
    of_integers,
)
from interp_shortcuts.measures.ranks import spearman, spearman_ceiling
from interp_shortcuts.models.views import ov_logits
from interp_shortcuts.models.weights import Weights
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.tasks.features import Feature


@dataclass(frozen=True)
class OVSpearman(WeightsMeasure):
    """Spearman of what a head writes to the logits with a feature of the integer attended to.

    u_v = o_v W_U with o_v = (x_v W_V + b_V) W_O. Two classes: u_v[1] - u_v[0] against f(v). More
    classes: the mean over c of Spearman(u_v[c] - mean over c of u_v, 1[f(v) = c]).

    A rank correlation with a feature of few values cannot reach 1 when the logits have no ties,
    so the largest value that the observed values allow is given beside it.

    Attributes:
        feature: Name, `Feature` or function of the integer, or a tuple of them; None means the
            feature of the task's label (parity for two classes, the residue for more).
    """

    name: ClassVar[str] = "ov_spearman"

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
        logits = require_finite(
            ov_logits(weights, n_integers=n_integers, read_position=read_position),
            "OV logits",
        )
        written, targets = _contrasts(logits, features, n_classes=task.n_classes)
        # [checkpoint layer head feature contrast]; a mean over contrasts is NaN if one is
        rho = spearman(written, targets).mean(axis=-1)
        ceiling = spearman_ceiling(written, targets).mean(axis=-1)
        dims = ["checkpoint", "layer", "head", "feature"]
        formula = (
            "Spearman over integers v of (u_v[1] - u_v[0], f(v))"
            if task.n_classes == 2
            else "mean over classes c of Spearman over integers v of "
            "(u_v[c] - mean_c u_v, 1[f(v) = c])"
        )
        constant = "what the head writes, or the feature, is constant over the integers"
        if task.n_classes > 2:
            constant += " for at least one class"
        return xr.Dataset(
            {
                "ov_spearman": self.described(
                    dims,
                    rho,
                    long_name="OV Spearman",
                    units="1",
                    definition=f"{formula}, ties averaged, u_v = (x_v W_V + b_V) W_O W_U; "
                    f"{DIRECT_PATH} (quantity of {PAPER}, formula ours)",
                    range="[-1, 1]",
                    nan_means=constant,
                ),
                "ov_spearman_ceiling": self.described(
                    dims,
                    ceiling,
                    long_name="OV Spearman, ceiling",
                    units="1",
                    definition="the same after sorting both: the largest value that any "
                    "arrangement of the observed values allows (ours)",
                    range="(0, 1]",
                    nan_means=constant,
                ),
                "ov_spearman_relative": self.described(
                    dims,
                    rho / ceiling,
                    long_name="OV Spearman / ceiling",
                    units="1",
                    definition="ov_spearman / ov_spearman_ceiling; 1 means that no arrangement of "
                    "the values follows the feature better (below -1 is possible with ties)",
                    range="(-inf, 1]",
                    nan_means=constant,
                ),
                "ov_logit": self.described(
                    ["checkpoint", "layer", "head", "integer", "class"],
                    logits,
                    long_name="OV logit",
                    units="logits",
                    definition="u_v = (x_v W_V + b_V) W_O W_U, without b_U and, where the model "
                    f"has a final norm, without its per-example scale; {DIRECT_PATH}",
                    range="(-inf, inf)",
                ),
            },
            coords=axis_labels(
                layer=weights.spec.n_layers,
                head=weights.spec.n_heads,
                feature=tuple(item.name for item in features),
                integer=n_integers,
                **{"class": task.n_classes},
            ),
        )


def _contrasts(
    logits: np.ndarray, features: tuple[Feature, ...], *, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """What is ranked against what: [checkpoint layer head feature contrast integer] and
    [feature contrast integer], with one contrast for two classes and C for more."""
    values = feature_values(features, logits.shape[-2])
    if n_classes == 2:
        written = logits[..., 1] - logits[..., 0]
        return written[..., None, None, :], values[:, None, :]
    classes = np.arange(n_classes)
    for item, row in zip(features, values, strict=True):
        if not np.isin(row, classes).all():
            raise MeasureError(
                f"with more than two classes (={n_classes}) `feature` must give a class in "
                f"0..{n_classes - 1}; {item.name!r} gives {row[~np.isin(row, classes)][0]:g}."
            )
    centred = logits - logits.mean(axis=-1, keepdims=True)
    indicators = (values[:, None, :] == classes[:, None]).astype(np.float64)
    return np.moveaxis(centred, -1, -2)[..., None, :, :], indicators
