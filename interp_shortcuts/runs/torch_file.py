"""Reading a file of `torch.save` without running what may be in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

from interp_shortcuts.errors import StorageError

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_GLOBAL = re.compile(r"GLOBAL (\S+)")  # torch names what it refused to unpickle


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
        text = _ANSI.sub("", str(error))
        foreign = _GLOBAL.search(text)
        if foreign is not None:
            raise StorageError(
                f"'{path}' holds more than tensors and plain values (`{foreign.group(1)}`), which "
                f"is not loaded because it could run code. {cure}"
            ) from error
        lines = text.splitlines() or [type(error).__name__]
        raise StorageError(
            f"'{path}' is damaged, truncated, or holds more than tensors and plain values, which "
            f"is not loaded because it could run code ({lines[0].split('. ')[0]}). {cure}"
        ) from error
