"""How much more, or less, two components cost together than one by one.

Positive: each stands in for the other (redundant). Negative: one is of no use without the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from interp_shortcuts.measures.attribution.importance import (
    HOW,
    MATCHED,
    ScoredAblations,
    paired,
)
from interp_shortcuts.measures.attribution.target_measure import PAPER, Labels, Quantity
from interp_shortcuts.measures.intervals import mean_with_interval
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.sites import components
from interp_shortcuts.models.spec import ModelSpec


@dataclass(frozen=True)
class ComponentInteraction(ScoredAblations):
    """drop(a, b) - drop(a) - drop(b) of every two components, under mean ablation.

    A tracker takes it only when told to: 20 components make 190 pairs.
    **Hooks that are attached to the model do not act.** The fields are those of `ScoredAblations`.
    """

    name: ClassVar[str] = "component_interaction"
    by_default: ClassVar[bool] = False

    def labels(self, spec: ModelSpec) -> Labels:
        return {"component_b": tuple(map(str, components(spec)))}

    def quantities(self) -> Mapping[str, Quantity]:
        found = paired(
            "interaction",
            Quantity(
                ("component", "component_b"),
                "interaction",
                "fraction",
                "exact match lost with both ablated - with the one - with the other, "
                f"{self.sampled}. {MATCHED}. Mean ablation: {HOW}; ours, beyond {PAPER}",
                "(-inf, inf)",
                "a component with itself",
            ),
        )
        return found | self.n("interaction_n")

    def values(self, observation: Observation, split: str) -> Mapping[str, Any]:
        parts = components(observation.spec)
        pairs = list(combinations(range(len(parts)), 2))
        runs = [((part,), "mean") for part in parts]
        runs += [((parts[a], parts[b]), "mean") for a, b in pairs]
        drops = self.scores(observation, split, runs).drops()
        single, joint = drops[: len(parts)], drops[len(parts) :]
        value = np.full((len(parts), len(parts)), np.nan)
        interval = np.full((*value.shape, 2), np.nan)
        for (a, b), both in zip(pairs, joint, strict=True):
            mean = mean_with_interval(both - single[a] - single[b])
            for at in ((a, b), (b, a)):
                value[at], interval[at] = mean.value, mean.interval
        return {
            "interaction": value,
            "interaction_interval": interval,
            "interaction_n": drops.shape[1],
        }
