"""The weights of one or many checkpoints as stacked tensors, under names of our own.

Measures that read weights take this, and never TransformerLens's parameter names. What is
computed from the weights is left to `views`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.models.build import (
    check_weights,
    parameter_shapes,
    weights_of,
    without_extras,
)
from interp_shortcuts.models.spec import ModelSpec


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights with a leading checkpoint axis, in float64 on the CPU.

    Gains and biases of normalisations are None where the spec has none. The MLPs are left out:
    no view of the weights alone passes through them.
    """

    spec: ModelSpec
    embed: Float64[Tensor, "checkpoint token d_model"]
    position: Float64[Tensor, "checkpoint position d_model"]
    W_Q: Float64[Tensor, "checkpoint layer head d_model d_head"]
    W_K: Float64[Tensor, "checkpoint layer head d_model d_head"]
    W_V: Float64[Tensor, "checkpoint layer head d_model d_head"]
    W_O: Float64[Tensor, "checkpoint layer head d_head d_model"]
    b_Q: Float64[Tensor, "checkpoint layer head d_head"]
    b_K: Float64[Tensor, "checkpoint layer head d_head"]
    b_V: Float64[Tensor, "checkpoint layer head d_head"]
    b_O: Float64[Tensor, "checkpoint layer d_model"]
    W_U: Float64[Tensor, "checkpoint d_model class"]
    b_U: Float64[Tensor, "checkpoint class"]
    attention_gain: Float64[Tensor, "checkpoint layer d_model"] | None = None
    attention_bias: Float64[Tensor, "checkpoint layer d_model"] | None = None
    final_gain: Float64[Tensor, "checkpoint d_model"] | None = None
    final_bias: Float64[Tensor, "checkpoint d_model"] | None = None

    @property
    def n_checkpoints(self) -> int:
        """Length of the checkpoint axis."""
        return self.embed.shape[0]

    @classmethod
    def of(cls, model: nn.Module) -> Weights:
        """The weights of one model, as a single checkpoint."""
        return cls.stack([weights_of(model)], ModelSpec.from_model(model))

    @classmethod
    def stack(cls, states: Sequence[Mapping[str, Tensor]], spec: ModelSpec) -> Weights:
        """The weights of several checkpoints of one spec, in the order given.

        Raises:
            StorageError: If a state does not fit the spec, or is not finite.
            MeasureError: If there are no states.
        """
        if not states:
            raise MeasureError("`states` must hold at least one checkpoint; got none.")
        shapes = parameter_shapes(spec)
        checked = [without_extras(state) for state in states]
        for state in checked:
            check_weights(state, shapes)

        def once(name: str) -> Tensor:
            return torch.stack([_float64(state[name]) for state in checked])

        def layers(name: str) -> Tensor:
            return torch.stack(
                [once(f"blocks.{layer}.{name}") for layer in range(spec.n_layers)], dim=1
            )

        return cls(
            spec=spec,
            embed=once("embed.W_E"),
            position=once("pos_embed.W_pos"),
            W_Q=layers("attn.W_Q"),
            W_K=layers("attn.W_K"),
            W_V=layers("attn.W_V"),
            W_O=layers("attn.W_O"),
            b_Q=layers("attn.b_Q"),
            b_K=layers("attn.b_K"),
            b_V=layers("attn.b_V"),
            b_O=layers("attn.b_O"),
            W_U=once("unembed.W_U"),
            b_U=once("unembed.b_U"),
            attention_gain=layers("ln1.w") if spec.has_gain else None,
            attention_bias=layers("ln1.b") if spec.has_norm_bias else None,
            final_gain=once("ln_final.w") if spec.has_gain else None,
            final_bias=once("ln_final.b") if spec.has_norm_bias else None,
        )


def _float64(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", torch.float64)
