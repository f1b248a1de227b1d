"""Integrated gradients of each component's activation, from its mean to what it is.

For one component at a time, with all others as they are: the integral over t from 0 to 1 of
(a - mean) dL/da at mean + t (a - mean), summed over positions (arXiv 1703.01365). By completeness
it is L(a) - L(mean): exactly what mean ablation changes of the loss. The integral is taken by
Gauss-Legendre quadrature, whose few nodes see the whole path; what completeness lacks is
reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from interp_shortcuts.measures.attribution.gradient_measures import first_scored, mean_activations
from interp_shortcuts.measures.attribution.gradient_reading import Batch, ExampleLoss, Means
from interp_shortcuts.measures.attribution.ood_examples import fresh_examples
from interp_shortcuts.measures.attribution.target_measure import PAPER, Quantity, TargetMeasure
from interp_shortcuts.measures.effects import require_positive
from interp_shortcuts.measures.intervals import mean_with_interval
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.component_forward import (
    ComponentForward,
    Place,
    StagedForward,
    differentiating,
    part_of,
    place_of,
    places_of,
)
from interp_shortcuts.models.sites import Component
from interp_shortcuts.tasks.target_scores import token_loss


class Integrated(NamedTuple):
    """Integrated gradients towards the mean, and what they should be.

    Attributes:
        towards_mean: Minus the integral: the rise of the loss that it says mean ablation causes.
        rise: The rise that mean ablation causes, L(mean) - L(a). Equal by completeness.
    """

    towards_mean: Float[np.ndarray, "component example"]
    rise: Float[np.ndarray, "component example"]


def integrate_gradients(
    forward: ComponentForward,
    batch: Batch,
    loss: ExampleLoss,
    means: Means,
    *,
    steps: int,
    first: int = 0,
) -> Integrated:
    """Integrates the gradients of each example's loss, one component after the other.

    Args:
        forward: The model, with gradients on.
        batch: Tokens and targets.
        loss: The loss of each example.
        means: Of the components' activations.
        steps: Nodes of the quadrature.
        first: The first position that is scored; see `batch_gradients`.
    """
    tokens, targets = batch
    targets = targets[:, first:].to(forward.device)
    clean = forward.clean(tokens)
    seen: dict[Place, Tensor] = {}
    with torch.no_grad():
        edits = {place: _keeping(place, seen) for place in places_of(forward.components)}
        plain = loss(forward.logits(tokens, edits, first=first), targets).double()

    def losses(component: Component, value: Tensor) -> Tensor:
        place = place_of(component)
        edits = {place: lambda _: _with_part(component, seen[place], value)}
        return loss(forward.logits(tokens, edits, first=first, clean=clean), targets)

    nodes, weights = np.polynomial.legendre.leggauss(steps)
    found, rises = [], []
    for component in forward.components:
        place = place_of(component)
        own = part_of(component, seen[place])
        mean = part_of(component, means[place].to(own)).expand_as(own)
        total = torch.zeros(len(own), dtype=torch.float64, device=own.device)
        for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            value = (mean + float(node) * (own - mean)).detach().requires_grad_()
            (slope,) = torch.autograd.grad(losses(component, value).sum(), value)
            total += float(weight) * ((mean - own).double() * slope.double()).flatten(1).sum(1)
        with torch.no_grad():
            rises.append((losses(component, mean).double() - plain).cpu().numpy())
        found.append(total.cpu().numpy())
    return Integrated(np.stack(found), np.stack(rises))


def _keeping(place: Place, seen: dict[Place, Tensor]) -> Any:
    def edit(activation: Tensor) -> Tensor:
        seen[place] = activation.detach()
        return activation

    return edit


def _with_part(component: Component, whole: Tensor, part: Tensor) -> Tensor:
    """The activation of a place with one component's part exchanged."""
    if component.head is None:
        return part
    heads = list(whole.unbind(-2))
    heads[component.head] = part
    return torch.stack(heads, -2)


@dataclass(frozen=True)
class IntegratedGradients(TargetMeasure):
    """The loss's gradient at each component's activation, integrated from the mean to what it is.

    **Hooks that are attached to the model do not act.**

    Attributes:
        split: See `TargetMeasure`.
        seed: See `TargetMeasure`.
        reference_examples: See `TargetMeasure`.
        examples: Fresh sequences of the length over which the mean is taken.
        steps: Nodes of the quadrature along the path.
        chunk: How many examples are held at a time; bounds the memory.
    """

    name: ClassVar[str] = "integrated_gradients"

    examples: int = 64
    steps: int = 6
    chunk: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(examples=self.examples, steps=self.steps, chunk=self.chunk)

    def quantities(self) -> Mapping[str, Quantity]:
        formula = (
            "minus the integral over t of (a - mean) dL/da at mean + t (a - mean), summed over "
            f"positions ({self.steps} Gauss-Legendre nodes), with a = z of the head, before W_O, or"
            f" mlp_out; one component at a time; mean of a over {self.reference_examples} other "
            f"fresh sequences, per position; mean over {self.examples} fresh sequences of the "
            "length; to be compared with the rise of the loss under mean ablation "
            f"(arXiv:1703.01365); ours, beyond {PAPER}"
        )
        dims, few = ("component",), "there are fewer than two sequences"
        return {
            "integrated_gradients": Quantity(
                dims, "integrated gradients", "nats", f"size of: {formula}", "[0, inf)"
            ),
            "integrated_gradients_signed": Quantity(
                dims, "integrated gradients, signed", "nats", formula, "(-inf, inf)"
            ),
            "integrated_gradients_signed_interval": Quantity(
                (*dims, "bound"),
                "integrated gradients, signed, 95% interval",
                "nats",
                "mean -+ 1.96 standard errors over sequences",
                "(-inf, inf)",
                few,
            ),
            "integrated_gradients_gap": Quantity(
                dims,
                "integrated gradients, what completeness lacks",
                "nats",
                "|mean of the signed integral - mean rise of the loss under mean ablation|, on the "
                "same sequences; 0 if the quadrature were exact",
                "[0, inf)",
            ),
            "integrated_gradients_n": Quantity(
                (), "sequences", "examples", "number of sequences averaged over", "[0, inf)"
            ),
        }

    def values(self, observation: Observation, split: str) -> Mapping[str, Any]:
        examples = fresh_examples(observation, split, "examples", n=self.examples, seed=self.seed)
        means = mean_activations(observation, self.reference(observation, split))
        with differentiating(observation.model):
            forward = StagedForward(observation.references.staged)
            parts = [
                integrate_gradients(
                    forward,
                    (tokens, targets),
                    token_loss,
                    means,
                    steps=self.steps,
                    first=first_scored(examples),
                )
                for tokens, targets in zip(
                    examples.tokens.split(self.chunk),
                    examples.targets.split(self.chunk),
                    strict=True,
                )
            ]
        found, rise = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
        mean = mean_with_interval(found.T)
        return {
            "integrated_gradients": np.abs(mean.value),
            "integrated_gradients_signed": mean.value,
            "integrated_gradients_signed_interval": mean.interval,
            "integrated_gradients_gap": np.abs(mean.value - rise.mean(1)),
            "integrated_gradients_n": examples.n,
        }
