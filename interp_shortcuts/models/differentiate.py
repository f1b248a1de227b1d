"""Gradients of a loss at the read position: of its mean and of single examples, and by logits.

They are taken at copies of the weights, so nothing of the model is changed, whatever its
`requires_grad` says. Which parameters make up a part of the model is in `parts`; what gradients
mean is left to the measures.

Losses are computed from logits in float64, whatever the model's precision: once an example is
learned its gradient is p - y with p next to y, of which float32 keeps few digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.models.hooks import has_hooks, reading
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.models.staged import ReadPosition

Loss = Callable[[Tensor, Tensor], Tensor]
"""From logits [example class] and labels [example] to the loss of each example, [example]."""

NUMBERS_AT_ONCE = 2**24
"""Gradients of single examples are held for as many examples as make this many numbers."""


def mean_gradient(
    model: nn.Module,
    tokens: Int[Tensor, "example position"],
    labels: Int[Tensor, " example"],
    loss: Loss,
    *,
    position: int = -1,
    chunk: int = 4096,
) -> dict[str, Float[Tensor, "..."]]:
    """The gradient of the mean loss over the examples, with respect to every parameter.

    Hooks that are attached to the model act. Half-precision weights are read in float32.

    Args:
        model: A `HookedTransformer`, also a compiled one.
        tokens: The examples, at least one.
        labels: What the loss compares the logits to.
        loss: The loss of each example from its own logits.
        position: Where the logits are read; negative counts from the end.
        chunk: Examples in one forward pass; the gradients of chunks are added up.

    Returns:
        By TransformerLens's name, on the CPU, in float32 or float64.

    Raises:
        MeasureError: If there is no example.
    """
    if not len(tokens):
        raise MeasureError("`tokens` must hold at least one example; got 0.")
    with _differentiable(model, position) as answer:
        total = [torch.zeros_like(weight) for weight in answer.weights.values()]
        for rows in torch.arange(len(tokens)).split(chunk):
            values = loss(answer(tokens[rows]).double(), labels[rows].to(answer.device))
            found = answer.gradients(values.sum() / len(tokens))
            total = [before + now for before, now in zip(total, found, strict=True)]
        return dict(zip(answer.names, (value.cpu() for value in total), strict=True))


def example_gradient_norms(
    model: nn.Module,
    tokens: Int[Tensor, "example position"],
    labels: Int[Tensor, " example"],
    loss: Loss,
    *,
    position: int = -1,
) -> Float[Tensor, " example"]:
    """The Euclidean norm of each example's own gradient with respect to all parameters.

    The arguments are those of `mean_gradient`; without an example the result is empty. On the CPU,
    in float64.
    """
    if not len(tokens):
        return torch.zeros(0, dtype=torch.float64)
    with _differentiable(model, position) as answer:
        if answer.hooked:  # a hook may look at values, which vmap forbids: one example at a time
            squares = []
            for one in torch.arange(len(tokens)).split(1):
                value = loss(answer(tokens[one]).double(), labels[one].to(answer.device)).sum()
                squares.append(_squared(answer.gradients(value)))
            return torch.tensor(squares, dtype=torch.float64).sqrt()
        at_once = max(1, NUMBERS_AT_ONCE // sum(w.numel() for w in answer.weights.values()))
        found = []
        for rows in torch.arange(len(tokens)).split(at_once):
            with torch.no_grad():
                logits = answer(tokens[rows])
            slopes = logit_gradients(logits.double(), labels[rows].to(answer.device), loss)
            found.append(answer.example_norms(tokens[rows], slopes))
        return torch.cat(found)


def logit_gradients(
    logits: Float[Tensor, "example class"], labels: Int[Tensor, " example"], loss: Loss
) -> Float[Tensor, "example class"]:
    """The gradient of each example's loss with respect to its own logits, in their precision."""
    with torch.inference_mode(False), torch.enable_grad():
        leaf = logits.detach().clone().requires_grad_()
        (found,) = torch.autograd.grad(loss(leaf, labels.clone()).sum(), leaf)
    return found


class _AtPosition(ReadPosition):
    """The logits at one position, from whatever weights the model holds when it is called.

    The plain forward answers where it can; a model with hooks answers itself, so that they act.
    """

    def __init__(self, model: HookedTransformer, position: int) -> None:
        super().__init__(model, position)
        self.hooked = has_hooks(model)

    def forward(self, tokens: Int[Tensor, "example position"]) -> Float[Tensor, "example class"]:
        """The logits of each example."""
        if self.hooked:
            return self.model(tokens)[:, self.position]
        return super().forward(tokens)


class _Answer:
    """The logits at one position as a function of weights that are copies of the model's."""

    def __init__(self, model: HookedTransformer, position: int) -> None:
        self.read = _AtPosition(model, position)
        self.hooked = self.read.hooked
        self.weights = {
            name: weight.detach().clone().requires_grad_()
            for name, weight in self.read.named_parameters()
        }
        self.names = tuple(name.removeprefix("model.") for name in self.weights)
        self.device = next(iter(self.weights.values())).device

    def __call__(self, tokens: Int[Tensor, "example position"]) -> Float[Tensor, "example class"]:
        """The logits of each example, differentiable in `weights`."""
        return functional_call(self.read, self.weights, (tokens.to(self.device, copy=True),))

    def gradients(self, value: Float[Tensor, ""]) -> list[Tensor]:
        """The gradient of one number with respect to each of the weights; zero where unused."""
        weights = list(self.weights.values())
        return list(torch.autograd.grad(value, weights, allow_unused=True, materialize_grads=True))

    def example_norms(
        self, tokens: Int[Tensor, "example position"], slopes: Float[Tensor, "example class"]
    ) -> Float[Tensor, " example"]:
        """The norm of each example's gradient, whose loss has these gradients by the logits."""

        def along(weights: dict[str, Tensor], one: Tensor, slope: Tensor) -> Tensor:
            return (functional_call(self.read, weights, (one[None],))[0] * slope).sum()

        weights = {name: weight.detach() for name, weight in self.weights.items()}
        each = vmap(grad(along), in_dims=(None, 0, 0))(weights, tokens.to(self.device), slopes)
        norms = [torch.linalg.vector_norm(g.flatten(1), dim=1) for g in each.values()]
        return torch.stack(norms).double().square().sum(0).sqrt().cpu()


@contextmanager
def _differentiable(model: nn.Module, position: int) -> Iterator[_Answer]:
    """The model's answer with gradients on; the model itself is only read, see `reading`."""
    with torch.inference_mode(False), reading(model) as module, torch.enable_grad():
        yield _Answer(module, position)


def _squared(gradients: list[Tensor]) -> float:
    return sum(float(value.square().sum().double()) for value in gradients)
