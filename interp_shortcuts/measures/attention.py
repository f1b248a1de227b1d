"""Where a head looks from "=": weights per position, on the maximum, their entropy, examples.

Attention weights after the softmax, from a forward pass. Ranks of the scores are in `qk`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import xarray as xr
from einops import einsum
from scipy.special import xlogy

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.base import BOUNDS, Measure, axis_labels
from interp_shortcuts.measures.intervals import mean_with_interval
from interp_shortcuts.measures.observation import Observation

EMPTY = "the split has no example"


@dataclass(frozen=True)
class Attention(Measure):
    """Attention from "=", as means over the examples of each split, and of single examples.

    Attributes:
        splits: Names of splits.
        n_shown: Number of single examples kept from each split: its first ones.
    """

    name: ClassVar[str] = "attention"
    reads: ClassVar[Literal["weights", "activations"]] = "activations"
    constant: ClassVar[frozenset[str]] = frozenset(
        {"example_tokens", "example_label", "example_shortcut"}
    )

    splits: Sequence[str] = ("validation", "adversarial")
    n_shown: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.splits:
            raise MeasureError("`splits` must name at least one split; got ().")
        if self.n_shown < 0:
            raise MeasureError(f"`n_shown` (={self.n_shown}) must be at least 0.")

    def measure(self, observation: Observation) -> xr.Dataset:
        spec, task = observation.spec, observation.answering
        shown = [min(self.n_shown, task.split(name).n) for name in self.splits]
        found = xr.Dataset(
            {**self._means(observation), **self._examples(observation)},
            coords=axis_labels(
                layer=spec.n_layers,
                head=spec.n_heads,
                position=task.context,
                split=tuple(self.splits),
                bound=BOUNDS,
                example=sum(shown),
            ),
        )
        return found.assign_coords(example_split=("example", np.repeat(self.splits, shown)))

    def _means(self, observation: Observation) -> dict[str, xr.Variable]:
        task = observation.answering
        per_position, to_max, entropy = [], [], []
        for name in self.splits:
            weights = observation.attention(name).double().numpy()
            integers = task.split(name).integers.numpy()
            largest = integers == integers.max(axis=1, keepdims=True)
            per_position.append(mean_with_interval(weights).value)
            on_largest = einsum(
                weights[..., : task.read_position],
                largest.astype(np.float64),
                "example layer head position, example position -> example layer head",
            )
            to_max.append(mean_with_interval(on_largest))
            entropy.append(mean_with_interval(-xlogy(weights, weights).sum(axis=-1)))
        over_heads = ["layer", "head", "split"]
        too_few = "the split has fewer than two examples"
        interval = "mean -+ 1.96 standard errors over the examples of the split"
        return {
            "attention": self.described(
                ["layer", "head", "position", "split"],
                np.stack(per_position, axis=-1),
                long_name="attention from '='",
                units="fraction",
                definition="mean over examples of the weight from '=' to each position, after "
                "the softmax; the last position is '=' itself",
                range="[0, 1]",
                nan_means=EMPTY,
            ),
            "attention_to_max": self.described(
                over_heads,
                np.stack([mean.value for mean in to_max], axis=-1),
                long_name="attention to the maximum",
                units="fraction",
                definition="mean over examples of the summed weight from '=' to all positions "
                "that hold the largest integer",
                range="[0, 1]",
                nan_means=EMPTY,
            ),
            "attention_to_max_interval": self.described(
                [*over_heads, "bound"],
                np.stack([mean.interval for mean in to_max], axis=-2),
                long_name="attention to the maximum, 95% interval",
                units="fraction",
                definition=interval,
                range="(-inf, inf)",
                nan_means=too_few,
            ),
            "attention_entropy": self.described(
                over_heads,
                np.stack([mean.value for mean in entropy], axis=-1),
                long_name="attention entropy",
                units="nats",
                definition="mean over examples of -sum p log p over all keys of '=', itself "
                "included",
                range="[0, log(n + 1)]",
                nan_means=EMPTY,
            ),
            "attention_entropy_interval": self.described(
                [*over_heads, "bound"],
                np.stack([mean.interval for mean in entropy], axis=-2),
                long_name="attention entropy, 95% interval",
                units="nats",
                definition=interval,
                range="(-inf, inf)",
                nan_means=too_few,
            ),
        }

    def _examples(self, observation: Observation) -> dict[str, xr.Variable]:
        task = observation.answering
        splits = [task.split(name) for name in self.splits]
        shown = [
            observation.attention(name)[: self.n_shown].double().numpy() for name in self.splits
        ]

        def first(rows: list[np.ndarray]) -> np.ndarray:
            return np.concatenate([row[: self.n_shown] for row in rows]).astype(np.int64)

        return {
            "attention_example": self.described(
                ["layer", "head", "example", "position"],
                np.moveaxis(np.concatenate(shown), 0, 2),
                long_name="attention from '=' in one example",
                units="fraction",
                definition="weight from '=' to each position, after the softmax",
                range="[0, 1]",
            ),
            "example_tokens": self.described(
                ["example", "position"],
                first([split.tokens.numpy() for split in splits]),
                long_name="tokens of the example",
                units="token",
                definition="the integers of the example, then '=' (the largest token)",
                range=f"[0, {task.n_tokens - 1}]",
            ),
            "example_label": self.described(
                ["example"],
                first([split.labels.numpy() for split in splits]),
                long_name="true label of the example",
                units="class",
                definition="the task's label",
                range=f"[0, {task.n_classes - 1}]",
            ),
            "example_shortcut": self.described(
                ["example"],
                first([split.shortcut_labels.numpy() for split in splits]),
                long_name="shortcut label of the example",
                units="class",
                definition="the label that the shortcut gives",
                range=f"[0, {task.n_classes - 1}]",
            ),
        }
