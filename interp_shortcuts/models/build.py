"""From a spec and a seed to a `HookedTransformer`, and weights in and out of one.

The weights are drawn here and not by TransformerLens, so that a seed means the same model
whatever version of it is installed. What the weights mean is left to `weights` and `views`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from interp_shortcuts.errors import StorageError
from interp_shortcuts.models.compiled import PREFIX, unwrapped
from interp_shortcuts.models.lens import HookedTransformer, HookedTransformerConfig
from interp_shortcuts.models.random_state import kept_random_state
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.streams import numpy_stream

_BUFFERS = (".attn.mask", ".attn.IGNORE")
_POSITIONS = "pos_embed.W_pos"


def build(
    spec: ModelSpec, *, seed: int | None = None, device: str | torch.device = "cpu"
) -> HookedTransformer:
    """A new model; global random state, stdout and warnings stay untouched.

    Args:
        spec: What to build.
        seed: Draws the weights as `initial_weights` does. Without one they are zero, and the
            gains of normalisations one: a model to load weights into.
        device: Where the parameters live.

    Returns:
        The model, in float32 and in training mode. Without positions in the spec, `W_pos` is zero
        and takes no gradient, so that no optimiser moves it.
    """
    with kept_random_state(), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="HookedTransformer is deprecated", category=DeprecationWarning
        )
        model = HookedTransformer(_lens_config(spec, device=str(device)))
    load_weights(model, _empty_weights(spec) if seed is None else initial_weights(spec, seed))
    model.pos_embed.W_pos.requires_grad_(spec.positions == "learned")
    return model


def _lens_config(spec: ModelSpec, *, device: str) -> HookedTransformerConfig:
    return HookedTransformerConfig(
        n_layers=spec.n_layers,
        n_heads=spec.n_heads,
        d_model=spec.d_model,
        d_head=spec.d_head,
        d_mlp=spec.d_mlp,
        act_fn=spec.activation,
        normalization_type=None if spec.normalization == "none" else spec.normalization,
        attention_dir=spec.attention,
        d_vocab=spec.d_vocab,
        d_vocab_out=spec.d_vocab_out,
        n_ctx=spec.n_ctx,
        eps=spec.eps,
        positional_embedding_type="standard",
        init_weights=False,
        device=device,
        dtype=torch.float32,
    )


def parameter_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """The shape of every parameter, by TransformerLens's name."""
    heads, width, d_head, d_mlp = spec.n_heads, spec.d_model, spec.d_head, spec.d_mlp

    def norm(name: str) -> dict[str, tuple[int, ...]]:
        gain = {f"{name}.w": (width,)} if spec.has_gain else {}
        bias = {f"{name}.b": (width,)} if spec.has_norm_bias else {}
        return gain | bias

    shapes: dict[str, tuple[int, ...]] = {
        "embed.W_E": (spec.d_vocab, width),
        _POSITIONS: (spec.n_ctx, width),
    }
    for layer in range(spec.n_layers):
        block = f"blocks.{layer}"
        shapes |= norm(f"{block}.ln1") | norm(f"{block}.ln2")
        shapes |= {f"{block}.attn.W_{name}": (heads, width, d_head) for name in "QKV"}
        shapes |= {f"{block}.attn.b_{name}": (heads, d_head) for name in "QKV"}
        shapes |= {
            f"{block}.attn.W_O": (heads, d_head, width),
            f"{block}.attn.b_O": (width,),
            f"{block}.mlp.W_in": (width, d_mlp),
            f"{block}.mlp.b_in": (d_mlp,),
            f"{block}.mlp.W_out": (d_mlp, width),
            f"{block}.mlp.b_out": (width,),
        }
    shapes |= norm("ln_final")
    shapes |= {
        "unembed.W_U": (width, spec.d_vocab_out),
        "unembed.b_U": (spec.d_vocab_out,),
    }
    return shapes


def initial_weights(spec: ModelSpec, seed: int) -> dict[str, Tensor]:
    """The weights that a seed stands for.

    Matrices (`W_*`) are normal with standard deviation 0.8 / sqrt(d_model), TransformerLens's
    default; biases are zero and gains one, and `W_pos` is zero where the spec has no positions.
    Each matrix has the stream `("init", name)`, so that another layer or a normalisation leaves
    the other matrices as they were. The draws are NumPy's, which do not depend on the processor's
    vector width as torch's do.

    Returns:
        float32 tensors on the CPU, by TransformerLens's name.
    """
    std = 0.8 / math.sqrt(spec.d_model)
    weights = _empty_weights(spec)
    for name, tensor in weights.items():
        if _is_matrix(name) and (name != _POSITIONS or spec.positions == "learned"):
            draw = numpy_stream(seed, "init", name).standard_normal(tuple(tensor.shape))
            tensor.copy_(torch.from_numpy(std * draw))
    return weights


def _empty_weights(spec: ModelSpec) -> dict[str, Tensor]:
    return {
        name: torch.ones(shape) if name.endswith(".w") else torch.zeros(shape)
        for name, shape in parameter_shapes(spec).items()
    }


def _is_matrix(name: str) -> bool:
    return name.rpartition(".")[2].startswith("W_")


def eager(model: nn.Module) -> HookedTransformer:
    """The `HookedTransformer` itself, also when a `torch.compile`d one is handed over.

    A compiled model ignores hooks that are added later, and prefixes the names of its parameters.

    Raises:
        ConfigError: If there is no `HookedTransformer` inside.
    """
    return unwrapped(model, HookedTransformer)


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """A copy of every parameter, on the CPU and in the model's dtype; no masks or buffers."""
    return {
        name: parameter.detach().to("cpu", copy=True).contiguous()
        for name, parameter in eager(model).named_parameters()
    }


def load_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copies weights into a model; nothing is changed unless all of them fit.

    Args:
        model: The model, whose dtype and device are kept.
        weights: Exactly the model's parameters, by name. The masks that a `state_dict` carries
            and the prefix of a compiled model are ignored.

    Raises:
        StorageError: If a name is missing or unknown, a shape differs, or a value is not finite.
    """
    parameters = dict(eager(model).named_parameters())
    given = without_extras(weights)
    check_weights(given, {name: tuple(p.shape) for name, p in parameters.items()})
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(given[name])


def check_weights(weights: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raises a `StorageError` that names the first tensor which is not as `shapes` wants it."""
    unknown = sorted(set(weights) - set(shapes))
    if unknown:
        raise StorageError(
            f"The weights hold {_some(unknown)}, which the model does not have; "
            "they belong to another spec."
        )
    missing = sorted(set(shapes) - set(weights))
    if missing:
        raise StorageError(
            f"The weights lack {_some(missing)}, which the model has; they belong to another spec."
        )
    for name, shape in shapes.items():
        tensor = weights[name]
        if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
            kind = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
            raise StorageError(f"`{name}` must be a tensor of floating-point numbers; got {kind}.")
        if tuple(tensor.shape) != shape:
            raise StorageError(
                f"`{name}` must have shape {list(shape)}; got {list(tensor.shape)}. "
                "The weights belong to another spec."
            )
        if not torch.isfinite(tensor).all():
            n_bad = int((~torch.isfinite(tensor)).sum())
            raise StorageError(
                f"`{name}` must be finite; {n_bad} of its {tensor.numel()} values are not."
            )


def check_positions(weights: Mapping[str, Any], spec: ModelSpec) -> None:
    """Raises a `StorageError` if a spec without positions is given weights that have them."""
    if spec.positions == "none" and bool(weights[_POSITIONS].any()):
        raise StorageError(
            f"`{_POSITIONS}` must be zero, since the spec has `positions` 'none'; it is not. "
            "The weights belong to another spec."
        )


def without_extras(weights: Mapping[str, Any]) -> dict[str, Any]:
    """A state dict without its masks, and without the prefix of a compiled model."""
    named = {name.removeprefix(PREFIX): tensor for name, tensor in weights.items()}
    return {name: tensor for name, tensor in named.items() if not name.endswith(_BUFFERS)}


def _some(names: list[str], *, shown: int = 3) -> str:
    text = ", ".join(f"`{name}`" for name in names[:shown])
    return text if len(names) <= shown else f"{text} and {len(names) - shown} more"
