"""Where heads look: the cost of replacing their attention patterns, with their values kept.

What they move is the business of `ov_ablation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from interp_shortcuts.interventions.ablate import AblateQK
from interp_shortcuts.measures.component_sets import Members
from interp_shortcuts.measures.effects import AblationMeasure, require_choices
from interp_shortcuts.models.sites import Kind
from interp_shortcuts.tasks.split import Split

_PATTERNS: Mapping[str, str] = {"uniform": "uniform", "mean": "reference mean"}


@dataclass(frozen=True)
class QKAblation(AblationMeasure):
    """Heads look the same way in every example: uniformly, or by their reference mean pattern.

    **Hooks that are attached to the model do not act.**

    Attributes:
        components: Names of heads and sets of heads, e.g. `"L0.H1"`, `"L0.heads"`, `"all heads"`;
            None for every head and every named set.
        splits: Names of the splits on which effects are measured.
        reference: Name of the split that the mean pattern is over.
        examples: At most this many examples of each split, its first ones; None for all.
        reference_examples: The same for the reference.
        chunk: How many examples are held at a time; bounds the memory.
        qk_ablations: What the pattern becomes: `"uniform"` over the keys that the query may see,
            or the reference `"mean"`.
    """

    name: ClassVar[str] = "qk_ablation"
    constant: ClassVar[frozenset[str]] = frozenset({"qk_ablation_n"})
    kinds: ClassVar[tuple[Kind, ...]] = ("head",)
    dim: ClassVar[str | None] = "qk_ablation"

    qk_ablations: Sequence[str] = ("uniform", "mean")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.qk_ablations, str):
            object.__setattr__(self, "qk_ablations", (self.qk_ablations,))
        require_choices("qk_ablations", self.qk_ablations, tuple(_PATTERNS))

    @property
    def ways(self) -> tuple[str, ...]:
        return tuple(self.qk_ablations)

    @property
    def acts(self) -> str:
        return (
            "The attention pattern, after softmax and at all queries, is replaced and the values "
            "are kept: 'uniform' over the keys that the query may see, 'mean' by the reference "
            "mean pattern."
        )

    def intervention(self, members: Members, way: str, *, reference: Split, split: str) -> AblateQK:
        del split  # nothing is drawn
        return AblateQK(members, to=_PATTERNS[way], reference=reference)
