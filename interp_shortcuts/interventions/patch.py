"""Interchange interventions: a component's activation comes from another example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.interventions.base import Components, Intervention, on_heads, targets_of
from interp_shortcuts.interventions.references import (
    Place,
    References,
    Source,
    check_source,
    describe_source,
)
from interp_shortcuts.models.build import eager
from interp_shortcuts.models.replacements import ReplacedSite, Replacement
from interp_shortcuts.models.sites import Component, Kind
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.staged import StagedModel

_SITE: dict[Kind, ReplacedSite] = {
    "head": "z",
    "attention": "z",
    "mlp": "mlp_out",
    "resid_pre": "resid_pre",
    "resid_post": "resid_post",
}


@dataclass(frozen=True)
class Patch(Intervention):
    """Components take the activation that they have on a source example.

    Example i of what the model is run on takes it from example i of the source, so run them in
    one batch of the source's size. A source of one example donates to all.

    Attributes:
        components: Heads and whole attention layers (at z, before W_O), MLPs (at mlp_out), and
            the residual stream (`"L0.resid_pre"`, `"L1.resid_post"`).
        source: The source examples, as a split or as tokens; or the activations themselves by
            component, as `read_activations` returns them.
        positions: The positions that are patched, negative ones counted from the end; None for
            all.
    """

    kinds: ClassVar[tuple[Kind, ...]] = ("head", "mlp", "attention", "resid_pre", "resid_post")

    source: Source | Mapping[Any, Tensor]
    positions: int | Sequence[int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.source, Mapping):
            given = {str(component) for component in self.source}
            lacking = [str(component) for component in self.targets if str(component) not in given]
            if lacking:
                raise InterventionError(
                    f"`source` must hold the activation of every component; it lacks {lacking[0]} "
                    f"and holds {', '.join(sorted(given)) or 'none'}."
                )
        else:
            check_source("source", self.source)
        if self._positions == ():
            raise InterventionError("`positions` must hold at least one position; got none.")

    @property
    def _positions(self) -> tuple[int, ...] | None:
        if self.positions is None:
            return None
        return (self.positions,) if isinstance(self.positions, int) else tuple(self.positions)

    @property
    def donating(self) -> Source | None:
        """The source examples, unless their activations are given."""
        return None if isinstance(self.source, Mapping) else self.source

    def replacements(self, references: References) -> tuple[Replacement, ...]:
        """z of each head, mlp_out of each MLP, the residual stream itself."""
        found: list[Replacement] = []
        for component in self.targets:
            site, layer = _SITE[component.kind], component.layer
            given = self._given(component)
            if site != "z":
                found.append(Replacement(site, layer, None, given, self._positions))
                continue
            for head in on_heads(component, references.staged.n_heads):
                value = given
                if given is not None and component.kind == "attention":
                    value = given[..., head, :]
                found.append(Replacement("z", layer, head, value, self._positions))
        return tuple(found)

    def _given(self, component: Component) -> Float[Tensor, "..."] | None:
        if not isinstance(self.source, Mapping):
            return None
        by_text = {str(key): activation for key, activation in self.source.items()}
        activation = by_text[str(component)]
        expected = 4 if component.kind == "attention" else 3
        if activation.ndim != expected:
            axes = "example position head d_head" if expected == 4 else "example position feature"
            raise InterventionError(
                f"The activation of {component} must have the axes [{axes}]; "
                f"its shape is {list(activation.shape)}."
            )
        return activation

    def describe(self) -> dict[str, Any]:
        """Where, from which source, and at which positions."""
        source = self.donating
        return {
            "intervention": "Patch",
            "components": [str(component) for component in self.targets],
            "acts on": "heads: z, before W_O; MLPs: mlp_out, bias included; the residual stream",
            "source": "activations" if source is None else describe_source(source),
            "positions": "all" if self._positions is None else list(self._positions),
        }

    @classmethod
    def from_reference(cls, components: Components, reference: Source) -> Patch:
        """At all positions."""
        return cls(components, reference)


def read_activations(
    model: nn.Module, components: Components, source: Source
) -> dict[Component, Float[Tensor, "example ..."]]:
    """What `Patch` would put in: components' activations on the examples of a source.

    No hooks act; the precision is the model's own.

    Returns:
        Heads (z, before W_O) [example position d_head]; whole attention layers [example position
        head d_head]; MLPs (mlp_out) and the residual stream [example position d_model].
    """
    named = Patch(components, source)
    module = eager(model)
    named.check(ModelSpec.from_model(module))
    references = References(StagedModel.of(module, dtype=module.W_E.dtype))
    places: dict[Component, Place] = {c: (_SITE[c.kind], c.layer) for c in targets_of(components)}
    read = references.activations(source, list(dict.fromkeys(places.values())))
    return {
        component: read[place][:, :, component.head] if component.head is not None else read[place]
        for component, place in places.items()
    }
