"""What runs, measures and timelines ask of a model, whichever kind it is.

Each kind is one `ModelKind` in `KINDS`: how it is built, filled, stored and asked for its answers.
The kinds themselves have modules of their own; their descriptions are listed in `any_spec`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.models.build import (
    build,
    check_positions,
    check_weights,
    load_weights,
    parameter_shapes,
    weights_of,
    without_extras,
)
from interp_shortcuts.models.compiled import unwrapped
from interp_shortcuts.models.forward import read_logits
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.models.picture_net import (
    PictureNet,
    build_picture_net,
    load_picture_weights,
    picture_weights,
    read_picture_logits,
)
from interp_shortcuts.models.picture_spec import PictureSpec
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.two_layer import (
    TwoLayerNet,
    build_two_layer,
    load_two_layer_weights,
    read_pair_logits,
    two_layer_weights,
    without_second_name,
)
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec

AnyModel: TypeAlias = HookedTransformer | TwoLayerNet | PictureNet
"""What can be trained, stored and observed; every kind is also in `KINDS`."""


@dataclass(frozen=True)
class Size:
    """A size of a spec that the task has a say in."""

    name: str
    """Of the spec's field or property."""
    of_task: str
    """The task's member that it is compared with."""
    exact: bool = True
    """Whether they must be equal; else the model's may be larger."""


@dataclass(frozen=True, kw_only=True)
class ModelKind:
    """What there is to know about a kind of model.

    Attributes:
        spec: Class of its specs.
        net: Class of its models.
        build: From a spec, a seed or None, and a device, to a model.
        load: Copies weights into a model; all or nothing.
        weights_of: A copy of every parameter, on the CPU.
        spec_of: The spec of a model.
        own_weights: What of a state dict is a weight, for a spec.
        check: Refuses weights that are not those of a spec.
        answers: Logits [example class] of the inputs, without gradients, on the CPU.
        sizes: What a task must fit.
    """

    spec: type
    net: type[nn.Module]
    build: Callable[..., AnyModel]
    load: Callable[[nn.Module, Mapping[str, Any]], None]
    weights_of: Callable[[nn.Module], dict[str, Tensor]]
    spec_of: Callable[[Any], AnySpec]
    own_weights: Callable[[Mapping[str, Any], Any], dict[str, Any]]
    check: Callable[[Mapping[str, Any], Any], None]
    answers: Callable[[nn.Module, Any], Tensor]
    sizes: tuple[Size, ...]


def _check_transformer(weights: Mapping[str, Any], spec: ModelSpec) -> None:
    check_weights(weights, parameter_shapes(spec))
    check_positions(weights, spec)


TRANSFORMER = ModelKind(
    spec=ModelSpec,
    net=HookedTransformer,
    build=build,
    load=load_weights,
    weights_of=weights_of,
    spec_of=ModelSpec.from_model,
    own_weights=lambda weights, _spec: without_extras(weights),
    check=_check_transformer,
    answers=read_logits,
    sizes=(
        Size("d_vocab", "n_tokens", exact=False),
        Size("n_ctx", "context", exact=False),
        Size("d_vocab_out", "n_classes"),
    ),
)

TWO_LAYER = ModelKind(
    spec=TwoLayerSpec,
    net=TwoLayerNet,
    build=build_two_layer,
    load=load_two_layer_weights,
    weights_of=two_layer_weights,
    spec_of=lambda net: net.spec,
    own_weights=without_second_name,
    check=lambda weights, spec: check_weights(weights, spec.shapes),
    answers=read_pair_logits,
    sizes=(
        Size("n_tokens", "n_tokens"),
        Size("context", "context"),
        Size("n_classes", "n_classes"),
    ),
)

PICTURE_NET = ModelKind(
    spec=PictureSpec,
    net=PictureNet,
    build=build_picture_net,
    load=load_picture_weights,
    weights_of=picture_weights,
    spec_of=lambda net: net.spec,
    own_weights=lambda weights, _spec: without_extras(weights),
    check=lambda weights, spec: check_weights(weights, spec.shapes),
    answers=read_picture_logits,
    sizes=(Size("n_pixels", "n_pixels"), Size("n_classes", "n_classes")),
)

KINDS: tuple[ModelKind, ...] = (TRANSFORMER, TWO_LAYER, PICTURE_NET)


def kind_of_spec(spec: AnySpec) -> ModelKind:
    """The kind of model that a spec describes.

    Raises:
        ConfigError: If it describes none.
    """
    for kind in KINDS:
        if isinstance(spec, kind.spec):
            return kind
    names = _one_of([kind.spec.__name__ for kind in KINDS])
    raise ConfigError(f"`spec` must be a {names}; got {type(spec).__name__}.")


def build_any(
    spec: AnySpec, *, seed: int | None = None, device: str | torch.device = "cpu"
) -> AnyModel:
    """A new model of any kind; global random state stays untouched.

    Args:
        spec: What to build.
        seed: Draws the weights. Without one, a model to load weights into.
        device: Where the parameters live.
    """
    return kind_of_spec(spec).build(spec, seed=seed, device=device)


def own_model(model: nn.Module) -> AnyModel:
    """The model itself, also when a `torch.compile`d one is handed over.

    Raises:
        ConfigError: If no model of a known kind is inside.
    """
    nets = tuple(kind.net for kind in KINDS)
    return unwrapped(model, *nets)  # type: ignore[return-value] - the members of `AnyModel`


def kind_of(model: nn.Module) -> ModelKind:
    """The kind of a model, also of a compiled one.

    Raises:
        ConfigError: If it is of no known kind.
    """
    own = own_model(model)
    return next(kind for kind in KINDS if isinstance(own, kind.net))


def spec_of(model: nn.Module) -> AnySpec:
    """The spec that a model has, also a compiled one.

    Raises:
        ConfigError: If it is of no known kind, or has a part that a spec cannot describe.
    """
    return kind_of(model).spec_of(own_model(model))


def weights_of_any(model: nn.Module) -> dict[str, Tensor]:
    """A copy of every parameter, on the CPU and in the model's dtype; no masks or buffers."""
    return kind_of(model).weights_of(model)


def load_any(model: nn.Module, weights: Mapping[str, Any]) -> None:
    """Copies weights into a model; nothing is changed unless all of them fit.

    Raises:
        StorageError: If a name is missing or unknown, a shape differs, or a value is not finite.
    """
    kind_of(model).load(model, weights)


def own_weights(weights: Mapping[str, Any], spec: AnySpec) -> dict[str, Any]:
    """A state dict without what is no weight of its own: masks, prefixes, second names."""
    return kind_of_spec(spec).own_weights(weights, spec)


def check_weights_of(weights: Mapping[str, Any], spec: AnySpec) -> None:
    """Refuses weights that are not finite ones of a spec.

    Raises:
        StorageError: Names the first tensor that is not as the spec wants it.
    """
    kind_of_spec(spec).check(weights, spec)


def misfit(spec: AnySpec, task: object) -> str | None:
    """Which size of a spec does not fit a task, as a sentence; None if all do.

    Args:
        spec: The model.
        task: A task, by its members `n_tokens`, `context`, `n_classes` and the like.
    """
    for size in kind_of_spec(spec).sizes:
        ours, theirs = getattr(spec, size.name), getattr(task, size.of_task, None)
        wanted = "equal" if size.exact else "be at least"
        if theirs is None or (ours != theirs if size.exact else ours < theirs):
            has = "it has none" if theirs is None else f"={theirs}"
            return f"`{size.name}` (={ours}) must {wanted} the task's `{size.of_task}` ({has})."
    return None


def answer_logits(
    model: nn.Module, inputs: Shaped[Tensor, "example ..."]
) -> Float[Tensor, "example class"]:
    """What a model answers, one row of logits an example, without gradients.

    A transformer is read at the last position. Hooks that are attached act, and so does a swapped
    activation. The model is left as it was.

    Args:
        model: A model of any kind, also a compiled one.
        inputs: What it reads: `split.inputs` of a task with one answer an example.

    Returns:
        Logits on the CPU, in float32 or float64.

    Raises:
        MeasureError: If the inputs do not fit the model.
    """
    own = own_model(model)
    with torch.autocast(next(own.parameters()).device.type, enabled=False):
        return kind_of(own).answers(own, inputs)


def _one_of(names: list[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
