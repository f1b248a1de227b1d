"""Reads IDX files, the format of MNIST: a magic number, the sizes, then the bytes.

The format is at http://yann.lecun.com/exdb/mnist/: two zero bytes, the type (8: unsigned byte),
the number of dimensions, each size as a big-endian 32-bit integer, and the values in C order.
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from interp_shortcuts.errors import StorageError

_UNSIGNED_BYTE = 8


def read_idx(path: Path, *, n_dims: int) -> UInt8[np.ndarray, "..."]:
    """The array in an IDX file of unsigned bytes, plain or gzipped (`.gz`).

    Args:
        path: The file.
        n_dims: How many dimensions it must have: 3 for pictures, 1 for labels.

    Raises:
        StorageError: If the file is missing or no gzip file, has another magic number, or holds
            fewer or more bytes than its sizes say. The message names the file.
    """
    content = _bytes_of(path)
    magic = content[:4]
    expected = bytes([0, 0, _UNSIGNED_BYTE, n_dims])
    if magic != expected:
        raise StorageError(
            f"{path} must begin with the magic number {int.from_bytes(expected, 'big')} of IDX "
            f"files with {n_dims} dimension(s) of unsigned bytes; got "
            f"{int.from_bytes(magic, 'big')}."
        )
    header = 4 + 4 * n_dims
    if len(content) < header:
        raise StorageError(
            f"{path} is cut off: its header must have {header} bytes; it has {len(content)}."
        )
    sizes = tuple(
        int.from_bytes(content[start : start + 4], "big") for start in range(4, header, 4)
    )
    n_values, n_held = math.prod(sizes), len(content) - header
    if n_values != n_held:
        what = "is cut off" if n_held < n_values else "is too long"
        raise StorageError(
            f"{path} {what}: its sizes {list(sizes)} ask for {n_values} bytes; it holds {n_held}."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(sizes)


def find_idx(folder: Path, name: str) -> Path:
    """The file of that name in a folder, plain or with `.gz`.

    Raises:
        StorageError: If there is neither.
    """
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    raise StorageError(f"{folder} must hold {name} or {name}.gz; it holds neither.")


def _bytes_of(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:  # a damaged gzip file raises any of them
        raise StorageError(f"{path} cannot be read: {error}.") from error
