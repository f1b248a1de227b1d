"""What every intervention is: data that says which activations are replaced, and by what.

An intervention runs nothing. `applied` puts it into a model with hooks; `batched` computes many of
them at once without.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import torch
from jaxtyping import Int
from torch import Tensor

from interp_shortcuts.errors import ConfigError, InterventionError
from interp_shortcuts.interventions.references import References, Source, tokens_of
from interp_shortcuts.models.replacements import Replacement
from interp_shortcuts.models.sites import Component, Kind, components
from interp_shortcuts.models.spec import Architecture

Components: TypeAlias = str | Component | Sequence[str | Component]
"""One component or several, each as a `Component` or as its text (`"L0.H1"`, `"L1.mlp"`)."""


def targets_of(named: Components) -> tuple[Component, ...]:
    """The components that are named, in order and each once.

    Raises:
        InterventionError: If none is named, or a text is not one of a component.
    """
    if isinstance(named, str | Component) or not isinstance(named, Iterable):
        each = [named]
    else:
        each = list(named)
    try:
        found = [item if isinstance(item, Component) else Component.parse(item) for item in each]
    except ConfigError as error:
        raise InterventionError(f"{error}{_set_hint(each)}") from error
    if not found:
        raise InterventionError("`components` must name at least one component; got none.")
    return tuple(dict.fromkeys(found))


def _set_hint(each: Sequence[object]) -> str:
    """What to write for the sets that measures name, such as "L0.heads" and "all mlps"."""
    if not any(isinstance(item, str) and item.endswith(("heads", "mlps", "MLPs")) for item in each):
        return ""
    return (
        " Sets that measures name are given by their members: 'L0.attn' for the heads of a layer, "
        "a list such as ['L0.mlp', 'L1.mlp'] for all MLPs."
    )


@dataclass(frozen=True)
class Intervention(ABC):
    """A described change to a forward pass.

    A subclass is a frozen dataclass that says which `kinds` of components it acts on and what it
    replaces. List it in `registry.py`; the contract tests then run over it.

    Attributes:
        components: What it acts on, all jointly. Held as a tuple of `Component`s.
    """

    kinds: ClassVar[tuple[Kind, ...]]

    components: Components

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", targets_of(self.components))
        for component in self.targets:
            if component.kind not in self.kinds:
                raise InterventionError(
                    f"{type(self).__name__} acts on components of kind "
                    f"{', '.join(map(repr, self.kinds))}; {component} is {component.kind!r}."
                )

    @property
    def targets(self) -> tuple[Component, ...]:
        """The components as a tuple."""
        return targets_of(self.components)

    @property
    def donating(self) -> Source | None:
        """The examples that donate activations; None if the values are given."""
        return None

    def check(self, spec: Architecture) -> None:
        """Refuse a model that lacks one of the components.

        Raises:
            InterventionError: The message lists what there is.
        """
        for component in self.targets:
            try:
                component.check(spec)
            except ConfigError as error:
                there = ", ".join(map(str, components(spec, self.kinds)))
                raise InterventionError(
                    f"{type(self).__name__} names {component}, which is not there. {error} "
                    f"There are {there}."
                ) from error

    @abstractmethod
    def replacements(self, references: References) -> tuple[Replacement, ...]:
        """What is replaced; values that are None are donated by `donating`."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The intervention in words and numbers, fit for JSON, to be stored with its results.

        Says where it acts, and for a reference its split, the number of examples and what the
        mean is over.
        """

    @classmethod
    @abstractmethod
    def from_reference(cls, components: Components, reference: Source) -> Intervention:
        """One that takes its values from a reference.

        With a single example as reference, a pass over that example must come out unchanged.
        """

    def donors(self, n: int, stream: torch.Generator | None) -> Int[Tensor, " example"]:
        """Which example of `donating` donates to each of the next `n`: by default its counterpart.

        Raises:
            InterventionError: If the source has neither one example nor `n`.
        """
        del stream  # a counterpart is not drawn
        assert self.donating is not None
        n_source = len(tokens_of(self.donating))
        if n_source == 1:
            return torch.zeros(n, dtype=torch.long)
        if n_source != n:
            raise InterventionError(
                f"The source of {type(self).__name__} must have one example or as many as the "
                f"model is run on (={n}) in one batch; it has {n_source}."
            )
        return torch.arange(n)

    def stream(self) -> torch.Generator | None:
        """The random stream of the donors, from its start; None if nothing is drawn."""
        return None

    @property
    def label(self) -> str:
        """A short text for messages: `Ablate(L0.H0, L1.mlp)`."""
        return f"{type(self).__name__}({', '.join(map(str, self.targets))})"


def on_heads(component: Component, n_heads: int) -> list[int]:
    """The heads of a head or of a whole attention layer."""
    return list(range(n_heads)) if component.head is None else [component.head]
