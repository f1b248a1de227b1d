"""The written-down form of a task: what a run folder stores and what the command line sets.

The limits on every size live here and nowhere else. What the sizes mean for the examples is in
`sampling.py`; the functions behind the name in `rule` are in `rules.py`.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class TaskConfig(BaseModel):
    """Which rule, which vocabulary, and how many examples of what.

    With the run's seed this determines every example; a `data_seed` makes it complete by itself.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: str = Field(
        default="max_parity",
        min_length=1,
        description="Name of the rule: max_parity, max_mod3, first_parity or first_mod3; in Python "
        "also one that the same process registered.",
    )
    length: int = Field(default=4, ge=1, le=1024, description="Number n of integers in a sequence.")
    n_integers: int = Field(
        default=10, ge=2, le=2**31 - 1, description="Number V of integers; they are 0 to V-1."
    )
    ratio: float = Field(
        default=0.9,
        ge=0.0,
        le=1.0,
        allow_inf_nan=False,
        description="Spurious ratio r: the fraction of training examples whose shortcut equals "
        "the true label.",
    )
    n_train: int = Field(default=2048, ge=1, description="Number of training examples.")
    n_validation: int = Field(
        default=1024, ge=0, description="Number of validation examples (all consistent)."
    )
    n_adversarial: int = Field(
        default=1024, ge=0, description="Number of adversarial examples (none consistent)."
    )
    data_seed: int | None = Field(
        default=None, description="Seed of the examples; without it, the run's seed."
    )
    rule_fingerprint: str | None = Field(
        default=None,
        description="Hash of what the rule's functions return, checked when the task is built; "
        "filled in by the package.",
    )
    n_classes: int | None = Field(
        default=None,
        ge=2,
        description="Number of classes, for a rule of your own in Python that is not registered; "
        "built-in and registered rules know theirs.",
    )

    @property
    def label(self) -> str:
        """The task in words: its rule."""
        return f"rule {self.rule}"

    @property
    def n_tokens(self) -> int:
        """Size of the vocabulary: the integers and `"="`."""
        return self.n_integers + 1

    @property
    def context(self) -> int:
        """Number of tokens in an example: the integers and `"="`."""
        return self.length + 1
