"""What the gradient of the loss says of each component: of its weights, and of its activation.

All of it comes from one backward pass a batch. What is read:

- the *gradient norm*, |dL/dW| / sqrt(number of parameters in W), of a head's V or V and O slices
  and an MLP's output or both matrices (biases left out);
- *weight x gradient*, the sum of W dL/dW: to first order, the fall of the loss if the weights were
  set to zero;
- *attribution patching*, the sum of (mean - a) dL/da at z (before W_O) or mlp_out: to first order,
  the rise of the loss if the activation were replaced by its mean (Nanda 2023; arXiv 2310.10348).

L is the mean over a batch of the loss of an example. The measures are in `gradient_measures`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.models.component_forward import (
    ComponentForward,
    Place,
    part_of,
    place_of,
    places_of,
)
from interp_shortcuts.models.sites import Component

ExampleLoss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""From logits [example position class] and targets [example position] to a loss [example]."""
Batch: TypeAlias = tuple[Int[Tensor, "example position"], Int[Tensor, "example position"]]
"""Tokens and targets."""
Means: TypeAlias = Mapping[Place, Float[Tensor, "..."]]
"""The mean activation at each place, position by position; or one for all positions."""

READINGS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "W_V": {"head": ("W_V",), "mlp": ("W_out",)},
    "W_V+W_O": {"head": ("W_V", "W_O"), "mlp": ("W_in", "W_out")},
}
"""Which matrices a reading counts, by kind of component. The paper names W_V and W_O; whether its
latest version counts W_O for heads is unknown, so both are read."""
BOTH = "W_V+W_O"


class BatchGradients(NamedTuple):
    """What each batch says of each component.

    Attributes:
        norm: Frobenius norm of the gradient / sqrt(number of parameters), by reading.
        weight: Sum of weight times gradient, over both matrices; signed.
        activation: Sum of (mean - activation) times gradient, averaged over the batch; signed.
    """

    norm: Float[np.ndarray, "batch reading component"]
    weight: Float[np.ndarray, "batch component"]
    activation: Float[np.ndarray, "batch component"]


def batch_gradients(
    forward: ComponentForward,
    batches: Iterable[Batch],
    loss: ExampleLoss,
    means: Means,
    *,
    first: int = 0,
) -> BatchGradients:
    """Reads the gradients of the mean loss of each batch.

    Args:
        forward: The model, with gradients on.
        batches: Tokens and targets, batch by batch.
        loss: The loss of each example.
        means: Of the components' activations.
        first: The first position that is scored; the logits before it are not computed, and `loss`
            is given the targets from it on.

    Raises:
        MeasureError: If there is no batch.
    """
    found = [_of_batch(forward, batch, loss, means, first) for batch in batches]
    if not found:
        raise MeasureError("`batches` must hold at least one batch; got none.")
    return BatchGradients(*(np.stack(each) for each in zip(*found, strict=True)))


def _of_batch(
    forward: ComponentForward, batch: Batch, loss: ExampleLoss, means: Means, first: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    tokens, targets = batch
    seen: dict[Place, Tensor] = {}
    zeros: dict[Place, Tensor] = {}
    edits = {place: _adding_zero(place, seen, zeros) for place in places_of(forward.components)}
    logits = forward.logits(tokens, edits, first=first)
    value = loss(logits, targets[:, first:].to(logits.device)).mean()
    leaves = {id(piece.leaf): piece.leaf for own in forward.pieces.values() for piece in own}
    asked = [*zeros.values(), *leaves.values()]
    slopes = torch.autograd.grad(value, asked, allow_unused=True, materialize_grads=True)
    of_place = dict(zip(zeros, slopes, strict=False))
    of_leaf = dict(zip(leaves, slopes[len(zeros) :], strict=True))
    norms = [
        [
            _norm(forward, component, names[component.kind], of_leaf)
            for component in forward.components
        ]
        for names in READINGS.values()
    ]
    weights = [_weight(forward, component, of_leaf) for component in forward.components]
    moved = {
        place: (means[place].to(seen[place]) - seen[place]).double() * of_place[place].double()
        for place in zeros
    }
    activations = [
        float(part_of(component, moved[place_of(component)]).sum())
        for component in forward.components
    ]
    return np.array(norms), np.array(weights), np.array(activations)


def _adding_zero(
    place: Place, seen: dict[Place, Tensor], zeros: dict[Place, Tensor]
) -> Callable[[Tensor], Tensor]:
    """Adds a zero to differentiate: an activation itself may have no gradient of its own."""

    def edit(activation: Tensor) -> Tensor:
        seen[place] = activation.detach()
        zeros[place] = torch.zeros_like(activation).requires_grad_()
        return activation + zeros[place]

    return edit


def _norm(
    forward: ComponentForward,
    component: Component,
    names: tuple[str, ...],
    slopes: Mapping[int, Tensor],
) -> float:
    parts = [
        piece.part(slopes[id(piece.leaf)]).double()
        for piece in forward.pieces[component]
        if piece.name in names
    ]
    square = sum(float(part.square().sum()) for part in parts)
    return (square / sum(part.numel() for part in parts)) ** 0.5


def _weight(forward: ComponentForward, component: Component, slopes: Mapping[int, Tensor]) -> float:
    products = [
        (piece.part(piece.leaf.detach()).double() * piece.part(slopes[id(piece.leaf)]).double())
        for piece in forward.pieces[component]
    ]
    return sum(float(product.sum()) for product in products)
