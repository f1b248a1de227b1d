"""Stored pictures of digits: what a folder of IDX files holds, and the hash of it. Loads no torch.

Which of them are trained with which label is left to `digits.py`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from interp_shortcuts.errors import StorageError
from interp_shortcuts.tasks.idx_file import find_idx, read_idx

_PARTS = ("train", "t10k")


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures and what they show, as they are stored.

    Attributes:
        pixels: Brightness of every pixel, 0 to `brightest`.
        labels: The digit that each shows.
    """

    pixels: UInt8[np.ndarray, "example row column"]
    labels: UInt8[np.ndarray, " example"]

    @property
    def n_pixels(self) -> int:
        """Rows times columns of a picture."""
        return int(np.prod(self.pixels.shape[1:]))

    def take(self, indices: np.ndarray) -> Pictures:
        """The pictures at these indices, in that order."""
        return Pictures(self.pixels[indices], self.labels[indices])


def read_pictures(folder: str | Path) -> tuple[Pictures, Pictures]:
    """The training and the test pictures in a folder with the four files of MNIST.

    Args:
        folder: Holds `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`,
            `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`, plain or with `.gz`.

    Raises:
        StorageError: If a file is missing or damaged, or there is not a label for each picture.
            The message names the file.
    """
    trained, tested = (_read_part(Path(folder), prefix) for prefix in _PARTS)
    return trained, tested


def pictures_digest(trained: Pictures, tested: Pictures) -> str:
    """Hash of the bytes of pictures and labels, in order (64 hex digits)."""
    digest = hashlib.sha256()
    for part in (trained, tested):
        digest.update(repr(part.pixels.shape).encode())
        digest.update(part.pixels.tobytes() + part.labels.tobytes())
    return digest.hexdigest()


def _read_part(folder: Path, prefix: str) -> Pictures:
    images = find_idx(folder, f"{prefix}-images-idx3-ubyte")
    names = find_idx(folder, f"{prefix}-labels-idx1-ubyte")
    pixels, labels = read_idx(images, n_dims=3), read_idx(names, n_dims=1)
    if len(pixels) != len(labels):
        raise StorageError(
            f"{names} must hold as many labels as {images} holds pictures (={len(pixels)}); it "
            f"holds {len(labels)}."
        )
    return Pictures(pixels, labels)
