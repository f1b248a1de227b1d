"""The written-down form of a sequence task: what a run folder stores and the command line sets.

The limits on every size live here and nowhere else. What the sizes mean for the examples is in
`sequences.py`. Loads no torch.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class SequenceConfig(BaseModel):
    """Which operation, on which integers, at which lengths it is trained and held out.

    With the run's seed this determines every example; a `data_seed` makes it complete by itself.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    operation: Literal["reversal", "sorting"] = Field(
        description="What is done to the integers: reversed, or sorted in ascending order."
    )
    n_integers: int = Field(
        default=99, ge=2, le=2**31 - 6, description="Number of integers; they are 1 to n_integers."
    )
    train_min: int = Field(default=3, ge=1, description="Shortest length that is trained.")
    train_max: int = Field(default=7, ge=1, description="Longest length that is trained.")
    heldout_max: int = Field(
        default=11,
        ge=1,
        le=1024,
        description="Longest held-out length; the shortest is `train_max` + 1. Equal to "
        "`train_max`: none is held out.",
    )
    n_per_length: int = Field(
        default=100, ge=1, description="Number of examples that each length is evaluated on."
    )
    data_seed: int | None = Field(
        default=None, description="Seed of the evaluation examples; without it, the run's seed."
    )
    stop_at: float | None = Field(
        default=0.9,
        gt=0,
        le=1,
        allow_inf_nan=False,
        description="Stop once the exact match, averaged over the training lengths, is at least "
        "this fraction; none: train all steps.",
    )

    @model_validator(mode="after")
    def _lengths_are_in_order(self) -> SequenceConfig:
        if self.train_min > self.train_max:
            raise ValueError(
                f"`train_min` (={self.train_min}) must be at most `train_max` (={self.train_max})."
            )
        if self.heldout_max < self.train_max:
            raise ValueError(
                f"`heldout_max` (={self.heldout_max}) must be at least `train_max` "
                f"(={self.train_max})."
            )
        return self

    @property
    def label(self) -> str:
        """The task in words: its operation."""
        return f"sequence {self.operation}"

    @property
    def train_lengths(self) -> tuple[int, ...]:
        """The lengths that are trained."""
        return tuple(range(self.train_min, self.train_max + 1))

    @property
    def heldout_lengths(self) -> tuple[int, ...]:
        """The lengths that are only evaluated."""
        return tuple(range(self.train_max + 1, self.heldout_max + 1))

    @property
    def n_tokens(self) -> int:
        """Size of the vocabulary: the integers, four marks, and token 0, which is not used."""
        return self.n_integers + 5

    @property
    def context(self) -> int:
        """Number of tokens that the model reads of the longest sequence: 2 n + 2."""
        return 2 * self.heldout_max + 2
