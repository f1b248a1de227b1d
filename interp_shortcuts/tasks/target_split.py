"""A named, fixed set of examples whose answer is a sequence: which token is due at which position.

How the examples are drawn is left to `sequences.py`; what counts as loss and as correct is in
`target_scores.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Int
from torch import Tensor

from interp_shortcuts.errors import TaskError
from interp_shortcuts.tasks.examples import Examples

IGNORED = -100
"""What stands in `targets` where nothing is scored."""


@dataclass(frozen=True, eq=False)
class TargetSplit(Examples):
    """Examples with the token that is due at each position; all tensors are int64.

    Two splits are equal when their name and their content are.

    Attributes:
        name: The split's name, e.g. `"length_8"`.
        tokens: What the model reads: every token of the sequence but the last.
        targets: `targets[e, p]` is the token that the model has to predict at position p, which
            is token p + 1 of the sequence; `IGNORED` where nothing is scored.

    Raises:
        TaskError: If `tokens` and `targets` have different shapes.
    """

    tokens: Int[Tensor, "example position"]
    targets: Int[Tensor, "example position"]

    def __post_init__(self) -> None:
        if self.tokens.shape != self.targets.shape:
            raise TaskError(
                "`tokens` and `targets` must have the same shape [example position]; got "
                f"{tuple(self.tokens.shape)} and {tuple(self.targets.shape)}."
            )

    @property
    def scored(self) -> Bool[Tensor, "example position"]:
        """Where a token is predicted and scored."""
        return self.targets != IGNORED

    @property
    def first_scored(self) -> int:
        """The first position at which any example is scored; 0 if none is."""
        return int(self.scored.any(0).int().argmax()) if self.n else 0

    def __repr__(self) -> str:
        return f"TargetSplit({self.name!r}: {self.n} examples, {self.sha})"
