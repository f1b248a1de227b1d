"""What sets of components cost when they are taken away at once, against the sum of their parts.

Redundant components cost little one by one and much together: their drops are super-additive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, get_args

import numpy as np
from jaxtyping import Float

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.interventions.ablate import AblationKind
from interp_shortcuts.measures.attribution.importance import (
    HOW,
    MATCHED,
    ScoredAblations,
    paired,
)
from interp_shortcuts.measures.attribution.target_measure import PAPER, Labels, Quantity
from interp_shortcuts.measures.component_sets import Members, component_sets, every_set
from interp_shortcuts.measures.effects import require_choices
from interp_shortcuts.measures.intervals import mean_with_interval
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.spec import ModelSpec

NamedSets: TypeAlias = Mapping[str, Sequence[str]] | Sequence[tuple[str, Sequence[str]]] | None
BOTH_ZERO = "the joint drop and the sum of the single drops are both 0, or the set is empty"


def super_additivity(
    joint: Float[np.ndarray, "*batch"], sum_of_drops: Float[np.ndarray, "*batch"]
) -> Float[np.ndarray, "*batch"]:
    """joint / sum: infinite, with the joint drop's sign, where the sum is 0; NaN where both are."""
    joint, total = np.asarray(joint, np.float64), np.asarray(sum_of_drops, np.float64)
    none = np.abs(total) < 1e-12  # sums of hundredths: what is smaller is rounding
    ratio = joint / np.where(none, 1.0, total)
    alone = np.where(np.abs(joint) < 1e-12, np.nan, np.copysign(np.inf, joint))
    return np.where(none, alone, ratio)


@dataclass(frozen=True)
class JointImportance(ScoredAblations):
    """The cost of ablating sets of components jointly, and the sum of their members' single costs.

    **Hooks that are attached to the model do not act.**

    Attributes:
        split: See `TargetMeasure`.
        seed: See `TargetMeasure`.
        reference_examples: See `ScoredAblations`.
        examples: See `ScoredAblations`.
        chunk: See `ScoredAblations`.
        sets: Named sets, `{"heroes": ["L3.H3", "L2.mlp"], ...}`; a set may be empty. None: the
            heads of each layer, all heads, all MLPs.
        ablation: `"mean"`, `"zero"` or `"resample"`.
    """

    name: ClassVar[str] = "joint_importance"
    by_default: ClassVar[bool] = False

    sets: NamedSets = None
    ablation: str = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choices("ablation", (self.ablation,), get_args(AblationKind))
        if self.sets is not None:
            given = self.sets.items() if isinstance(self.sets, Mapping) else self.sets
            pairs = tuple(
                (name, (members,) if isinstance(members, str) else tuple(members))
                for name, members in given
            )
            if not pairs or len({name for name, _ in pairs}) < len(pairs):
                raise MeasureError(
                    "`sets` must name at least one set, each once; got "
                    f"{[name for name, _ in pairs]}."
                )
            object.__setattr__(self, "sets", pairs)

    def members(self, spec: ModelSpec) -> dict[str, Members]:
        """The components of each set, each once.

        Raises:
            MeasureError: If the model has no such component; the message lists what there is.
        """
        if self.sets is None:
            named = every_set(spec, ("head", "mlp"))
            return {name: named[name] for name in named if name.endswith(("heads", "mlps"))}
        assert not isinstance(self.sets, Mapping)
        found = {}
        for name, texts in self.sets:
            parts = component_sets(spec, ("head", "mlp"), tuple(texts)).values()
            found[name] = tuple(dict.fromkeys(part for each in parts for part in each))
        return found

    def labels(self, spec: ModelSpec) -> Labels:
        return {"component_set": tuple(self.members(spec))}

    def quantities(self) -> Mapping[str, Quantity]:
        dims = ("component_set",)
        how = f"{self.sampled}. {MATCHED}. {self.ablation} ablation: {HOW}; {PAPER}"
        return {
            **paired(
                "joint_drop",
                Quantity(
                    dims,
                    "exact match lost jointly",
                    "fraction",
                    f"exact match unablated - with the whole set ablated at once, {how}",
                    "[-1, 1]",
                ),
            ),
            **paired(
                "sum_of_drops",
                Quantity(
                    dims,
                    "sum of the single losses of exact match",
                    "fraction",
                    f"sum over the set of exact match unablated - with one ablated, {how}",
                    "(-inf, inf)",
                ),
            ),
            "super_additivity": Quantity(
                dims,
                "super-additivity",
                "ratio",
                "joint_drop / sum_of_drops; infinite where the sum is 0 and the joint drop is not",
                "[-inf, inf]",
                BOTH_ZERO,
            ),
            **self.n("joint_n"),
        }

    def values(self, observation: Observation, split: str) -> Mapping[str, Any]:
        sets = self.members(observation.spec)
        singles = sorted({part for members in sets.values() for part in members})
        runs = [(members, self.ablation) for members in sets.values()]
        runs += [((part,), self.ablation) for part in singles]
        drops = self.scores(observation, split, runs).drops()
        whole, single = drops[: len(sets)], drops[len(sets) :]
        summed = np.stack(
            [single[[singles.index(part) for part in own]].sum(0) for own in sets.values()]
        )
        joint, total = mean_with_interval(whole.T), mean_with_interval(summed.T)
        return {
            "joint_drop": joint.value,
            "joint_drop_interval": joint.interval,
            "sum_of_drops": total.value,
            "sum_of_drops_interval": total.interval,
            "super_additivity": super_additivity(joint.value, total.value),
            "joint_n": drops.shape[1],
        }
