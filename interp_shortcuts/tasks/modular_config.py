"""The written-down form of modular arithmetic: what a run folder stores and the command line sets.

The limits on every size live here and nowhere else. What the sizes mean for the examples is in
`modular.py`. Loads no torch.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator

from interp_shortcuts.residues import Arithmetic, check_arithmetic


class ModularConfig(BaseModel):
    """Which operation modulo what, how many pairs are trained, and how many labels are wrong.

    With the run's seed this determines every example; a `data_seed` makes it complete by itself.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    arithmetic: Arithmetic = Field(
        default="add",
        description="What is done to the two residues: add, subtract, or multiply (zero left out; "
        "the modulus must be a prime).",
    )
    modulus: int = Field(
        default=59, ge=2, le=4096, description="The modulus P; residues are 0 to P-1."
    )
    noise: float = Field(
        default=0.4,
        ge=0.0,
        le=1.0,
        allow_inf_nan=False,
        description="Label noise alpha: the fraction of training labels that are wrong.",
    )
    train_fraction: float = Field(
        default=0.8,
        gt=0.0,
        lt=1.0,
        allow_inf_nan=False,
        description="Fraction of all pairs that are trained; the others are the test pairs.",
    )
    data_seed: int | None = Field(
        default=None, description="Seed of the examples; without it, the run's seed."
    )

    @model_validator(mode="after")
    def _examples_exist(self) -> ModularConfig:
        check_arithmetic(self.arithmetic, self.modulus)
        if not 0 < self.n_train < self.n_pairs:
            raise ValueError(
                f"`train_fraction` (={self.train_fraction}) must leave at least one pair to train "
                f"and one to test; of {self.n_pairs} pairs it trains {self.n_train}."
            )
        if self.n_noisy and self.n_answers < 2:
            raise ValueError(
                f"`noise` (={self.noise}) needs a wrong label to choose; modulo {self.modulus} "
                f"there is {self.n_answers} answer."
            )
        return self

    @property
    def label(self) -> str:
        """The task in words: its operation and modulus."""
        return f"{self.arithmetic} modulo {self.modulus}"

    @property
    def n_answers(self) -> int:
        """Number of residues that occur, in pairs and as answers: P, or P-1 without zero."""
        return self.modulus - (self.arithmetic == "multiply")

    @property
    def n_pairs(self) -> int:
        """Number of pairs there are, trained and tested."""
        return self.n_answers**2

    @property
    def n_train(self) -> int:
        """Number of training pairs: the fraction of all, rounded."""
        return round(self.train_fraction * self.n_pairs)

    @property
    def n_noisy(self) -> int:
        """Number of wrong training labels: the fraction of the training pairs, rounded."""
        return round(self.noise * self.n_train)

    @property
    def n_tokens(self) -> int:
        """Size of the vocabulary: the residues, P."""
        return self.modulus

    @property
    def context(self) -> int:
        """Number of tokens in an example: two residues."""
        return 2
