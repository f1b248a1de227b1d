"""The frozen description of a fully connected network on small pictures. Loads no torch."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from interp_shortcuts.canonical import short_hash
from interp_shortcuts.models.two_layer_spec import PairActivation

Width = Annotated[int, Field(ge=1)]


class PictureArchitecture(BaseModel):
    """The part of a picture network's description that does not depend on the task."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden_widths: tuple[Width, Width] = Field(
        default=(128, 128),
        description="Number of neurons in the first and in the second hidden layer; the logits "
        "are the third layer.",
    )
    activation: PairActivation = Field(
        default="relu",
        description="Activation of the neurons: relu, quadratic (x squared), gelu, leaky_relu "
        "(slope 0.01), reverse_relu (max(-x, 0)) or abs.",
    )
    init_scale: float = Field(
        default=1.0,
        gt=0,
        allow_inf_nan=False,
        description="Factor on the standard deviation of all initial weights.",
    )


class PictureSpec(PictureArchitecture):
    """What is needed to build a `PictureNet`, and to tell it from another."""

    n_pixels: int = Field(ge=1, description="Number of inputs: rows times columns of a picture.")
    n_classes: int = Field(ge=1, description="Number of classes of the output.")

    @property
    def hash(self) -> str:
        """16 hex digits that identify the spec: equal for equal specs only."""
        return short_hash(self)

    @property
    def sizes(self) -> str:
        """The sizes in words."""
        first, second = self.hidden_widths
        return f"{self.n_pixels} pixels, {first} and {second} {self.activation} neurons"

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter by name, layer by layer."""
        first, second = self.hidden_widths
        return {
            "W_1": (self.n_pixels, first),
            "b_1": (first,),
            "W_2": (first, second),
            "b_2": (second,),
            "W_3": (second, self.n_classes),
            "b_3": (self.n_classes,),
        }
