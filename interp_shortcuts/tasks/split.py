"""A named, fixed set of a task's examples.

How the examples are chosen is left to `sampling.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from interp_shortcuts.tasks.examples import Examples


@dataclass(frozen=True, eq=False)
class Split(Examples):
    """Examples with their true and their shortcut labels; all tensors are int64, on the CPU.

    Two splits are equal when their name and their content are.

    Attributes:
        name: The split's name, e.g. `"adversarial"`.
        tokens: The integers of each example and then `"="`, which is the last token.
        labels: The true labels.
        shortcut_labels: The labels that the shortcut gives.
    """

    tokens: Int[Tensor, "example position"]
    labels: Int[Tensor, " example"]
    shortcut_labels: Int[Tensor, " example"]

    @property
    def inputs(self) -> Int[Tensor, "example position"]:
        """What a model reads: the tokens."""
        return self.tokens

    @property
    def integers(self) -> Int[Tensor, "example integer_position"]:
        """The tokens without the `"="` at the end."""
        return self.tokens[:, :-1]

    @property
    def consistent(self) -> Bool[Tensor, " example"]:
        """Whether the shortcut gives the true label."""
        return self.labels == self.shortcut_labels

    def __repr__(self) -> str:
        n_consistent = int(self.consistent.sum())
        return f"Split({self.name!r}: {self.n} examples, {n_consistent} consistent, {self.sha})"


def rows_in_train(splits: Mapping[str, Split], name: str) -> Int[Tensor, " row"] | None:
    """Which rows of the split "train" a part of it is, so that both need one forward pass.

    Args:
        splits: A task's splits.
        name: "consistent" or "anti".

    Returns:
        The indices in order; None for a split that is not a part of "train".
    """
    if name not in ("consistent", "anti") or "train" not in splits:
        return None
    train, part = splits["train"], splits[name]
    chosen = train.consistent if name == "consistent" else ~train.consistent
    rows = torch.nonzero(chosen).flatten()
    return rows if torch.equal(train.tokens[rows], part.tokens) else None
