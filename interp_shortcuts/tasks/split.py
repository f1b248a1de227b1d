"""A named, fixed set of a task's examples.

How the examples are chosen is left to `sampling.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Int
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Split:
    """Examples with their true and their shortcut labels; all tensors are int64, on the CPU.

    Two splits are equal when their name and their content are.

    Attributes:
        name: The split's name, e.g. `"adversarial"`.
        tokens: The integers of each example and then `"="`, which is the last token.
        labels: The true labels.
        shortcut_labels: The labels that the shortcut gives.
    """

    name: str
    tokens: Int[Tensor, "example position"]
    labels: Int[Tensor, " example"]
    shortcut_labels: Int[Tensor, " example"]

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self.labels)

    @property
    def integers(self) -> Int[Tensor, "example integer_position"]:
        """The tokens without the `"="` at the end."""
        return self.tokens[:, :-1]

    @property
    def consistent(self) -> Bool[Tensor, " example"]:
        """Whether the shortcut gives the true label."""
        return self.labels == self.shortcut_labels

    def take(self, indices: Int[Tensor, " taken"], *, name: str | None = None) -> Split:
        """The examples at these indices, in that order.

        Args:
            indices: Indices of examples.
            name: Name of the new split; without it, this one's.
        """
        return Split(
            name=self.name if name is None else name,
            tokens=self.tokens[indices],
            labels=self.labels[indices],
            shortcut_labels=self.shortcut_labels[indices],
        )

    @cached_property
    def sha(self) -> str:
        """Hash of the content, order included and name excluded (16 hex digits)."""
        digest = hashlib.sha256()
        for tensor in (self.tokens, self.labels, self.shortcut_labels):
            digest.update(repr(tuple(tensor.shape)).encode())
            digest.update(tensor.cpu().numpy().astype("<i8").tobytes())
        return digest.hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Split):
            return NotImplemented
        return (self.name, self.sha) == (other.name, other.sha)

    def __hash__(self) -> int:
        return hash((self.name, self.sha))

    def __len__(self) -> int:
        return self.n

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
