"""Where a head looks, by rank: Spearman of its attention scores with a feature of the integers.

The weights form comes from models/views, the activation form from the scores of a forward pass.
Attention weights after the softmax are in `attention`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import xarray as xr

from interp_shortcuts.measures.along import over_weights
from interp_shortcuts.measures.base import (
    BOUNDS,
    DIRECT_PATH,
    PAPER,
    Measure,
    axis_labels,
    require_finite,
)
from interp_shortcuts.measures.feature_field import (
    FeatureSpec,
    as_features,
    feature_values,
    of_integers,
)
from interp_shortcuts.measures.intervals import mean_with_interval
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.measures.ranks import (
    ACTIVATIONS_RESOLUTION,
    average_ranks,
    rank_correlation,
    spearman,
)
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.views import qk_scores
from interp_shortcuts.models.weights import Weights
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.tasks.features import Feature


@dataclass(frozen=True)
class QKSpearman(Measure):
    """Spearman of the attention scores from "=" with a feature of the integer attended to.

    *Weights form*: over the integers v, of s_v = (x_q W_Q + b_Q) . (x_v W_K + b_K), with
    x_q = E_q + P_n, x_v = E_v + the mean of P over the integer positions, and the layer's first
    LayerNorm where the model has one. *Activation form*: for each example over its integer
    positions, then the mean over the examples where it is defined.

    Attributes:
        feature: Name, `Feature` or function of the integer, or a tuple of them.
        splits: Splits for the activation form; `()` leaves it out and reads weights alone.
    """

    name: ClassVar[str] = "qk_spearman"
    reads: ClassVar[Literal["weights", "activations"]] = "activations"

    feature: FeatureSpec | Sequence[FeatureSpec] = "magnitude"
    splits: Sequence[str] = ("validation", "adversarial")

    def __post_init__(self) -> None:
        super().__post_init__()
        as_features(self.feature)

    def of_weights(self, weights: Weights, task: Task) -> xr.Dataset:
        """The weights form for stacked weights, with `checkpoint` as the leading dimension."""
        return xr.Dataset(
            self._weights_form(weights, task), coords=self._labels(weights.spec, task, splits=False)
        )

    def measure(self, observation: Observation) -> xr.Dataset:
        if not self.splits:
            return self.of_weights(observation.weights, observation.task).isel(checkpoint=0)
        stacked = self._weights_form(observation.weights, observation.task)
        one = {name: variable.isel(checkpoint=0) for name, variable in stacked.items()}
        return xr.Dataset(
            {**one, **self._activation_form(observation)},
            coords=self._labels(observation.spec, observation.task, splits=True),
        )

    def over(self, trajectory: Trajectory, *, progress: bool = True) -> xr.Dataset:
        if not self.splits:
            return over_weights(self, trajectory, progress=progress)
        return super().over(trajectory, progress=progress)

    def _labels(self, spec: ModelSpec, task: Task, *, splits: bool) -> xr.Coordinates:
        names = tuple(item.name for item in as_features(self.feature))
        asked: dict[str, tuple[str, ...]] = {"split": tuple(self.splits), "bound": BOUNDS}
        return axis_labels(
            layer=spec.n_layers,
            head=spec.n_heads,
            feature=names,
            integer=of_integers(task).n_integers,
            **(asked if splits else {}),
        )

    def _weights_form(self, weights: Weights, task: Task) -> dict[str, xr.Variable]:
        n_integers = of_integers(task).n_integers
        read_position = of_integers(task).read_position
        scores = require_finite(
            qk_scores(weights, n_integers=n_integers, read_position=read_position),
            "QK scores",
        )
        values = feature_values(as_features(self.feature), n_integers)
        return {
            "qk_spearman": self.described(
                ["checkpoint", "layer", "head", "feature"],
                spearman(scores[..., None, :], values),
                long_name="QK Spearman",
                units="1",
                definition="Spearman over integers v of (s_v, f(v)), ties averaged, "
                "s_v = (x_q W_Q + b_Q) . (x_v W_K + b_K), x_q = E_q + P_n, "
                f"x_v = E_v + mean position, after ln1; {DIRECT_PATH} "
                f"(quantity of {PAPER}, formula ours)",
                range="[-1, 1]",
                nan_means="the scores s_v or the feature are constant over the integers",
            ),
            "qk_score": self.described(
                ["checkpoint", "layer", "head", "integer"],
                scores,
                long_name="QK score",
                units="1",
                definition="s_v = (x_q W_Q + b_Q) . (x_v W_K + b_K), not divided by "
                f"sqrt(d_head); {DIRECT_PATH}",
                range="(-inf, inf)",
            ),
        }

    def _activation_form(self, observation: Observation) -> dict[str, xr.Variable]:
        task, features = observation.task, as_features(self.feature)
        means = [
            mean_with_interval(example_spearman(observation, split, features))
            for split in self.splits
        ]
        counts = [task.split(split).n for split in self.splits]
        undefined = [count - mean.n for count, mean in zip(counts, means, strict=True)]
        dims = ["layer", "head", "feature", "split"]
        asked = ", ".join(f"{s}={n}" for s, n in zip(self.splits, counts, strict=True))
        return {
            "qk_spearman_activation": self.described(
                dims,
                np.stack([mean.value for mean in means], axis=-1),
                long_name="QK Spearman, activations",
                units="1",
                definition="per example, Spearman over its integer positions of (attention score "
                "from '=', f(integer)), ties averaged; mean over the examples where it is "
                f"defined; examples: {asked} (quantity of {PAPER}, formula ours)",
                range="[-1, 1]",
                nan_means="in every example the scores or the feature are constant",
            ),
            "qk_spearman_activation_interval": self.described(
                [*dims, "bound"],
                np.stack([mean.interval for mean in means], axis=-2),
                long_name="QK Spearman, activations, 95% interval",
                units="1",
                definition="mean -+ 1.96 standard errors over the examples where it is defined",
                range="(-inf, inf)",
                nan_means="fewer than two examples define a rank correlation",
            ),
            "qk_spearman_activation_undefined": self.described(
                dims,
                np.stack(undefined, axis=-1).astype(np.int64),
                long_name="examples without a rank correlation",
                units="examples",
                definition=f"examples whose scores or feature are constant, of {asked}",
                range="[0, inf)",
            ),
        }


def example_spearman(
    observation: Observation, split: str, features: tuple[Feature, ...]
) -> np.ndarray:
    """Spearman of scores and feature over the integer positions of each example.

    Returns:
        float64 [example layer head feature]; NaN where the example's scores or feature values are
        constant.
    """
    task = observation.answering
    n_integers = of_integers(task).n_integers
    integers = task.split(split).integers.numpy()
    scores = observation.scores(split)[..., : task.read_position].double().numpy()
    score_ranks = average_ranks(scores, resolution=ACTIVATIONS_RESOLUTION)
    by_integer = average_ranks(feature_values(features, n_integers))
    feature_ranks = average_ranks(by_integer[:, integers])  # feature example position
    return np.stack(
        [rank_correlation(score_ranks, ranks[:, None, None, :]) for ranks in feature_ranks], axis=-1
    )
