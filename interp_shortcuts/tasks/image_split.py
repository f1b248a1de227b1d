"""A named, fixed set of small pictures, with the label that is trained and the true one.

Where the pictures come from is left to `digits.py`, which labels are wrong to `label_noise.py`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True, eq=False)
class ImageSplit:
    """Pictures with their labels, on the CPU.

    Two splits are equal when their name and their content are.

    Attributes:
        name: The split's name, e.g. `"noisy"`.
        images: Brightness of each pixel, row by row, in [0, 1]; float32.
        labels: The labels that the split is scored against; in `"train"`, the observed ones.
        true_labels: What the pictures show.
    """

    name: str
    images: Float[Tensor, "example pixel"]
    labels: Int[Tensor, " example"]
    true_labels: Int[Tensor, " example"]

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self.labels)

    @property
    def noisy(self) -> Bool[Tensor, " example"]:
        """Whether the label is wrong."""
        return self.labels != self.true_labels

    def take(self, indices: Int[Tensor, " taken"], *, name: str | None = None) -> ImageSplit:
        """The examples at these indices, in that order.

        Args:
            indices: Indices of examples.
            name: Name of the new split; without it, this one's.
        """
        return ImageSplit(
            name=self.name if name is None else name,
            images=self.images[indices],
            labels=self.labels[indices],
            true_labels=self.true_labels[indices],
        )

    def with_true_labels(self, *, name: str) -> ImageSplit:
        """The same examples, scored against their true labels."""
        return ImageSplit(
            name=name, images=self.images, labels=self.true_labels, true_labels=self.true_labels
        )

    @cached_property
    def sha(self) -> str:
        """Hash of the content, order included and name excluded (16 hex digits)."""
        digest = hashlib.sha256()
        for tensor, kind in ((self.images, "<f4"), (self.labels, "<i8"), (self.true_labels, "<i8")):
            digest.update(repr(tuple(tensor.shape)).encode())
            digest.update(tensor.cpu().numpy().astype(kind).tobytes())
        return digest.hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ImageSplit):
            return NotImplemented
        return (self.name, self.sha) == (other.name, other.sha)

    def __hash__(self) -> int:
        return hash((self.name, self.sha))

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        n_noisy = int(self.noisy.sum())
        return f"ImageSplit({self.name!r}: {self.n} pictures, {n_noisy} noisy, {self.sha})"
