"""MNIST in small: a folder of four IDX files with 12 and 5 pictures of 4 x 3 pixels."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

NAMES = {
    "train-images-idx3-ubyte": (12, 4, 3),
    "train-labels-idx1-ubyte": (12,),
    "t10k-images-idx3-ubyte": (5, 4, 3),
    "t10k-labels-idx1-ubyte": (5,),
}


def idx_bytes(array: np.ndarray) -> bytes:
    """An array as the bytes of an IDX file."""
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


def write_idx_folder(folder: Path) -> Path:
    """Writes the four files, always the same."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, shape in NAMES.items():
        draw = np.random.default_rng(len(shape) * 100 + shape[0])
        array = draw.integers(0, 10 if len(shape) == 1 else 256, size=shape)
        (folder / name).write_bytes(idx_bytes(array))
    return folder
