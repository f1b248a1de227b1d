"""What heads move: the cost of replacing their values by a mean, with their patterns kept.

Where they look is the business of `qk_ablation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args

from interp_shortcuts.interventions.ablate import AblateOV, PositionPolicy
from interp_shortcuts.measures.component_sets import Members
from interp_shortcuts.measures.effects import AblationMeasure, require_choices
from interp_shortcuts.models.sites import Kind
from interp_shortcuts.tasks.split import Split


@dataclass(frozen=True)
class OVAblation(AblationMeasure):
    """Heads look where they did and find the reference mean there.

    **Hooks that are attached to the model do not act.**

    Attributes:
        components: Names of heads and sets of heads, e.g. `"L0.H1"`, `"L0.heads"`, `"all heads"`;
            None for every head and every named set.
        splits: Names of the splits on which effects are measured.
        reference: Name of the split that the mean values are over.
        examples: At most this many examples of each split, its first ones; None for all.
        reference_examples: The same for the reference.
        chunk: How many examples are held at a time; bounds the memory.
        position: Whether the mean is `"per position"`, or over examples and positions `"pooled"`.
    """

    name: ClassVar[str] = "ov_ablation"
    constant: ClassVar[frozenset[str]] = frozenset({"ov_ablation_n"})
    kinds: ClassVar[tuple[Kind, ...]] = ("head",)
    dim: ClassVar[str | None] = None

    position: str = "per position"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choices("position", (self.position,), get_args(PositionPolicy))

    @property
    def ways(self) -> tuple[str, ...]:
        return ("mean",)

    @property
    def acts(self) -> str:
        return (
            "The values v (b_V included) are replaced by their reference mean "
            f"({self.position}) and the attention pattern is kept."
        )

    def intervention(self, members: Members, way: str, *, reference: Split, split: str) -> AblateOV:
        del way, split  # there is one way, and nothing is drawn
        return AblateOV(members, reference=reference, position=self.position)
