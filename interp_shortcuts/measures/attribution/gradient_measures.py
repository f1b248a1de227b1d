"""Gradient norm, weight x gradient and attribution patching as measures of every component.

They share one backward pass a batch, see `gradient_reading`, which says what is computed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from torch import Tensor

from interp_shortcuts.measures.attribution.gradient_reading import (
    READINGS,
    BatchGradients,
    batch_gradients,
)
from interp_shortcuts.measures.attribution.ood_examples import fresh_batches
from interp_shortcuts.measures.attribution.target_measure import (
    PAPER,
    Labels,
    Quantity,
    TargetMeasure,
)
from interp_shortcuts.measures.effects import require_positive
from interp_shortcuts.measures.intervals import mean_with_interval
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.component_forward import Place, StagedForward, differentiating
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.tasks.target_scores import token_loss
from interp_shortcuts.tasks.target_split import TargetSplit

TOO_FEW = "there are fewer than two batches"


@dataclass(frozen=True)
class GradientMeasure(TargetMeasure):
    """Base of the measures that read the gradient of the mean token loss over batches.

    Measures with the same sizes and seed share their backward passes at a checkpoint.

    **Hooks that are attached to the model do not act.**

    Attributes:
        split: See `TargetMeasure`.
        seed: See `TargetMeasure`.
        reference_examples: See `TargetMeasure`. Only `ActivationGradient` depends on it; the others
            have it so that they share passes with it.
        n_batches: How many batches of fresh sequences.
        batch_size: Sequences in a batch.
    """

    n_batches: int = 50
    batch_size: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(n_batches=self.n_batches, batch_size=self.batch_size)

    def labels(self, spec: ModelSpec) -> Labels:
        del spec
        return {"reading": tuple(READINGS)}

    def values(self, observation: Observation, split: str) -> Mapping[str, Any]:
        key = ("gradients", split, self.seed, self.n_batches, self.batch_size)
        found = observation.shared(
            (*key, self.reference_examples), lambda: self._read(observation, split)
        )
        return self.of_gradients(found)

    @abstractmethod
    def of_gradients(self, found: BatchGradients) -> Mapping[str, Any]:
        """The values, from what each batch says."""

    @property
    def sampled(self) -> str:
        """What the means are over, for definitions."""
        return (
            f"mean over {self.n_batches} batches of {self.batch_size} fresh sequences of the length"
            " (dL of the mean token loss, in nats)"
        )

    def _read(self, observation: Observation, split: str) -> BatchGradients:
        batches = fresh_batches(
            observation,
            split,
            n_batches=self.n_batches,
            batch_size=self.batch_size,
            seed=self.seed,
        )
        means = mean_activations(observation, self.reference(observation, split))
        with differentiating(observation.model):
            return batch_gradients(
                StagedForward(observation.references.staged),
                [(batch.tokens, batch.targets) for batch in batches],
                token_loss,
                means,
                first=first_scored(batches[0]),
            )


@dataclass(frozen=True)
class GradientNorm(GradientMeasure):
    """The size of the loss's gradient with respect to each component's weights.

    The fields are those of `GradientMeasure`. **Hooks that are attached to the model do not act.**
    """

    name: ClassVar[str] = "gradient_norm"

    def quantities(self) -> Mapping[str, Quantity]:
        formula = (
            "Frobenius norm of dL/dW / sqrt(number of parameters in W); W: 'W_V' the head's slice "
            "of W_V, of an MLP W_out; 'W_V+W_O' the head's slices of both, of an MLP W_in and "
            f"W_out; biases left out; {self.sampled}; {PAPER}"
        )
        return with_interval(
            "gradient_norm",
            Quantity(
                ("reading", "component"),
                "gradient norm",
                "nats per unit of weight",
                formula,
                "[0, inf)",
            ),
        ) | counted("gradient_norm_n")

    def of_gradients(self, found: BatchGradients) -> Mapping[str, Any]:
        return means_of("gradient_norm", found.norm)


@dataclass(frozen=True)
class WeightGradient(GradientMeasure):
    """Weight times gradient: to first order, what setting a component's weights to zero changes.

    The fields are those of `GradientMeasure`. **Hooks that are attached to the model do not act.**
    """

    name: ClassVar[str] = "weight_gradient"

    def quantities(self) -> Mapping[str, Quantity]:
        formula = (
            "sum of W dL/dW over the head's slices of W_V and W_O, over W_in and W_out of an MLP "
            f"(biases left out); {self.sampled}. Ours, beyond {PAPER}"
        )
        return signed_and_size("weight_gradient", "weight x gradient", formula)

    def of_gradients(self, found: BatchGradients) -> Mapping[str, Any]:
        return size_of("weight_gradient", found.weight)


@dataclass(frozen=True)
class ActivationGradient(GradientMeasure):
    """Attribution patching towards the mean: to first order, what mean ablation adds to the loss.

    The fields are those of `GradientMeasure`. **Hooks that are attached to the model do not act.**
    """

    name: ClassVar[str] = "activation_gradient"

    def quantities(self) -> Mapping[str, Quantity]:
        formula = (
            "sum over positions of (mean - a) dL/da, with a = z of the head, before W_O, or mlp_out"
            f" of the MLP; mean of a over {self.reference_examples} other fresh sequences, per "
            f"position; {self.sampled}. Attribution patching (arXiv:2310.10348); not in {PAPER}"
        )
        return signed_and_size("activation_gradient", "activation x gradient", formula)

    def of_gradients(self, found: BatchGradients) -> Mapping[str, Any]:
        return size_of("activation_gradient", found.activation)


def mean_activations(
    observation: Observation, reference: TargetSplit
) -> dict[Place, Float[Tensor, "position ..."]]:
    """The mean of each site over sequences, position by position, in float64."""
    references, found = observation.references, {}
    for layer in range(observation.spec.n_layers):
        found["z", layer] = references.mean(reference, "z", layer)
        found["mlp_out", layer] = references.mean(reference, "mlp_out", layer)
    return found


def first_scored(split: TargetSplit) -> int:
    """The first position at which an example of a split is scored."""
    return int(split.scored.any(0).int().argmax())


def with_interval(name: str, of: Quantity) -> dict[str, Quantity]:
    """A mean over batches, and its 95% interval."""
    interval = Quantity(
        (*of.dims, "bound"),
        f"{of.long_name}, 95% interval",
        of.units,
        "mean -+ 1.96 standard errors over batches",
        "(-inf, inf)",
        TOO_FEW,
    )
    return {name: of, f"{name}_interval": interval}


def counted(name: str) -> dict[str, Quantity]:
    """The number of batches behind a mean."""
    return {name: Quantity((), "batches", "batches", "number of batches averaged over", "[0, inf)")}


def signed_and_size(name: str, title: str, formula: str) -> dict[str, Quantity]:
    """A signed mean over batches with its interval, its size, and the number of batches."""
    size = Quantity(("component",), title, "nats", f"size of: {formula}", "[0, inf)")
    signed = Quantity(("component",), f"{title}, signed", "nats", formula, "(-inf, inf)")
    return {name: size} | with_interval(f"{name}_signed", signed) | counted(f"{name}_n")


def means_of(name: str, by_batch: Float[np.ndarray, "batch ..."]) -> dict[str, Any]:
    """The values of `with_interval` and `counted`."""
    mean = mean_with_interval(by_batch)
    return {name: mean.value, f"{name}_interval": mean.interval, f"{name}_n": len(by_batch)}


def size_of(name: str, by_batch: Float[np.ndarray, "batch component"]) -> dict[str, Any]:
    """The values of `signed_and_size`."""
    mean = mean_with_interval(by_batch)
    return {
        name: np.abs(mean.value),
        f"{name}_signed": mean.value,
        f"{name}_signed_interval": mean.interval,
        f"{name}_n": len(by_batch),
    }
