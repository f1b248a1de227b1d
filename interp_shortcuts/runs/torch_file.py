"""Reading a file of `torch.save` without running what may be in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from interp_shortcuts.errors import StorageError


def read_torch_file(path: Path, *, cure: str) -> Any:
    """The tensors and plain values in a file, on the CPU; nothing is unpickled.

    Args:
        path: The file.
        cure: What the reader of the error can do.

    Raises:
        StorageError: If the file is damaged, or holds anything else.
    """
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged bytes surface as almost any error
        lines = str(error).splitlines() or [type(error).__name__]
        raise StorageError(
            f"'{path}' is damaged, truncated, or holds more than tensors and plain values, which "
            f"is not loaded because it could run code ({lines[0]}). {cure}"
        ) from error
