"""Ablations: components lose their activation, or only where they look, or only what they move.

Heads are ablated at z, **before W_O**: `b_O` belongs to the layer and stays, while what `b_V`
contributes through W_O goes with the head. MLPs are ablated at what they add to the residual
stream, bias included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.interventions.base import Components, Intervention, on_heads
from interp_shortcuts.interventions.references import (
    References,
    Source,
    check_source,
    describe_source,
    tokens_of,
)
from interp_shortcuts.models.replacements import ReplacedSite, Replacement
from interp_shortcuts.models.sites import Kind
from interp_shortcuts.streams import torch_stream

AblationKind = Literal["zero", "mean", "resample"]
PositionPolicy = Literal["per position", "pooled"]
PatternTarget = Literal["uniform", "reference mean"]
_ZERO = torch.zeros(())  # one object, so that passes that ablate the same are seen to share it


@dataclass(frozen=True)
class Ablate(Intervention):
    """Components lose what they carry; several are ablated jointly.

    Attributes:
        components: Heads and whole attention layers (at z, before W_O) and MLPs (at mlp_out).
        kind: `"zero"`; `"mean"` over a reference; or `"resample"`, the activations of a random
            example of the reference at the same position, the same one for all components.
        reference: The examples of the mean or the draw; not used by `"zero"`.
        position: Whether the mean is over the examples at each position, or over examples and
            positions pooled.
        seed: Seed of the draws, stream `("ablate", "resample")`. Within one `applied` the stream
            runs on from batch to batch, so that a split gives the same in chunks and whole;
            entering again starts it anew.
    """

    kinds: ClassVar[tuple[Kind, ...]] = ("head", "mlp", "attention")

    kind: AblationKind | str = "zero"
    reference: Source | None = None
    position: PositionPolicy | str = "per position"
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice("kind", self.kind, get_args(AblationKind))
        _check_choice("position", self.position, get_args(PositionPolicy))
        if self.kind != "zero" and self.reference is None:
            raise InterventionError(f"Ablating with `kind` {self.kind!r} needs a `reference`.")
        if self.reference is not None:
            check_source("reference", self.reference)
        if self.kind == "resample" and self.position != "per position":
            raise InterventionError(
                f"`position` must be 'per position' for `kind` 'resample'; got {self.position!r}."
            )

    @property
    def donating(self) -> Source | None:
        """The reference that activations are drawn from, for `"resample"` alone."""
        return self.reference if self.kind == "resample" else None

    def stream(self) -> torch.Generator | None:
        """The stream of the draws, for `"resample"` alone."""
        return torch_stream(self.seed, "ablate", "resample") if self.kind == "resample" else None

    def donors(self, n: int, stream: torch.Generator | None) -> Int[Tensor, " example"]:
        """Random examples of the reference, with replacement."""
        assert self.reference is not None
        return torch.randint(len(tokens_of(self.reference)), (n,), generator=stream)

    def replacements(self, references: References) -> tuple[Replacement, ...]:
        """z of each head, mlp_out of each MLP."""
        found: list[Replacement] = []
        for component in self.targets:
            layer = component.layer
            if component.kind == "mlp":
                value = self._value(references, "mlp_out", layer)
                found.append(Replacement("mlp_out", layer, value=value))
                continue
            for head in on_heads(component, references.staged.n_heads):
                value = self._value(references, "z", layer, head)
                found.append(Replacement("z", layer, head, value))
        return tuple(found)

    def _value(
        self, references: References, site: ReplacedSite, layer: int, head: int | None = None
    ) -> Float[Tensor, "..."] | None:
        if self.kind == "zero":
            return _ZERO
        if self.kind == "resample":
            return None
        assert self.reference is not None
        return _mean(references, self.reference, site, layer, head, self.position)

    def describe(self) -> dict[str, Any]:
        """Where, how, and from which reference."""
        said: dict[str, Any] = {
            "intervention": "Ablate",
            "components": [str(component) for component in self.targets],
            "acts on": "heads: z, before W_O; MLPs: mlp_out, bias included",
            "kind": self.kind,
        }
        if self.kind != "zero" and self.reference is not None:
            said["reference"] = describe_source(self.reference)
            said["position"] = self.position
        if self.kind == "resample":
            said["seed"] = self.seed
        return said

    @classmethod
    def from_reference(cls, components: Components, reference: Source) -> Ablate:
        """Mean ablation, per position."""
        return cls(components, kind="mean", reference=reference)


@dataclass(frozen=True)
class AblateQK(Intervention):
    """Heads lose where they look: their pattern is replaced, their values are kept.

    Attributes:
        components: Heads and whole attention layers.
        to: `"uniform"` over the keys that the query may see, or the `"reference mean"` pattern.
        reference: The examples of the mean; not used by `"uniform"`.
    """

    kinds: ClassVar[tuple[Kind, ...]] = ("head", "attention")

    to: PatternTarget | str = "uniform"
    reference: Source | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice("to", self.to, get_args(PatternTarget))
        if self.to == "reference mean" and self.reference is None:
            raise InterventionError("AblateQK with `to` 'reference mean' needs a `reference`.")
        if self.reference is not None:
            check_source("reference", self.reference)

    def replacements(self, references: References) -> tuple[Replacement, ...]:
        """The pattern of each head, at all queries."""
        staged = references.staged
        found: list[Replacement] = []
        for component in self.targets:
            for head in on_heads(component, staged.n_heads):
                if self.to == "uniform":
                    value = _uniform_causal if staged.causal else _uniform
                else:
                    assert self.reference is not None
                    value = references.mean(self.reference, "pattern", component.layer)[head]
                found.append(Replacement("pattern", component.layer, head, value))
        return tuple(found)

    def describe(self) -> dict[str, Any]:
        """Where, how, and from which reference."""
        said: dict[str, Any] = {
            "intervention": "AblateQK",
            "components": [str(component) for component in self.targets],
            "acts on": "pattern, after softmax; values are kept",
            "to": self.to,
        }
        if self.to == "reference mean" and self.reference is not None:
            said["reference"] = describe_source(self.reference)
            said["position"] = "per position"
        return said

    @classmethod
    def from_reference(cls, components: Components, reference: Source) -> AblateQK:
        """To the mean pattern."""
        return cls(components, to="reference mean", reference=reference)


@dataclass(frozen=True)
class AblateOV(Intervention):
    """Heads lose what they move: their values are replaced by a mean, their pattern is kept.

    Attributes:
        components: Heads and whole attention layers.
        reference: The examples of the mean.
        position: Whether the mean is over the examples at each position, or over examples and
            positions pooled.
    """

    kinds: ClassVar[tuple[Kind, ...]] = ("head", "attention")

    reference: Source
    position: PositionPolicy | str = "per position"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice("position", self.position, get_args(PositionPolicy))
        check_source("reference", self.reference)

    def replacements(self, references: References) -> tuple[Replacement, ...]:
        """v of each head, at all positions."""
        found: list[Replacement] = []
        for component in self.targets:
            layer = component.layer
            for head in on_heads(component, references.staged.n_heads):
                value = _mean(references, self.reference, "v", layer, head, self.position)
                found.append(Replacement("v", layer, head, value))
        return tuple(found)

    def describe(self) -> dict[str, Any]:
        """Where, how, and from which reference."""
        return {
            "intervention": "AblateOV",
            "components": [str(component) for component in self.targets],
            "acts on": "v, b_V included; the pattern is kept",
            "reference": describe_source(self.reference),
            "position": self.position,
        }

    @classmethod
    def from_reference(cls, components: Components, reference: Source) -> AblateOV:
        """To the mean values, per position."""
        return cls(components, reference=reference)


def _mean(
    references: References,
    source: Source,
    site: ReplacedSite,
    layer: int,
    head: int | None,
    position: str,
) -> Float[Tensor, "..."]:
    """[position feature], or [feature] pooled."""
    mean = references.mean(source, site, layer)
    if head is not None:
        mean = mean[:, head]
    return mean.mean(0) if position == "pooled" else mean


def _uniform(length: int) -> Float[Tensor, "query key"]:
    return torch.full((length, length), 1 / length, dtype=torch.float64)


def _uniform_causal(length: int) -> Float[Tensor, "query key"]:
    allowed = torch.ones(length, length, dtype=torch.float64).tril()
    return allowed / allowed.sum(-1, keepdim=True)


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        *others, last = map(repr, choices)
        raise InterventionError(f"`{name}` must be {', '.join(others)} or {last}; got {value!r}.")
