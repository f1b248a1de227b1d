"""Components of a model, and the portable sites where their activations are read or edited.

The sites are those that fire in every `HookedTransformer`, whatever its config says: hooks on
other points (`hook_result`, `hook_q_input`, ...) can stay silent and read as an effect of zero.
This module only names them; attaching to them is left to `hooks`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from interp_shortcuts.errors import ConfigError, InterventionError
from interp_shortcuts.models.spec import Architecture

Kind = Literal["head", "mlp", "attention", "resid_pre", "resid_post"]

SITES: Mapping[str, str] = MappingProxyType(
    {
        "embed": "hook_embed",
        "pos_embed": "hook_pos_embed",
        "resid_pre": "blocks.{layer}.hook_resid_pre",
        "resid_post": "blocks.{layer}.hook_resid_post",
        "q": "blocks.{layer}.attn.hook_q",
        "k": "blocks.{layer}.attn.hook_k",
        "v": "blocks.{layer}.attn.hook_v",
        "pattern": "blocks.{layer}.attn.hook_pattern",
        "z": "blocks.{layer}.attn.hook_z",
        "attn_out": "blocks.{layer}.hook_attn_out",
        "mlp_pre": "blocks.{layer}.mlp.hook_pre",
        "mlp_post": "blocks.{layer}.mlp.hook_post",
        "mlp_out": "blocks.{layer}.hook_mlp_out",
    }
)
"""Hook point of each site. Shapes: `embed`, `pos_embed`, `resid_*`, `attn_out` and `mlp_out` are
[example position d_model]; `q`, `k`, `v` and `z` (before W_O) [example position head d_head];
`pattern` (after softmax) [example head query key]; `mlp_pre` and `mlp_post` (before and after the
activation) [example position d_mlp]."""

_TEXT = re.compile(r"L(\d+)\.(?:H(\d+)|(mlp|attn|resid_pre|resid_post))")
_NAMES: Mapping[Kind, str] = {"attention": "attn"}  # where the text is not the kind itself


def site(name: str, layer: int | None = None) -> str:
    """The hook point of a site.

    Args:
        name: A key of `SITES`.
        layer: The block; must be left out for `embed` and `pos_embed`.

    Raises:
        InterventionError: If there is no such site, or a layer is missing or superfluous.
    """
    if name not in SITES:
        choices = ", ".join(repr(choice) for choice in SITES)
        raise InterventionError(f"`site` must be one of {choices}; got {name!r}.")
    template = SITES[name]
    if ("{layer}" in template) != (layer is not None):
        rule = "needs" if layer is None else "takes no"
        raise InterventionError(f"Site {name!r} {rule} `layer`; got {layer}.")
    return template.format(layer=layer)


@dataclass(frozen=True, order=True)
class Component:
    """A head (`L0.H1`), an MLP (`L1.mlp`) or the whole attention of a layer (`L0.attn`).

    The residual stream before and after a layer (`L0.resid_pre`, `L1.resid_post`) has a name too,
    so that it can be patched; it is not counted among a model's parts unless asked for.
    """

    layer: int
    kind: Kind
    head: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            choices = ", ".join(repr(choice) for choice in get_args(Kind))
            raise ConfigError(f"`kind` must be one of {choices}; got {self.kind!r}.")
        if (self.kind == "head") != (self.head is not None):
            raise ConfigError(
                f"`head` must be given for kind 'head' and for no other; "
                f"got head={self.head} with kind {self.kind!r}."
            )
        if self.layer < 0 or (self.head or 0) < 0:
            raise ConfigError(
                f"`layer` and `head` must not be negative; got layer={self.layer}, "
                f"head={self.head}."
            )

    def __str__(self) -> str:
        part = _NAMES.get(self.kind, self.kind) if self.head is None else f"H{self.head}"
        return f"L{self.layer}.{part}"

    @classmethod
    def parse(cls, text: str) -> Component:
        """The component that `str` writes as `text`.

        Raises:
            ConfigError: If the text has another form, or is no text.
        """
        if not isinstance(text, str):
            raise ConfigError(
                f"A component must be text such as 'L0.H1', 'L1.mlp' or 'L0.attn'; got {text!r}."
            )
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ConfigError(
                f"A component must read like 'L0.H1', 'L1.mlp' or 'L0.attn'; got {text!r}."
            )
        layer, head, name = match.groups()
        if head is not None:
            return cls(int(layer), "head", int(head))
        kinds = {_NAMES.get(kind, kind): kind for kind in get_args(Kind)}
        return cls(int(layer), kinds[name])

    def check(self, spec: Architecture) -> None:
        """Raises a `ConfigError` unless a model of this spec has the component."""
        if self.layer >= spec.n_layers:
            raise ConfigError(f"The layer of {self} must be below `n_layers` (={spec.n_layers}).")
        if self.head is not None and self.head >= spec.n_heads:
            raise ConfigError(f"The head of {self} must be below `n_heads` (={spec.n_heads}).")


def components(
    spec: Architecture, kinds: Sequence[Kind] = ("head", "mlp")
) -> tuple[Component, ...]:
    """All components of these kinds, layer by layer: heads, MLP, whole attention, residual."""
    found: list[Component] = []
    for layer in range(spec.n_layers):
        if "head" in kinds:
            found += [Component(layer, "head", head) for head in range(spec.n_heads)]
        if "mlp" in kinds:
            found.append(Component(layer, "mlp"))
        whole = [kind for kind in get_args(Kind) if kind not in ("head", "mlp")]
        found += [Component(layer, kind) for kind in whole if kind in kinds]
    return tuple(found)
