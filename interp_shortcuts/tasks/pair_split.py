"""A named, fixed set of pairs of residues, with the label that is trained and the true one.

Which pairs there are is left to `modular.py`, which labels are wrong to `label_noise.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Int
from torch import Tensor

from interp_shortcuts.tasks.examples import Examples


@dataclass(frozen=True, eq=False)
class PairSplit(Examples):
    """Pairs with their labels; all tensors are int64, on the CPU.

    Two splits are equal when their name and their content are.

    Attributes:
        name: The split's name, e.g. `"noisy"`.
        tokens: The two residues of each pair.
        labels: The labels that the split is scored against; in `"train"`, the observed ones.
        true_labels: What the operation gives.
    """

    tokens: Int[Tensor, "example 2"]
    labels: Int[Tensor, " example"]
    true_labels: Int[Tensor, " example"]

    @property
    def inputs(self) -> Int[Tensor, "example 2"]:
        """What a model reads: the pairs of tokens."""
        return self.tokens

    @property
    def noisy(self) -> Bool[Tensor, " example"]:
        """Whether the label is wrong."""
        return self.labels != self.true_labels

    def with_true_labels(self, *, name: str) -> PairSplit:
        """The same examples, scored against their true labels."""
        return PairSplit(
            name=name, tokens=self.tokens, labels=self.true_labels, true_labels=self.true_labels
        )

    def __repr__(self) -> str:
        n_noisy = int(self.noisy.sum())
        return f"PairSplit({self.name!r}: {self.n} examples, {n_noisy} noisy, {self.sha})"
