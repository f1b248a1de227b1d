"""Label noise: an exact number of labels, each replaced by a uniform wrong one.

The set-up of arXiv 2605.18022. With one seed, more noise keeps the labels that less noise made
wrong, and how it made them wrong.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from interp_shortcuts.errors import TaskError
from interp_shortcuts.streams import numpy_stream
from interp_shortcuts.tasks.image_split import ImageSplit
from interp_shortcuts.tasks.pair_split import PairSplit

LabelledSplit = TypeVar("LabelledSplit", PairSplit, ImageSplit)


def with_noise(
    labels: Int[Tensor, " example"],
    classes: Int[np.ndarray, " class"],
    *,
    noise: float | int,
    seed: int,
) -> Int[Tensor, " example"]:
    """The labels with a fraction of them replaced by wrong ones.

    Which examples is drawn from the stream `("task", "noise", "examples")`, without replacement;
    which wrong label from `("task", "noise", "labels")`, uniformly over the other classes.

    Args:
        labels: The true labels, each one of `classes`.
        classes: The labels that there are, in ascending order.
        noise: The fraction alpha in [0, 1]; exactly round(alpha * examples) labels are replaced.
        seed: Seed of the draws.

    Raises:
        TaskError: If `noise` is out of its range, or there is no other class to choose.
    """
    if not 0 <= noise <= 1:
        raise TaskError(f"`noise` must be a fraction in [0, 1]; got {noise}.")
    n, n_noisy = len(labels), round(noise * len(labels))
    if n_noisy and len(classes) < 2:
        raise TaskError(f"`noise` (={noise}) needs at least 2 classes; got {len(classes)}.")
    chosen = numpy_stream(seed, "task", "noise", "examples").permutation(n)[:n_noisy]
    places = np.searchsorted(classes, labels.numpy())
    shifts = numpy_stream(seed, "task", "noise", "labels").integers(1, max(len(classes), 2), size=n)
    wrong = classes[(places + shifts) % len(classes)]
    observed = labels.numpy().copy()
    observed[chosen] = wrong[chosen]
    return torch.from_numpy(observed)


def parts_by_noise(train: LabelledSplit) -> dict[str, LabelledSplit]:
    """The training split and its parts by whether the label is wrong.

    Returns:
        `train`; `clean`, where the label is right; `noisy`, where it is wrong; and `noisy_true`,
        the examples of `noisy` with their true labels. A part that has no examples is there, empty.
    """
    noisy = train.take(torch.nonzero(train.noisy)[:, 0], name="noisy")
    return {
        "train": train,
        "clean": train.take(torch.nonzero(~train.noisy)[:, 0], name="clean"),
        "noisy": noisy,
        "noisy_true": noisy.with_true_labels(name="noisy_true"),
    }
