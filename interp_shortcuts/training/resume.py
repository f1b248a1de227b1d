"""resume.pt: the state that an interrupted run goes on from, bit for bit.

Tensors and plain values only, read with `weights_only=True`, and checked against a hash of their
own: a state that is not whole is an error, never a guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from interp_shortcuts.canonical import short_hash
from interp_shortcuts.errors import StorageError
from interp_shortcuts.runs.checkpoint import content_hash
from interp_shortcuts.runs.store import replacing
from interp_shortcuts.runs.torch_file import read_torch_file

_FORMAT = 1
_CURE = "Delete it and resume again: the run then starts from step 0."
_FIELDS: dict[str, type] = {
    "step": int,
    "run_id": str,
    "task_fingerprint": str,
    "threads": int,
    "perfect": int,
    "weights": dict,
    "optimizer": dict,
    "batches": dict,
}


@dataclass(frozen=True)
class ResumeState:
    """Everything that the rest of a run depends on.

    Attributes:
        step: The number of optimiser steps taken.
        run_id: The config's identity.
        task_fingerprint: The task's identity.
        threads: Torch's thread count so far.
        perfect: Evaluations in a row at the objective's goal, for the early stop.
        weights: The model's parameters.
        optimizer: The optimiser's state dict.
        batches: What the next batches depend on: the random state, under `generator`, and, where
            examples come in epochs, what is left of the present one.
    """

    step: int
    run_id: str
    task_fingerprint: str
    threads: int
    perfect: int
    weights: dict[str, Tensor]
    optimizer: dict[str, Any]
    batches: dict[str, Any]


def save_resume(path: Path, state: ResumeState) -> None:
    """Write the state; the file is the old one or the new one, never half."""
    data: dict[str, Any] = {name: getattr(state, name) for name in _FIELDS}
    with replacing(path) as temporary:
        torch.save({"format": _FORMAT, **data, "sha256": _digest(data)}, temporary)


def load_resume(path: Path) -> ResumeState:
    """Read the state.

    Raises:
        StorageError: If the file is damaged or not whole.
    """
    data = read_torch_file(path, cure=_CURE)
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise StorageError(f"'{path}' is no resume file of this version of the package. {_CURE}")
    for name, kind in _FIELDS.items():
        if not isinstance(data.get(name), kind):
            raise StorageError(f"'{path}' is not whole: `{name}` is missing. {_CURE}")
    fields = {name: data[name] for name in _FIELDS}
    if fields["batches"].get("generator") is None:
        raise StorageError(
            f"'{path}' is not whole: the random state of the batches is missing. {_CURE}"
        )
    if data.get("sha256") != _digest(fields):
        raise StorageError(f"'{path}' is damaged: its content does not match its hash. {_CURE}")
    return ResumeState(**fields)


def _digest(data: Mapping[str, Any]) -> str:
    """A hash over all tensors and all plain values, wherever they are nested."""
    leaves = dict(_leaves(data, ""))
    tensors = {name: leaf for name, leaf in leaves.items() if isinstance(leaf, Tensor)}
    plain = {name: leaf for name, leaf in leaves.items() if name not in tensors}
    return short_hash([content_hash(tensors), plain])


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}/{key}")
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{name}/{index}")
    else:
        yield name, value
