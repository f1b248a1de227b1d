"""A differentiable forward pass whose components can be edited: z of each head, and mlp_out.

Attribution needs gradients with respect to activations and to each component's own weights. An
edit is a function of a site's activation: it may add a zero to be differentiated, keep the
activation, or put another in its place. Two forwards do the same: `StagedForward` is the plain one
of `staged`, fast, and able to go on from clean activations; that of `hooked_forward` is for models
that a `ModelSpec` cannot describe. Many ablations at once, without gradients, are `variants`'
business.

Weights and activations are at copies that are leaves, so that nothing of the model is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.build import eager
from interp_shortcuts.models.hooks import has_hooks, reading
from interp_shortcuts.models.layout import Layer, Norm
from interp_shortcuts.models.sites import Component
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.staged import Stage, StagedModel

Place: TypeAlias = tuple[Literal["z", "mlp_out"], int]
"""A site and its layer: z [example position head d_head], before W_O, or mlp_out [example position
d_model], bias included."""
Edits: TypeAlias = Mapping[Place, Callable[[Tensor], Tensor]]
MatrixName = Literal["W_V", "W_O", "W_in", "W_out"]


@dataclass(frozen=True, eq=False)
class Piece:
    """A component's part of a weight matrix.

    Attributes:
        name: Which matrix.
        leaf: The whole tensor that the forward reads, a leaf that gradients are taken of.
        index: The component's part of it.
    """

    name: MatrixName
    leaf: Tensor
    index: tuple[int | slice, ...]

    def part(self, tensor: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The component's part of the leaf, or of its gradient."""
        return tensor[self.index]


@runtime_checkable
class ComponentForward(Protocol):
    """A model's forward with edits at its components."""

    @property
    def components(self) -> tuple[Component, ...]:
        """Heads and MLPs, layer by layer."""
        ...

    @property
    def pieces(self) -> Mapping[Component, tuple[Piece, ...]]:
        """W_V and W_O of a head, W_in and W_out of an MLP; a gate counts to W_in."""
        ...

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        ...

    def clean(self, tokens: Int[Tensor, "example position"]) -> Sequence[Stage] | None:
        """Activations without edits, from which `logits` can go on; None if it cannot."""
        ...

    def logits(
        self,
        tokens: Int[Tensor, "example position"],
        edits: Edits,
        *,
        first: int = 0,
        clean: Sequence[Stage] | None = None,
    ) -> Float[Tensor, "example tail class"]:
        """The logits from a position on, differentiable in what the edits bring in."""
        ...


def place_of(component: Component) -> Place:
    """Where a head or an MLP is edited."""
    return ("mlp_out" if component.kind == "mlp" else "z", component.layer)


def part_of(component: Component, activation: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The component's part of the activation at its place: of z, its own head."""
    return activation if component.head is None else activation[..., component.head, :]


def places_of(components: Sequence[Component]) -> tuple[Place, ...]:
    """The places of some components, each once."""
    return tuple(dict.fromkeys(place_of(component) for component in components))


class StagedForward:
    """The plain forward of a model that a spec describes. Hooks do not act.

    Args:
        staged: The model's layout.
    """

    def __init__(self, staged: StagedModel) -> None:
        layers = tuple(_with_leaves(layer) for layer in staged.layers)
        self._staged = replace(_detached(staged), layers=layers)
        self.device = staged.W_E.device
        self.pieces: dict[Component, tuple[Piece, ...]] = {}
        whole = (slice(None),)
        for index, at in enumerate(layers):
            d_head = len(at.b_V) // staged.n_heads
            for head in range(staged.n_heads):
                own = slice(head * d_head, (head + 1) * d_head)
                self.pieces[Component(index, "head", head)] = (
                    Piece("W_V", at.W_V, (own,)),
                    Piece("W_O", at.W_O, (slice(None), own)),
                )
            self.pieces[Component(index, "mlp")] = (
                Piece("W_in", at.W_in, whole),
                Piece("W_out", at.W_out, whole),
            )
        self.components = tuple(self.pieces)

    def clean(self, tokens: Int[Tensor, "example position"]) -> list[Stage]:
        """The activations of every layer, without edits and without gradients."""
        with torch.no_grad():
            return list(self._staged.stages(tokens.to(self.device)))

    def logits(
        self,
        tokens: Int[Tensor, "example position"],
        edits: Edits,
        *,
        first: int = 0,
        clean: Sequence[Stage] | None = None,
    ) -> Float[Tensor, "example tail class"]:
        """The logits from a position on.

        Args:
            tokens: The sequences.
            edits: What happens to the activation at each place.
            first: The first position asked.
            clean: What `clean` gave for these sequences; the pass then begins at the first edit,
                and gradients stop there.
        """
        staged = self._staged
        begin = 0
        if clean is not None:
            begin = min((layer for _, layer in edits), default=staged.n_layers - 1)
            resid = clean[begin].resid_pre
        else:
            staged.check(tokens)
            resid = staged.embed(tokens.to(self.device, copy=True))
        for layer in range(begin, staged.n_layers):
            if clean is not None and layer == begin:
                z = clean[layer].z
            else:
                x = staged.layers[layer].norm1(resid)
                z = staged.mix(layer, staged.attend(layer, x), x)
            z = _edited(edits, ("z", layer), z)
            mid = resid + staged.write(layer, z)
            resid = mid + _edited(edits, ("mlp_out", layer), staged.mlp(layer, mid))
        return staged.logits(resid[:, first:])


@contextmanager
def component_forward(model: nn.Module) -> Iterator[ComponentForward]:
    """The forward that fits a model, with gradients on; the model is left as it was.

    The plain one if a spec describes the model and no hook is attached to it; else one in which
    hooks act.

    Args:
        model: Any `HookedTransformer`, also a compiled one.

    Raises:
        ConfigError: If the model has no heads or MLPs of the known kind.
    """
    from interp_shortcuts.models.hooked_forward import HookedForward

    with differentiating(model) as module:
        if has_hooks(module) or not _is_described(module):
            yield HookedForward(module)
        else:
            yield StagedForward(StagedModel.of(module))


@contextmanager
def differentiating(model: nn.Module) -> Iterator[Any]:
    """As `reading`, with gradients on, also where the caller has switched them off."""
    with torch.inference_mode(False), reading(eager(model)) as module, torch.enable_grad():
        yield module


def _is_described(module: nn.Module) -> bool:
    try:
        ModelSpec.from_model(module)
    except ConfigError:
        return False
    return True


def _edited(edits: Edits, place: Place, activation: Tensor) -> Tensor:
    return edits[place](activation) if place in edits else activation


def _detached(part: Any) -> Any:
    """A layout whose tensors are cut off from the model's parameters; memory is shared."""
    changes: dict[str, Any] = {}
    for item in fields(part):
        value = getattr(part, item.name)
        if isinstance(value, Tensor):
            changes[item.name] = value.detach()
        elif isinstance(value, Norm):
            changes[item.name] = _detached(value)
    return replace(part, **changes)


def _with_leaves(layer: Layer) -> Layer:
    layer = _detached(layer)
    names: tuple[MatrixName, ...] = ("W_V", "W_O", "W_in", "W_out")
    return replace(layer, **{name: getattr(layer, name).requires_grad_() for name in names})
