"""The process around a training run: threads, determinism, and what the manifest says of both."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from interp_shortcuts.training.memory import keep_freed_memory

_PACKAGES = ("interp-shortcuts", "torch", "transformer-lens", "numpy", "pydantic", "safetensors")


@contextmanager
def training_environment(*, threads: int, device: torch.device) -> Iterator[None]:
    """Torch's thread count and deterministic kernels for the block; restored afterwards.

    With more than one thread, torch adds up the gradients of repeated tokens in whatever order
    the threads come by, unless it is told not to.
    """
    keep_freed_memory()
    former_threads = torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    memory: Any = torch.utils.deterministic  # it would fill each new tensor with NaN
    fill = memory.fill_uninitialized_memory
    try:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(True, warn_only=device.type != "cpu")
        memory.fill_uninitialized_memory = False
        yield
    finally:
        memory.fill_uninitialized_memory = fill
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        torch.set_num_threads(former_threads)


def describe_environment() -> dict[str, Any]:
    """Versions, Python, platform and the commit of the working folder, for the manifest."""
    return {
        "versions": {name: _version(name) for name in _PACKAGES},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "commit": _commit(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The git commit of the current folder, if it is in a repository and git is there."""
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None if answer.returncode == 0 else None
