"""`Digits`: small pictures of handwritten digits, with a fraction of wrong training labels.

The image task of arXiv 2605.18022. Two sources: the 8 x 8 digits that scikit-learn brings along
(the extra `[digits]`), and a folder with the files of MNIST, read by `idx_file.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import UInt8

from interp_shortcuts.canonical import short_hash
from interp_shortcuts.errors import StorageError, TaskError
from interp_shortcuts.streams import numpy_stream
from interp_shortcuts.tasks.class_scores import ClassScores
from interp_shortcuts.tasks.idx_file import find_idx, read_idx
from interp_shortcuts.tasks.image_split import ImageSplit
from interp_shortcuts.tasks.label_noise import parts_by_noise, with_noise

if TYPE_CHECKING:  # type checkers do not match a cached property with a protocol's property
    cached_property = property
else:
    from functools import cached_property

_N_CLASSES = 10
_BUNDLED_BRIGHTEST = 16
_IDX_BRIGHTEST = 255
_PARTS = {"train": "train", "test": "t10k"}


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures and what they show, as they are stored.

    Attributes:
        pixels: Brightness of every pixel, 0 to `brightest`.
        labels: The digit that each shows.
    """

    pixels: UInt8[np.ndarray, "example row column"]
    labels: UInt8[np.ndarray, " example"]

    def take(self, indices: np.ndarray) -> Pictures:
        """The pictures at these indices, in that order."""
        return Pictures(self.pixels[indices], self.labels[indices])


@dataclass(frozen=True, eq=False, kw_only=True)
class Digits(ClassScores):
    """Pictures of the digits 0 to 9, of which the training ones have some wrong labels.

    Made by `Digits.bundled()` or `Digits.from_idx(folder)`. The splits are those of
    `ModularArithmetic`: `train` with the observed labels, of which exactly round(noise * n) are
    wrong; its parts `clean` and `noisy`; `noisy_true`, the pictures of `noisy` with their true
    labels; and `test` with true labels.

    Two tasks are equal when they have the same `fingerprint`.

    Attributes:
        source: Where the pictures are from: `"scikit-learn"` or `"IDX files"`.
        trained: The training pictures.
        tested: The test pictures.
        brightest: The brightest value of a pixel, which becomes 1.
        noise: Label noise alpha, a fraction in [0, 1].
        seed: Seed of the noise, and of which bundled pictures are trained.

    Raises:
        TaskError: If a part is empty, pictures and labels do not match, a label is no digit, a
            pixel is too bright, or `noise` is out of its range.
    """

    source: str
    trained: Pictures
    tested: Pictures
    brightest: int
    noise: float | int = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.noise <= 1:
            raise TaskError(f"`noise` must be a fraction in [0, 1]; got {self.noise}.")
        for name, part in (("trained", self.trained), ("tested", self.tested)):
            _check(name, part, self.brightest)
        if self.trained.pixels.shape[1:] != self.tested.pixels.shape[1:]:
            raise TaskError(
                "`trained` and `tested` must have pictures of one size; got "
                f"{list(self.trained.pixels.shape[1:])} and {list(self.tested.pixels.shape[1:])}."
            )

    @classmethod
    def bundled(
        cls, *, noise: float | int = 0.05, train_fraction: float = 0.8, seed: int = 0
    ) -> Digits:
        """The 1,797 pictures of 8 x 8 pixels that come with scikit-learn.

        Args:
            noise: Label noise alpha.
            train_fraction: Fraction that is trained, in (0, 1), rounded to whole pictures; which
                ones is drawn from the stream `("task", "digits", "order")`.
            seed: Seed of the noise and of that draw.

        Raises:
            TaskError: If scikit-learn is not installed, or a fraction is out of its range.
        """
        try:
            from sklearn.datasets import load_digits
        except ImportError as error:
            raise TaskError(
                "The bundled digits need scikit-learn, which is not installed; "
                "use `pip install 'interp-shortcuts[digits]'`, or `Digits.from_idx(folder)`."
            ) from error
        stored: Any = load_digits()
        pictures = Pictures(stored.images.astype(np.uint8), stored.target.astype(np.uint8))
        n = len(pictures.labels)
        n_train = round(train_fraction * n)
        if not 0 < n_train < n:
            raise TaskError(
                f"`train_fraction` (={train_fraction}) must leave at least one picture to train "
                f"and one to test; of {n} it trains {n_train}."
            )
        order = numpy_stream(seed, "task", "digits", "order").permutation(n)
        return cls(
            source="scikit-learn",
            trained=pictures.take(order[:n_train]),
            tested=pictures.take(order[n_train:]),
            brightest=_BUNDLED_BRIGHTEST,
            noise=noise,
            seed=seed,
        )

    @classmethod
    def from_idx(cls, folder: str | Path, *, noise: float | int = 0.05, seed: int = 0) -> Digits:
        """The pictures in a folder with the four files of MNIST, plain or gzipped.

        Args:
            folder: Holds `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`,
                `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`. Training and test pictures
                are those of the files.
            noise: Label noise alpha.
            seed: Seed of the noise.

        Raises:
            StorageError: If a file is missing, damaged, or has not as many labels as pictures.
            TaskError: If the pictures are no digits, or `noise` is out of its range.
        """
        parts = {name: _read_part(Path(folder), prefix) for name, prefix in _PARTS.items()}
        return cls(
            source="IDX files",
            trained=parts["train"],
            tested=parts["test"],
            brightest=_IDX_BRIGHTEST,
            noise=noise,
            seed=seed,
        )

    @property
    def name(self) -> str:
        """`"digits"`."""
        return "digits"

    @property
    def n_classes(self) -> int:
        """Number of classes and of logits, 10."""
        return _N_CLASSES

    @property
    def n_pixels(self) -> int:
        """Number of inputs: rows times columns of a picture."""
        return self.trained.pixels[0].size

    @cached_property
    def splits(self) -> Mapping[str, ImageSplit]:
        """The splits by name: train, its clean and noisy parts, noisy_true, test."""
        true = self._split("train", self.trained)
        classes = np.arange(_N_CLASSES, dtype=np.int64)
        observed = with_noise(true.labels, classes, noise=self.noise, seed=self.seed)
        train = ImageSplit(
            name="train", images=true.images, labels=observed, true_labels=true.labels
        )
        return MappingProxyType({**parts_by_noise(train), "test": self._split("test", self.tested)})

    def split(self, name: str) -> ImageSplit:
        """The split of that name.

        Raises:
            TaskError: If there is none.
        """
        if name not in self.splits:
            raise TaskError(
                f"`split` must be one of {', '.join(map(repr, self.splits))}; got {name!r}."
            )
        return self.splits[name]

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that determines the splits (16 hex digits)."""
        digest = hashlib.sha256()
        for part in (self.trained, self.tested):
            digest.update(repr(part.pixels.shape).encode())
            digest.update(part.pixels.tobytes() + part.labels.tobytes())
        return short_hash(
            {
                "pictures": digest.hexdigest(),
                "brightest": self.brightest,
                "noise": float(self.noise),
                "seed": self.seed,
            }
        )

    @cached_property
    def record(self) -> dict[str, Any]:
        """What the manifest says about the examples, fit for JSON.

        `name`, `source`, `fingerprint`, `seed`, `n_noisy`, the achieved `noise`, and `splits`
        with, for each, `n` and `sha`.
        """
        train = self.splits["train"]
        n_noisy = int(train.noisy.sum())
        return {
            "name": self.name,
            "source": self.source,
            "fingerprint": self.fingerprint,
            "seed": self.seed,
            "n_noisy": n_noisy,
            "noise": n_noisy / train.n,
            "splits": {name: {"n": part.n, "sha": part.sha} for name, part in self.splits.items()},
        }

    def _split(self, name: str, pictures: Pictures) -> ImageSplit:
        images = pictures.pixels.reshape(len(pictures.labels), -1).astype(np.float32)
        labels = torch.from_numpy(pictures.labels.astype(np.int64))
        return ImageSplit(
            name=name,
            images=torch.from_numpy(images / np.float32(self.brightest)),
            labels=labels,
            true_labels=labels,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Digits):
            return NotImplemented
        return self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)


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


def _check(name: str, part: Pictures, brightest: int) -> None:
    if not part.pixels.size or len(part.pixels) != len(part.labels):
        raise TaskError(
            f"`{name}` must hold at least one picture and a label for each; got pixels "
            f"{list(part.pixels.shape)} and {len(part.labels)} labels."
        )
    if part.labels.max() >= _N_CLASSES:
        raise TaskError(f"`{name}` must have labels from 0 to 9; got {part.labels.max()}.")
    if part.pixels.max() > brightest:
        raise TaskError(
            f"`{name}` must have no pixel above `brightest` (={brightest}); got "
            f"{part.pixels.max()}."
        )
