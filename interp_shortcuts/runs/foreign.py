"""Checkpoints that a user's own code wrote: safetensors or torch files, or state dicts in memory.

Nothing is unpickled: torch files are read with `weights_only=True`. What a `HookedTransformer`'s
state dict carries beside its parameters (causal masks, `IGNORE` constants), and the second name of
a tied matrix, is left out; anything else that is not a parameter of the spec is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from interp_shortcuts.errors import StorageError
from interp_shortcuts.models.any_model import own_weights
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.runs.checkpoint import (
    load_checkpoint,
    load_tensors,
    read_about,
    verify_weights,
)
from interp_shortcuts.runs.torch_file import read_torch_file

_SUFFIXES = (".safetensors", ".pt", ".pth")
_NESTS = ("model", "state_dict", "model_state_dict", "weights")
_WRAPPERS = ("module.", "model.")
_CURE = "Give the spec that the weights were trained with, or the right file."


def foreign_weights(source: Path | Mapping[str, Any], *, spec: AnySpec) -> dict[str, Tensor]:
    """A copy of the weights in a user's file or state dict, in float32, verified against the spec.

    Args:
        source: A `.safetensors`, `.pt` or `.pth` file, or a state dict. A dict that holds the
            state dict under `model`, `state_dict`, `model_state_dict` or `weights` is opened.
        spec: The model that the weights belong to.

    Raises:
        StorageError: If the file is missing, damaged or of another kind, or the tensors are not
            finite weights of the spec.
    """
    if isinstance(source, Mapping):
        return _select(source, spec=spec, source="The state dict")
    if source.suffix not in _SUFFIXES:
        raise StorageError(
            f"'{source}' must end in {', '.join(_SUFFIXES)}; got {source.suffix!r}. "
            "Give such a file, or load it yourself and give the state dict."
        )
    if not source.is_file():
        raise StorageError(f"'{source}' is missing. Give the path of a checkpoint file.")
    if source.suffix == ".safetensors":
        if read_about(source) is not None:
            return load_checkpoint(source, spec=spec)
        return _select(load_tensors(source), spec=spec, source=f"'{source}'")
    return _select(_read_torch(source), spec=spec, source=f"'{source}'")


def _read_torch(path: Path) -> Mapping[str, Any]:
    loaded = read_torch_file(
        path,
        cure="Save the state dict alone (`torch.save(model.state_dict(), path)`), or load it "
        "yourself and give the state dict.",
    )
    if not isinstance(loaded, Mapping):
        raise StorageError(
            f"'{path}' must hold a state dict; got {type(loaded).__name__}. Save "
            "`model.state_dict()`."
        )
    return loaded


def _select(state: Mapping[str, Any], *, spec: AnySpec, source: str) -> dict[str, Tensor]:
    if not any(isinstance(value, Tensor) for value in state.values()):
        nests = [nest for nest in _NESTS if isinstance(state.get(nest), Mapping)]
        state = state[nests[0]] if nests else state
    for wrapper in _WRAPPERS:
        if state and all(name.startswith(wrapper) for name in state):
            state = {name.removeprefix(wrapper): value for name, value in state.items()}
    weights: dict[str, Tensor] = {}
    for name, value in own_weights(state, spec).items():
        if not isinstance(value, Tensor):
            raise StorageError(
                f"{source}: `{name}` must be a tensor; got {type(value).__name__}. Give the "
                "model's state dict alone."
            )
        weights[name] = value.detach().to(device="cpu", dtype=torch.float32, copy=True)
    verify_weights(weights, spec=spec, source=source, cure=_CURE)
    return weights
