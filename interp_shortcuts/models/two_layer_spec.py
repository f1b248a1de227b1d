"""The frozen description of a two-layer network on pairs of tokens. Loads no torch."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from interp_shortcuts.canonical import short_hash

PairActivation = Literal["relu", "quadratic", "gelu", "leaky_relu", "reverse_relu", "abs"]


class TwoLayerArchitecture(BaseModel):
    """The part of a two-layer network's description that does not depend on the task."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int = Field(default=513, ge=1, description="Number M of hidden neurons.")
    activation: PairActivation = Field(
        default="relu",
        description="Activation of the neurons: relu, quadratic (x squared), gelu, leaky_relu "
        "(slope 0.01), reverse_relu (max(-x, 0)) or abs.",
    )
    tied: bool = Field(
        default=False, description="Whether both tokens are embedded by one matrix, V = U."
    )
    init_scale: float = Field(
        default=1.0,
        gt=0,
        allow_inf_nan=False,
        description="Factor on the standard deviation of all initial weights.",
    )


class TwoLayerSpec(TwoLayerArchitecture):
    """What is needed to build a `TwoLayerNet`, and to tell it from another."""

    n_tokens: int = Field(ge=1, description="Number of input tokens, P.")
    n_classes: int = Field(ge=1, description="Number of classes of the output.")

    @property
    def hash(self) -> str:
        """16 hex digits that identify the spec: equal for equal specs only."""
        return short_hash(self)

    @property
    def sizes(self) -> str:
        """The sizes in words."""
        return f"{self.n_tokens} tokens, {self.width} {self.activation} neurons"

    @property
    def context(self) -> int:
        """Number of tokens in an example: a pair."""
        return 2

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter by name; `V` is not there when it is tied."""
        embed, unembed = (self.n_tokens, self.width), (self.width, self.n_classes)
        second = {} if self.tied else {"V": embed}
        return {"U": embed, **second, "W": unembed, "mu": (self.n_classes,)}
