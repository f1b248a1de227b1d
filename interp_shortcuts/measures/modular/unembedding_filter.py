"""How far a transformer gets on the strongest frequencies of its unembedding.

The counterpart of `frequency_filter` for a transformer that was trained on pairs of residues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor, nn

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.interventions.spectral import unembedding_frequencies
from interp_shortcuts.measures.base import BOUNDS, Measure, axis_labels
from interp_shortcuts.measures.intervals import proportion_interval
from interp_shortcuts.measures.modular.noise_rows import (
    AGAINST,
    EMPTY,
    PAPER,
    NoiseRows,
    require_modular,
)
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.spectrum import places_of, with_frequencies
from interp_shortcuts.models.unembedding import unembedding_of
from interp_shortcuts.residues import Arithmetic
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.tasks.noisy_task import NOISE_GROUPS

KEPT = ("dominant", "rest")


@dataclass(frozen=True)
class UnembeddingFilter(Measure):
    """Accuracy with the k strongest frequencies of the unembedding, and with all but them.

    The filter acts along the classes, so that it is applied to the logits of the model's own pass,
    in which its hooks act. b_U goes with the rest, as in `filter_unembedding`.

    Attributes:
        frequencies: The numbers k of frequencies, ascending; those above the number of nonzero
            frequencies that the residues have are left out.

    Raises:
        MeasureError: If the numbers are not ascending from at least 1.
    """

    name: ClassVar[str] = "unembedding_filter"
    reads: ClassVar[Literal["weights", "activations"]] = "activations"
    constant: ClassVar[frozenset[str]] = frozenset({"unembedding_n"})
    asks: ClassVar[type] = ModularArithmetic
    of_model: ClassVar[type] = ModelSpec

    frequencies: Sequence[int] = (1, 2, 3, 4, 6, 8, 12, 16)

    def __post_init__(self) -> None:
        super().__post_init__()
        numbers = tuple(self.frequencies)
        if not numbers or not all(low < high for low, high in pairwise((0, *numbers))):
            raise MeasureError(
                f"`frequencies` must be ascending from at least 1; got {list(numbers)}."
            )

    def measure(self, observation: Observation) -> xr.Dataset:
        task = require_modular(observation.task)
        train, test = task.split("train"), task.split("test")
        rows = NoiseRows(
            torch.cat([train.labels, test.labels]),
            torch.cat([train.true_labels, test.true_labels]),
            torch.arange(train.n + test.n) < train.n,
        )
        logits = torch.cat([observation.answers("train"), observation.answers("test")])
        numbers = self._numbers(task)
        filtered = [
            filtered_logits(observation.model, logits, k, arithmetic=task.arithmetic)
            for k in numbers
        ]
        right = np.stack(
            [
                np.stack([rows.right(task.predictions(one)) for one in (kept, logits - kept)])
                for kept in filtered
            ],
            axis=1,
        )
        return self._labelled(right, rows, numbers)

    def _numbers(self, task: ModularArithmetic) -> tuple[int, ...]:
        n_frequencies = task.config.n_answers // 2
        numbers = tuple(k for k in self.frequencies if k <= n_frequencies)
        if not numbers:
            raise MeasureError(
                f"`frequencies` (={list(self.frequencies)}) must have one of at most "
                f"{n_frequencies}, the number of nonzero frequencies in {task.config.label}."
            )
        return numbers

    def _labelled(self, right: np.ndarray, rows: NoiseRows, numbers: tuple[int, ...]) -> xr.Dataset:
        dims = ["keep", "k", "group"]
        variables = {
            "unembedding_accuracy": self.described(
                dims,
                rows.fraction(right),
                long_name="accuracy with filtered unembedding",
                units="fraction",
                definition="fraction of the group's pairs whose largest logit (ties to the lowest "
                f"class) is their label, {AGAINST}; dominant: with the k nonzero frequencies along "
                "the classes that hold most of W_U; rest: without them, with b_U (ours, after the "
                f"frequency filter of {PAPER})",
                range="[0, 1]",
                nan_means=EMPTY,
            ),
            "unembedding_accuracy_interval": self.described(
                [*dims, "bound"],
                proportion_interval(right, np.broadcast_to(rows.n, right.shape)),
                long_name="accuracy with filtered unembedding, 95% interval",
                units="fraction",
                definition="Clopper-Pearson 95% interval over the pairs of the group (ours)",
                range="[0, 1]",
                nan_means=EMPTY,
            ),
            "unembedding_n": self.described(
                ["group"],
                rows.n,
                long_name="pairs of the group",
                units="pairs",
                definition="number of the group's pairs",
                range="[0, inf)",
            ),
        }
        labels = axis_labels(keep=KEPT, group=NOISE_GROUPS, bound=BOUNDS)
        return xr.Dataset(variables, coords=labels).assign_coords(
            k=np.array(numbers, dtype=np.int64)
        )


def filtered_logits(
    model: nn.Module, logits: Float[Tensor, "example class"], k: int, *, arithmetic: Arithmetic
) -> Float[Tensor, "example class"]:
    """The logits that a model would give with the k strongest frequencies of its unembedding.

    Without b_U, which goes with the rest, logits are W_U's columns weighed by the residual stream:
    taking frequencies out of W_U along the classes takes them out of the logits.

    Args:
        model: A `HookedTransformer` whose classes are residues.
        logits: What it gives as it is.
        k: Number of nonzero frequencies, those of `unembedding_frequencies`.
        arithmetic: The operation that it was trained on.

    Returns:
        In float64; zero for a class that is not on the circle.
    """
    matrix, bias = unembedding_of(model)
    places = places_of(arithmetic, matrix.shape[1])
    kept = torch.zeros(len(places) // 2 + 1, dtype=torch.bool)
    kept[unembedding_frequencies(model, k, arithmetic=arithmetic)] = True
    found = torch.zeros(logits.shape, dtype=torch.float64)
    on_circle = (logits.double() - bias)[:, places]
    found[:, places] = with_frequencies(on_circle, kept.expand(len(logits), -1))
    return found
