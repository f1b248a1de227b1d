"""The gradient of a two-layer network's mean loss on pairs of tokens, and nothing besides.

The parameters are those of the `TwoLayerNet`, so that hooks and swapped activations work on it
between steps; the step itself attaches no graph to them. Embedding two tokens and adding up is one
lookup of sums; its gradient is one sum over the pairs of each token. What is left is the three
matrix products with W, taken in chunks whose neurons stay in the cache. It equals autograd through
`TwoLayerNet.forward` up to rounding, and gives the same bits at the same thread count. Updating is
left to the optimiser.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from interp_shortcuts.models.activations import activation_function
from interp_shortcuts.models.two_layer import TwoLayerNet

PAIRS_AT_ONCE = 1024
"""Pairs of a chunk on a CPU: few enough for their neurons to stay in the cache. It is fixed, since
sums depend on it by rounding."""
_PAIRS_AT_ONCE_ELSEWHERE = 2**16


@runtime_checkable
class PairScores(Protocol):
    """What is asked of a task: the loss of each example."""

    def loss(
        self, logits: Float[Tensor, "example class"], labels: Int[Tensor, " example"]
    ) -> Float[Tensor, " example"]:
        """The loss of each example, in nats."""
        ...


@dataclass(frozen=True, eq=False)
class PairChunk:
    """Some pairs, laid out for their embedding and its gradient."""

    labels: Int[Tensor, " pair"]
    rows: Int[Tensor, "pair 2"]
    """The rows of the stacked embeddings that each pair adds up."""
    users: Int[Tensor, " row_of_pair"]
    """The pairs that use each row of the embeddings, row after row."""
    starts: Int[Tensor, " row"]
    """Where in `users` those of each row begin."""

    @classmethod
    def of(
        cls, rows: Int[Tensor, "pair 2"], labels: Int[Tensor, " pair"], *, n_rows: int
    ) -> PairChunk:
        """Lay out pairs.

        Args:
            rows: The rows of the stacked embeddings that each pair adds up.
            labels: The labels of the pairs.
            n_rows: Number of rows of the stacked embeddings.
        """
        users = torch.argsort(rows.flatten(), stable=True) // 2
        counts = torch.bincount(rows.flatten().cpu(), minlength=n_rows).to(rows.device)
        return cls(labels, rows, users, counts.cumsum(0) - counts)


class PairLoss:
    """The mean loss over training pairs, and its gradient."""

    def __init__(
        self,
        net: TwoLayerNet,
        task: PairScores,
        tokens: Int[Tensor, "pair 2"],
        labels: Int[Tensor, " pair"],
    ) -> None:
        """Lay out the training pairs.

        Args:
            net: The network in training; its parameters receive the gradients.
            task: Whose loss it is.
            tokens: The training pairs.
            labels: Their labels, as they are trained.
        """
        self.net = net
        self.task = task
        device = net.mu.device
        shift = 0 if net.spec.tied else net.spec.n_tokens
        self._rows = tokens.to(device) + torch.tensor([0, shift], device=device)
        self._labels = labels.to(device)
        self._all = self._chunks(self._rows, self._labels)

    def backward(self, batch: Int[Tensor, " pair"] | None = None) -> float:
        """Add the gradient of the mean loss to the parameters' `grad`.

        Args:
            batch: Which training pairs; None for all of them.

        Returns:
            The mean loss, in nats.
        """
        chunks = self._all
        if batch is not None:
            batch = batch.to(self._labels.device)
            chunks = self._chunks(self._rows[batch], self._labels[batch])
        n = sum(len(chunk.labels) for chunk in chunks)
        net, wide = self.net, [self.net.U.detach()]
        embedding = torch.cat(wide if net.spec.tied else [*wide, net.V.detach()])
        found = {
            "embedding": torch.zeros_like(embedding),
            "W": torch.zeros_like(net.W),
            "mu": torch.zeros_like(net.mu),
        }
        total = sum(self._add(chunk, embedding, found, n=n) for chunk in chunks)
        _receive(net.U, found["embedding"][: net.spec.n_tokens])
        if not net.spec.tied:
            _receive(net.V, found["embedding"][net.spec.n_tokens :])
        _receive(net.W, found["W"])
        _receive(net.mu, found["mu"])
        return float(total)

    def _add(
        self,
        chunk: PairChunk,
        embedding: Float[Tensor, "row neuron"],
        found: dict[str, Tensor],
        *,
        n: int,
    ) -> float:
        """Add a chunk's part of the gradient, and give its part of the mean over n pairs."""
        weight = self.net.W.detach()
        pre = functional.embedding_bag(chunk.rows, embedding, mode="sum")
        post, to_pre_from = _activated(self.net.activation, pre)
        logits = torch.addmm(self.net.mu.detach(), post, weight)
        with torch.enable_grad():  # for the loss alone
            loss = self.task.loss(logits.requires_grad_(), chunk.labels).sum() / n
        (to_logits,) = torch.autograd.grad(loss, logits)
        found["mu"] += to_logits.sum(0)
        found["W"].addmm_(post.T, to_logits)
        to_pre = to_pre_from(to_logits @ weight.T)
        found["embedding"] += functional.embedding_bag(
            chunk.users, to_pre, chunk.starts, mode="sum"
        )
        return loss.item()

    def _chunks(self, rows: Int[Tensor, "pair 2"], labels: Int[Tensor, " pair"]) -> list[PairChunk]:
        """The pairs in the order of their first token, so that a chunk reads few rows."""
        spec = self.net.spec
        on_cpu = rows.device.type == "cpu"
        most = PAIRS_AT_ONCE if on_cpu else _PAIRS_AT_ONCE_ELSEWHERE
        order = torch.argsort(rows[:, 0], stable=True).split(most)
        n_rows = spec.n_tokens * (1 if spec.tied else 2)
        return [PairChunk.of(rows[part], labels[part], n_rows=n_rows) for part in order]


def _activated(
    name: str, pre: Float[Tensor, "pair neuron"]
) -> tuple[Float[Tensor, "pair neuron"], Callable[[Tensor], Tensor]]:
    """What neurons give, and how a gradient to that becomes one to `pre`; both may be overwritten.

    ReLU is done in place, since what is written anew leaves the cache.
    """
    if name == "relu":
        post = pre.relu_()
        backward = torch.ops.aten.threshold_backward.grad_input
        return post, lambda gradient: backward(gradient, post, 0, grad_input=gradient)
    with torch.enable_grad():
        given = activation_function(name)(pre.requires_grad_())
    return given.detach(), lambda gradient: torch.autograd.grad(given, pre, gradient)[0]


def _receive(parameter: Tensor, gradient: Tensor) -> None:
    parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
