"""A named, fixed set of small pictures, with the label that is trained and the true one.

Where the pictures come from is left to `digits.py`, which labels are wrong to `label_noise.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp_shortcuts.tasks.examples import Examples


@dataclass(frozen=True, eq=False)
class ImageSplit(Examples):
    """Pictures with their labels, on the CPU.

    Two splits are equal when their name and their content are.

    Attributes:
        name: The split's name, e.g. `"noisy"`.
        images: Brightness of each pixel, row by row, in [0, 1]; float32.
        labels: The labels that the split is scored against; in `"train"`, the observed ones.
        true_labels: What the pictures show.
    """

    images: Float[Tensor, "example pixel"]
    labels: Int[Tensor, " example"]
    true_labels: Int[Tensor, " example"]

    @property
    def inputs(self) -> Float[Tensor, "example pixel"]:
        """What a model reads: the pictures."""
        return self.images

    @property
    def noisy(self) -> Bool[Tensor, " example"]:
        """Whether the label is wrong."""
        return self.labels != self.true_labels

    def with_true_labels(self, *, name: str) -> ImageSplit:
        """The same examples, scored against their true labels."""
        return ImageSplit(
            name=name, images=self.images, labels=self.true_labels, true_labels=self.true_labels
        )

    def __repr__(self) -> str:
        n_noisy = int(self.noisy.sum())
        return f"ImageSplit({self.name!r}: {self.n} pictures, {n_noisy} noisy, {self.sha})"
