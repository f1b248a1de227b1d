"""A named, fixed set of pairs of residues, with the label that is trained and the true one.

Which pairs there are is left to `modular.py`, which labels are wrong to `label_noise.py`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Bool, Int
from torch import Tensor


@dataclass(frozen=True, eq=False)
class PairSplit:
    """Pairs with their labels; all tensors are int64, on the CPU.

    Two splits are equal when their name and their content are.

    Attributes:
        name: The split's name, e.g. `"noisy"`.
        tokens: The two residues of each pair.
        labels: The labels that the split is scored against; in `"train"`, the observed ones.
        true_labels: What the operation gives.
    """

    name: str
    tokens: Int[Tensor, "example 2"]
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

    def take(self, indices: Int[Tensor, " taken"], *, name: str | None = None) -> PairSplit:
        """The examples at these indices, in that order.

        Args:
            indices: Indices of examples.
            name: Name of the new split; without it, this one's.
        """
        return PairSplit(
            name=self.name if name is None else name,
            tokens=self.tokens[indices],
            labels=self.labels[indices],
            true_labels=self.true_labels[indices],
        )

    def with_true_labels(self, *, name: str) -> PairSplit:
        """The same examples, scored against their true labels."""
        return PairSplit(
            name=name, tokens=self.tokens, labels=self.true_labels, true_labels=self.true_labels
        )

    @cached_property
    def sha(self) -> str:
        """Hash of the content, order included and name excluded (16 hex digits)."""
        digest = hashlib.sha256()
        for tensor in (self.tokens, self.labels, self.true_labels):
            digest.update(repr(tuple(tensor.shape)).encode())
            digest.update(tensor.cpu().numpy().astype("<i8").tobytes())
        return digest.hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PairSplit):
            return NotImplemented
        return (self.name, self.sha) == (other.name, other.sha)

    def __hash__(self) -> int:
        return hash((self.name, self.sha))

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        n_noisy = int(self.noisy.sum())
        return f"PairSplit({self.name!r}: {self.n} examples, {n_noisy} noisy, {self.sha})"
