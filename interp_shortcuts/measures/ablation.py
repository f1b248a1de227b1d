"""What components carry: the cost of taking away their activations, one by one and jointly.

A head is ablated at z, before W_O, and `b_O` stays; an MLP at what it adds to the residual stream.
Where a head looks and what it moves are taken apart in `qk_ablation` and `ov_ablation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, get_args

from interp_shortcuts.interventions.ablate import Ablate, AblationKind, PositionPolicy
from interp_shortcuts.measures.component_sets import Members
from interp_shortcuts.measures.effects import AblationMeasure, require_choices
from interp_shortcuts.models.sites import Kind
from interp_shortcuts.streams import derive_seed
from interp_shortcuts.tasks.split import Split


@dataclass(frozen=True)
class Ablation(AblationMeasure):
    """Zero, mean and resample ablation of heads, MLPs and sets of them.

    **Hooks that are attached to the model do not act.**

    Attributes:
        components: Names of components and sets, e.g. `"L0.H1"`, `"L0.heads"`, `"all heads"`,
            `"L0.H0 + L1.mlp"`; None for every component and every named set.
        splits: Names of the splits on which effects are measured.
        reference: Name of the split that means are over and that examples are resampled from.
        examples: At most this many examples of each split, its first ones; None for all.
        reference_examples: The same for the reference.
        chunk: How many examples are held at a time; bounds the memory.
        ablations: Kinds of ablation: `"zero"`, `"mean"`, `"resample"`.
        position: Whether a mean is `"per position"`, or over examples and positions `"pooled"`.
            Resampling keeps the position.
        seed: Of the resampled examples, stream `("ablation", split)`; all components and all
            checkpoints get the same ones.
    """

    name: ClassVar[str] = "ablation"
    constant: ClassVar[frozenset[str]] = frozenset({"ablation_n"})
    kinds: ClassVar[tuple[Kind, ...]] = ("head", "mlp")
    dim: ClassVar[str | None] = "ablation"

    ablations: Sequence[str] = ("zero", "mean", "resample")
    position: str = "per position"
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.ablations, str):
            object.__setattr__(self, "ablations", (self.ablations,))
        require_choices("ablations", self.ablations, get_args(AblationKind))
        require_choices("position", (self.position,), get_args(PositionPolicy))

    @property
    def ways(self) -> tuple[str, ...]:
        return tuple(self.ablations)

    @property
    def acts(self) -> str:
        return (
            "Heads are replaced at z, before W_O (b_O stays), MLPs at mlp_out (bias included): "
            f"'zero' by 0, 'mean' by the reference mean ({self.position}), 'resample' by the "
            "activation of a random reference example at the same position."
        )

    def intervention(self, members: Members, way: str, *, reference: Split, split: str) -> Ablate:
        return Ablate(
            members,
            kind=way,
            reference=None if way == "zero" else reference,
            position=self.position if way == "mean" else "per position",
            seed=derive_seed(self.seed, "ablation", split),
        )


@dataclass(frozen=True)
class HeadAblation(Ablation):
    """`Ablation` of heads and sets of heads alone, with the same variables.

    The fields are those of `Ablation`.
    """

    kinds: ClassVar[tuple[Kind, ...]] = ("head",)
