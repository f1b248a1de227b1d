"""How the weights of a run are updated. Loads no torch; the optimiser is made in `training`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

USUAL_MOMENTUM = {"sgd": 0.0, "muon": 0.95}
"""The momentum of the optimisers that have one, unless it is set."""


class OptimConfig(BaseModel):
    """How the weights are updated. Weight decay applies to every parameter, biases included."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    optimizer: Literal["adamw", "adam", "sgd", "muon"] = Field(
        default="adamw",
        description="adamw: decoupled weight decay; adam and sgd: weight decay as an L2 gradient; "
        "muon: orthogonalised momentum for the matrices and adamw for the rest.",
    )
    lr: float = Field(
        default=1e-3, gt=0, description="Learning rate; with a schedule or warm-up, its peak."
    )
    lr_schedule: Literal["constant", "linear", "cosine"] = Field(
        default="constant",
        description="Learning rate after the warm-up: constant, or falling to zero at the last "
        "step, in a straight line or as half a cosine.",
    )
    warmup_steps: int = Field(
        default=0, ge=0, description="Steps in which the learning rate rises linearly to `lr`."
    )
    weight_decay: float = Field(default=0.1, ge=0, description="Weight decay.")
    beta1: float = Field(
        default=0.9, ge=0, lt=1, description="Decay of the first moment (adamw, adam)."
    )
    beta2: float = Field(
        default=0.999, ge=0, lt=1, description="Decay of the second moment (adamw, adam)."
    )
    momentum: float = Field(
        default=0.0, ge=0, lt=1, description="Momentum (sgd, muon); unless set, 0.95 for muon."
    )
    batch_size: int | None = Field(
        default=None,
        ge=1,
        description="Examples per step; drawn by shuffling each epoch, or fresh ones where the "
        "task has no training split. None: the full batch.",
    )
    grad_clip: float | None = Field(
        default=None, gt=0, description="Largest total gradient norm; none: no clipping."
    )
    precision: Literal["float32", "bfloat16"] = Field(
        default="float32",
        description="Arithmetic of the training step. bfloat16: the matrix products of forward "
        "and backward (autocast), with weights, optimiser and evaluations in float32; slower than "
        "float32 on processors without bfloat16 arithmetic.",
    )

    @model_validator(mode="before")
    @classmethod
    def _muon_has_momentum(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and "momentum" not in data:
            usual = USUAL_MOMENTUM.get(str(data.get("optimizer")))
            return data if not usual else {**data, "momentum": usual}
        return data

    @model_validator(mode="after")
    def _momentum_is_for_sgd_and_muon(self) -> OptimConfig:
        if self.momentum and self.optimizer not in USUAL_MOMENTUM:
            raise ValueError(
                f"`momentum` (={self.momentum}) applies to `optimizer` 'sgd' and 'muon' only; "
                f"got '{self.optimizer}' (use `beta1` there)."
            )
        return self

    @property
    def has_usual_momentum(self) -> bool:
        """Whether the momentum is what the optimiser has unless it is set."""
        return self.momentum == USUAL_MOMENTUM.get(self.optimizer, 0.0)
