"""One checkpoint, one safetensors file: the weights, with their step, spec and content hash.

Reading verifies all of it, so that a truncated or altered file, or the weights of another model,
never turn into numbers. Checkpoints that other code wrote are `foreign.py`'s business.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from interp_shortcuts.canonical import canonical_json
from interp_shortcuts.errors import StorageError
from interp_shortcuts.models.any_model import check_weights_of
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.runs.store import TRAIN_ANEW, replacing

CHECKPOINT_FORMAT = "interp-shortcuts checkpoint 1"
_ABOUT = "interp_shortcuts"
_FIELDS = {"format": str, "step": int, "spec_hash": str, "spec": str, "sha256": str}
_CURE = f"Restore it from a copy. Or: {TRAIN_ANEW}"


@dataclass(frozen=True)
class CheckpointHeader:
    """What a checkpoint file says about itself; reading it loads no weights."""

    step: int
    spec_hash: str
    spec: str
    content_hash: str


def content_hash(weights: Mapping[str, Tensor]) -> str:
    """SHA-256 over the names, types, shapes and bytes of the tensors, in order of their names."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        digest.update(f"{name}\x1f{tensor.dtype}\x1f{tuple(tensor.shape)}\x1e".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def save_checkpoint(path: Path, weights: Mapping[str, Tensor], *, step: int, spec: AnySpec) -> str:
    """Write one checkpoint; the file is there in full or not at all.

    Args:
        path: The file to write.
        weights: The model's named parameters.
        step: The number of optimiser steps that led to them.
        spec: The model that they belong to.

    Returns:
        The content hash of the weights.

    Raises:
        StorageError: If a weight is not finite, or the weights are not those of the spec.
    """
    verify_weights(
        weights, spec=spec, source=f"The weights for '{path}'", cure="Nothing was written."
    )
    digest = content_hash(weights)
    about = {
        "format": CHECKPOINT_FORMAT,
        "step": step,
        "spec_hash": spec.hash,
        "spec": canonical_json(spec),
        "sha256": digest,
    }
    # one entry, since safetensors writes several in a random order
    metadata = {_ABOUT: canonical_json(about)}
    tensors = {name: weights[name].detach().cpu().contiguous() for name in sorted(weights)}
    with replacing(path) as temporary:
        save_file(tensors, temporary, metadata=metadata)
    return digest


def read_header(path: Path, *, spec: AnySpec | None = None) -> CheckpointHeader:
    """What the file says about itself, checked against the spec where one is given.

    Raises:
        StorageError: If the file is missing, truncated, not one of ours, or of another spec.
    """
    about = read_about(path)
    if about is None:
        raise StorageError(
            f"'{path}' is not a checkpoint of this package: its header has no entry "
            f"`{_ABOUT}` in the format {CHECKPOINT_FORMAT!r}. For checkpoints of your own use "
            "`Trajectory.from_checkpoints`; if it was one of ours, it is damaged."
        )
    header = CheckpointHeader(
        step=about["step"],
        spec_hash=about["spec_hash"],
        spec=about["spec"],
        content_hash=about["sha256"],
    )
    if spec is not None and (header.spec_hash, header.spec) != (spec.hash, canonical_json(spec)):
        raise StorageError(
            f"'{path}' holds the weights of another model: its spec is {header.spec} "
            f"(hash {header.spec_hash}), expected {canonical_json(spec)} (hash {spec.hash}). "
            "Give the spec that it was trained with, or the right file."
        )
    return header


def read_about(path: Path) -> dict[str, Any] | None:
    """What this package wrote into the header of a safetensors file; None if it did not.

    Raises:
        StorageError: If the file is missing, truncated or no safetensors file.
    """
    if not path.is_file():
        raise StorageError(f"'{path}' is missing. {_CURE}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
    except (SafetensorError, OSError, UnicodeDecodeError) as error:
        raise StorageError(f"'{path}' is damaged or truncated ({error}). {_CURE}") from error
    try:
        about = json.loads(metadata.get(_ABOUT, ""))
    except ValueError:
        return None
    whole = isinstance(about, dict) and all(
        isinstance(about.get(name), kind) for name, kind in _FIELDS.items()
    )
    return about if whole and about["format"] == CHECKPOINT_FORMAT else None


def load_checkpoint(path: Path, *, spec: AnySpec) -> dict[str, Tensor]:
    """The weights in a checkpoint file, verified.

    Raises:
        StorageError: If the file is missing or damaged in any way, or of another spec.
    """
    header = read_header(path, spec=spec)
    weights = load_tensors(path)
    if content_hash(weights) != header.content_hash:
        raise StorageError(
            f"'{path}' is damaged: its content does not match its own hash (sha256). {_CURE}"
        )
    verify_weights(weights, spec=spec, source=f"'{path}'", cure=_CURE)
    return weights


def load_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of any safetensors file, on the CPU."""
    try:
        return load_file(path)
    except (SafetensorError, OSError, UnicodeDecodeError, ValueError) as error:
        raise StorageError(f"'{path}' is damaged or truncated ({error}). {_CURE}") from error


def checkpoint_hash(path: Path) -> str:
    """The content hash that a checkpoint file carries; the weights are not read."""
    return read_header(path).content_hash


def verify_weights(weights: Mapping[str, Tensor], *, spec: AnySpec, source: str, cure: str) -> None:
    """Raise a `StorageError` that names the source unless these are finite weights of the spec."""
    try:
        check_weights_of(weights, spec)
    except StorageError as error:
        raise StorageError(f"{source}: {error} {cure}") from error
