"""Names for single components and for the sets of them that are changed jointly.

`"L0.H1"` and `"L1.mlp"` are single components; `"L0.heads"` is all heads of a layer, `"all heads"`
and `"all mlps"` are those of the whole model; names joined by `+` make a set of one's own. What is
done to a set is left to the measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.models.sites import Component, Kind, components
from interp_shortcuts.models.spec import Architecture

Members: TypeAlias = tuple[Component, ...]
ComponentNames: TypeAlias = str | Sequence[str] | None
"""Which components and sets a measure is taken of; None for every component and every named set."""


def every_set(spec: Architecture, kinds: tuple[Kind, ...]) -> dict[str, Members]:
    """Each component of these kinds, then the heads of each layer, all heads, all MLPs."""
    found: dict[str, Members] = {str(part): (part,) for part in components(spec, kinds)}
    if "head" in kinds:
        heads = components(spec, ("head",))
        for layer in range(spec.n_layers):
            found[f"L{layer}.heads"] = tuple(head for head in heads if head.layer == layer)
        found["all heads"] = heads
    if "mlp" in kinds:
        found["all mlps"] = components(spec, ("mlp",))
    return found


def component_sets(
    spec: Architecture, kinds: tuple[Kind, ...], named: ComponentNames = None
) -> dict[str, Members]:
    """The components behind each name.

    Args:
        spec: Of the model.
        kinds: Kinds of components that can be named.
        named: The names, e.g. `"L0.H1"`, `"L0.heads"`, `"L0.H0 + L1.mlp"`; None for all there are.

    Raises:
        MeasureError: If the model has no such component; the message lists what can be named.
    """
    known = every_set(spec, kinds)
    if named is None:
        return known
    found: dict[str, Members] = {}
    for text in (named,) if isinstance(named, str) else named:
        parts = [part.strip() for part in text.split("+")]
        for part in parts:
            if part not in known:
                raise MeasureError(
                    f"`components` must name {', '.join(map(repr, known))}, or several of them "
                    f"joined by '+'; got {part!r}."
                )
        members = [member for part in parts for member in known[part]]
        found[" + ".join(parts)] = tuple(dict.fromkeys(members))
    return found
