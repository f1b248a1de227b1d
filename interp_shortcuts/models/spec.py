"""The frozen description of a model: what is needed to build it, and to tell it from another.

A spec holds no weights, no device and no dtype. This module loads no torch, so that the command
line can show every field at once; building is left to `build`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_serializer,
    model_validator,
)

from interp_shortcuts.canonical import short_hash
from interp_shortcuts.errors import ConfigError

Activation = Literal["relu", "gelu", "gelu_new", "silu"]
Normalization = Literal["none", "LN", "LNPre", "RMS", "RMSPre"]
Attention = Literal["causal", "bidirectional"]
Positions = Literal["learned", "none"]


class Architecture(BaseModel):
    """The part of a model's description that does not depend on the task."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n_layers: int = Field(default=2, ge=1, le=16, description="Number of transformer blocks.")
    n_heads: int = Field(default=2, ge=1, description="Attention heads in each block.")
    d_model: int = Field(default=64, ge=1, description="Width of the residual stream.")
    d_mlp: int = Field(default=128, ge=1, description="Hidden units of each block's MLP.")
    activation: Activation = Field(default="relu", description="Activation of the MLPs.")
    normalization: Normalization = Field(
        default="none",
        description=(
            "Normalisation before each attention, MLP and the unembedding: none, LayerNorm (LN), "
            "RMSNorm (RMS), or either one without gain and bias (LNPre, RMSPre)."
        ),
    )
    attention: Attention = Field(
        default="causal", description="Whether a position sees only itself and earlier ones."
    )
    positions: Positions = Field(
        default="learned",
        description="Positional embeddings: learned, or none (they are zero and stay so). Without "
        "them a causal model still knows the order, by how much each position sees.",
    )

    @model_validator(mode="after")
    def _check_heads(self) -> Architecture:
        if self.d_model % self.n_heads:
            raise ConfigError(
                f"`n_heads` (={self.n_heads}) must divide `d_model` (={self.d_model})."
            )
        return self

    @property
    def d_head(self) -> int:
        """Width of a head's queries, keys and values: `d_model / n_heads`."""
        return self.d_model // self.n_heads


class ModelSpec(Architecture):
    """An architecture with the sizes that come from the task."""

    d_vocab: int = Field(ge=1, description="Number of input tokens.")
    d_vocab_out: int = Field(ge=1, description="Number of classes of the output.")
    n_ctx: int = Field(ge=1, description="Largest number of positions.")
    eps: float = Field(default=1e-5, gt=0, description="Added to the variance in normalisations.")

    @model_serializer(mode="wrap")
    def _without_later_fields(self, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """`positions` came later: at its default it is not written, and older hashes stay."""
        data: dict[str, Any] = handler(self)
        if data["positions"] == "learned":
            del data["positions"]
        return data

    @property
    def hash(self) -> str:
        """16 hex digits that identify the spec: equal for equal specs only."""
        return short_hash(self)

    @property
    def n_classes(self) -> int:
        """Number of classes of the output, as every spec names it: `d_vocab_out`."""
        return self.d_vocab_out

    @property
    def sizes(self) -> str:
        """The sizes in words."""
        return f"{self.n_layers} layers x {self.n_heads} heads, d_model {self.d_model}"

    @property
    def centres(self) -> bool:
        """Whether the normalisations subtract the mean over the residual stream."""
        return self.normalization in ("LN", "LNPre")

    @property
    def has_gain(self) -> bool:
        """Whether the normalisations carry a learned gain."""
        return self.normalization in ("LN", "RMS")

    @property
    def has_norm_bias(self) -> bool:
        """Whether the normalisations carry a learned bias."""
        return self.normalization == "LN"

    @classmethod
    def from_model(cls, model: Any) -> ModelSpec:
        """The spec of a user's `HookedTransformer`, also when it is compiled.

        `positions` is "learned": a model whose positional embeddings are zero is still one that
        has them.

        Raises:
            ConfigError: If the model has a part that a spec cannot describe.
        """
        from interp_shortcuts.models.build import eager

        cfg = eager(model).cfg
        for name, allowed in _REQUIRED.items():
            value = getattr(cfg, name, allowed[0])
            if value not in allowed:
                raise ConfigError(f"`{name}` must be {allowed[0]!r}; the model has {value!r}.")
        _refuse_special_cases(cfg)
        normalization = cfg.normalization_type or "none"
        fields: dict[str, Any] = {
            "n_layers": cfg.n_layers,
            "n_heads": cfg.n_heads,
            "d_model": cfg.d_model,
            "d_mlp": cfg.d_mlp,
            "activation": cfg.act_fn,
            "normalization": normalization,
            "attention": cfg.attention_dir,
            "d_vocab": cfg.d_vocab,
            "d_vocab_out": cfg.d_vocab_out,
            "n_ctx": cfg.n_ctx,
        }
        if normalization != "none":
            fields["eps"] = cfg.eps
        try:
            return cls(**fields)
        except ValidationError as error:
            raise ConfigError(_summary(error)) from error


# Fields of a TransformerLens config that change what a model computes and that a spec cannot
# say; the first value is the one supported, the others mean the same.
_REQUIRED: dict[str, tuple[Any, ...]] = {
    "positional_embedding_type": ("standard",),
    "attn_only": (False,),
    "parallel_attn_mlp": (False,),
    "gated_mlp": (False,),
    "n_key_value_heads": (None,),
    "use_attn_scale": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "use_local_attn": (False,),
    "use_attention_sinks": (False,),
    "use_qk_norm": (False,),
    "use_logn_attn": (False,),
    "clip_qkv": (None,),
    "final_rms": (False,),
    "post_embedding_ln": (False,),
    "use_normalization_before_and_after": (False,),
    "num_experts": (None,),
    "load_in_4bit": (False,),
    "attn_scores_soft_cap": (-1.0, 0.0, None),
    "output_logits_soft_cap": (-1.0, 0.0, None),
}


def _refuse_special_cases(cfg: Any) -> None:
    """Refuses what depends on more than one field, or on a model family."""
    if cfg.n_heads * cfg.d_head != cfg.d_model:
        raise ConfigError(
            f"`d_head` (={cfg.d_head}) times `n_heads` (={cfg.n_heads}) must equal "
            f"`d_model` (={cfg.d_model})."
        )
    if abs(cfg.attn_scale - cfg.d_head**0.5) > 1e-6:
        raise ConfigError(
            f"`attn_scale` (={cfg.attn_scale:g}) must be the square root of `d_head` "
            f"(={cfg.d_head})."
        )
    family = cfg.original_architecture or ""
    if family.startswith("Olmo"):
        raise ConfigError(
            f"`original_architecture` must not normalise elsewhere than before each block's "
            f"parts; the model has {family!r}."
        )


def _summary(error: ValidationError) -> str:
    """One line a field, in the words of our own errors."""
    lines = []
    for item in error.errors():
        message = item["msg"].removeprefix("Value error, ")
        name = ".".join(str(part) for part in item["loc"])
        lines.append(f"`{name}` (={item['input']!r}): {message}." if name else message)
    return " ".join(lines)
