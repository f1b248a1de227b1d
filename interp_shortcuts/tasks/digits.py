"""`Digits`: small pictures of handwritten digits, with a fraction of wrong training labels.

The image task of arXiv 2605.18022. Two sources: the 8 x 8 digits that scikit-learn brings along
(the extra `[digits]`), and a folder with the files of MNIST, read by `pictures.py`. The written-
down form is `digits_config.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from interp_shortcuts.canonical import short_hash
from interp_shortcuts.errors import TaskError
from interp_shortcuts.streams import numpy_stream
from interp_shortcuts.tasks.class_scores import ClassScores
from interp_shortcuts.tasks.digits_config import (
    N_DIGITS,
    DigitsConfig,
    FolderContents,
    n_bundled_trained,
)
from interp_shortcuts.tasks.image_split import ImageSplit
from interp_shortcuts.tasks.label_noise import parts_by_noise, with_noise
from interp_shortcuts.tasks.pictures import Pictures as Pictures
from interp_shortcuts.tasks.pictures import pictures_digest, read_pictures

if TYPE_CHECKING:  # type checkers do not match a cached property with a protocol's property
    cached_property = property
else:
    from functools import cached_property

_BUNDLED_BRIGHTEST = 16
_IDX_BRIGHTEST = 255


@dataclass(frozen=True, eq=False, kw_only=True)
class Digits(ClassScores):
    """Pictures of the digits 0 to 9, of which the training ones have some wrong labels.

    Made by `Digits.bundled()`, `Digits.from_idx(folder)` or `Digits.from_config(config)`. The
    splits are those of `ModularArithmetic`: `train` with the observed labels, of which exactly
    round(noise * n) are wrong; its parts `clean` and `noisy`; `noisy_true`, the pictures of
    `noisy` with their true labels; and `test` with true labels.

    Two tasks are equal when they have the same `fingerprint`.

    Attributes:
        source: Where the pictures are from: `"scikit-learn"` or `"IDX files"`.
        trained: The training pictures.
        tested: The test pictures.
        brightest: The brightest value of a pixel, which becomes 1.
        noise: Label noise alpha, a fraction in [0, 1].
        seed: Seed of the noise, and of which bundled pictures are trained.
        train_fraction: Fraction of the bundled pictures that is trained; None for others.
        folder: The folder that they were read from, if they were.

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
    train_fraction: float | None = None
    folder: str | None = None

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
    def from_config(cls, config: DigitsConfig, *, seed: int) -> Digits:
        """The task that a config describes.

        Args:
            config: The config, e.g. of a run.
            seed: Seed of the examples, unless the config has a `data_seed`.

        Raises:
            TaskError: If the bundled pictures are asked for and scikit-learn is not installed, or
                the folder holds other pictures than when the config was written.
            StorageError: If a file in the folder is missing or damaged.
        """
        seed = seed if config.data_seed is None else config.data_seed
        if config.folder is None or config.contents is None:  # both or neither, says the config
            return cls.bundled(noise=config.noise, train_fraction=config.train_fraction, seed=seed)
        task = cls.from_idx(config.folder, noise=config.noise, seed=seed)
        found = FolderContents.of(task.trained, task.tested).fingerprint
        if found != config.contents.fingerprint:
            raise TaskError(
                f"`folder` (={config.folder!r}) does not hold the pictures that it held when the "
                f"config was written: their fingerprint is {found}, the config says "
                f"{config.contents.fingerprint}. Restore the files, or leave `contents` out of a "
                "new config."
            )
        return task

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
        n_train = n_bundled_trained(train_fraction)
        order = numpy_stream(seed, "task", "digits", "order").permutation(len(pictures.labels))
        return cls(
            source="scikit-learn",
            trained=pictures.take(order[:n_train]),
            tested=pictures.take(order[n_train:]),
            brightest=_BUNDLED_BRIGHTEST,
            noise=noise,
            seed=seed,
            train_fraction=train_fraction,
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
        trained, tested = read_pictures(folder)
        return cls(
            source="IDX files",
            trained=trained,
            tested=tested,
            brightest=_IDX_BRIGHTEST,
            noise=noise,
            seed=seed,
            folder=str(folder),
        )

    @cached_property
    def config(self) -> DigitsConfig | None:
        """The written-down form, complete with the seed; None for pictures given by hand."""
        sizes = {"noise": self.noise, "data_seed": self.seed}
        if self.folder is not None:
            contents = FolderContents.of(self.trained, self.tested)
            return DigitsConfig(**sizes, folder=self.folder, contents=contents)
        if self.train_fraction is not None:
            return DigitsConfig(**sizes, train_fraction=self.train_fraction)
        return None

    @property
    def name(self) -> str:
        """`"digits"`."""
        return "digits"

    @property
    def n_classes(self) -> int:
        """Number of classes and of logits, 10."""
        return N_DIGITS

    @property
    def n_pixels(self) -> int:
        """Number of inputs: rows times columns of a picture."""
        return self.trained.n_pixels

    @cached_property
    def splits(self) -> Mapping[str, ImageSplit]:
        """The splits by name: train, its clean and noisy parts, noisy_true, test."""
        true = self._split("train", self.trained)
        classes = np.arange(N_DIGITS, dtype=np.int64)
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
        return short_hash(
            {
                "pictures": pictures_digest(self.trained, self.tested),
                "brightest": self.brightest,
                "noise": float(self.noise),
                "seed": self.seed,
            }
        )

    @cached_property
    def record(self) -> dict[str, Any]:
        """What the manifest says about the examples, fit for JSON.

        `name`, `source`, `fingerprint`, `config` (None for pictures given by hand), `seed`,
        `n_noisy`, the achieved `noise`, and `splits` with, for each, `n` and `sha`.
        """
        train = self.splits["train"]
        n_noisy = int(train.noisy.sum())
        return {
            "name": self.name,
            "source": self.source,
            "fingerprint": self.fingerprint,
            "config": None if self.config is None else self.config.model_dump(mode="json"),
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

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: splits are drawn again from the seed rather than copied."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _check(name: str, part: Pictures, brightest: int) -> None:
    if not part.pixels.size or len(part.pixels) != len(part.labels):
        raise TaskError(
            f"`{name}` must hold at least one picture and a label for each; got pixels "
            f"{list(part.pixels.shape)} and {len(part.labels)} labels."
        )
    if part.labels.max() >= N_DIGITS:
        raise TaskError(f"`{name}` must have labels from 0 to 9; got {part.labels.max()}.")
    if part.pixels.max() > brightest:
        raise TaskError(
            f"`{name}` must have no pixel above `brightest` (={brightest}); got "
            f"{part.pixels.max()}."
        )
