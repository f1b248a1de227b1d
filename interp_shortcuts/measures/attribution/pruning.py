"""What heroes and bloats are worth together: each kind at once, and the k largest of a kind.

The roles are those of the model itself at that step, from gradient norm and mean ablation. What
they are worth is measured on other sequences, so that a component which was ranked high by luck is
not paid for it twice. Sets of one's own are `joint`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from interp_shortcuts.measures.attribution.gap import (
    THRESHOLD,
    RankGap,
    by_size,
    check_threshold,
    rank_gap,
)
from interp_shortcuts.measures.attribution.gradient_measures import GradientNorm
from interp_shortcuts.measures.attribution.gradient_reading import READINGS
from interp_shortcuts.measures.attribution.importance import (
    HOW,
    MATCHED,
    ComponentImportance,
    ScoredAblations,
    paired,
)
from interp_shortcuts.measures.attribution.joint import BOTH_ZERO, super_additivity
from interp_shortcuts.measures.attribution.ood_examples import fresh_examples
from interp_shortcuts.measures.attribution.target_measure import PAPER, Labels, Quantity
from interp_shortcuts.measures.effects import require_choices, require_positive
from interp_shortcuts.measures.intervals import mean_with_interval, proportion_interval
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.sites import Component, components
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.streams import numpy_stream
from interp_shortcuts.tasks.target_split import TargetSplit
from interp_shortcuts.tasks.target_task import split_name

SETS = ("heroes", "bloats")
PRUNED = (*SETS, "random")
SPLITS = ("in distribution", "out of distribution")
NO_ORDER = "gradient norm or importance is the same for all components, so there are no roles"
FEWER = "the model has fewer than k of that kind"

Members = tuple[Component, ...]


@dataclass(frozen=True)
class RolePruning(ScoredAblations):
    """Mean-ablates hidden heroes and gradient bloats: all of them, and the k largest by |gap|.

    Beside them k components drawn at random from all, the same ones at all checkpoints. In
    distribution is the longest training length, out of distribution that of `split`.

    **Hooks that are attached to the model do not act.**

    Attributes:
        split: See `TargetMeasure`.
        seed: See `TargetMeasure`; of the random orders too, stream
            `("attribution", "pruned at random")`.
        reference_examples: See `ScoredAblations`.
        chunk: See `ScoredAblations`.
        examples: Fresh sequences of each length on which the cost is measured, and as many others
            on which importance is ranked (those of `ComponentImportance`).
        threshold: Ranks that make a hero or a bloat.
        reading: Of the gradient norm: `"W_V"` or `"W_V+W_O"`.
        max_k: The most components that are pruned.
        n_random: Random orders that are averaged over.
        n_batches: Batches of the gradient norm, see `GradientNorm`.
        batch_size: Sequences in each.
    """

    name: ClassVar[str] = "role_pruning"

    threshold: float = THRESHOLD
    reading: str = "W_V+W_O"
    max_k: int = 6
    n_random: int = 4
    n_batches: int = 50
    batch_size: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        check_threshold(self.threshold)
        require_choices("reading", (self.reading,), tuple(READINGS))
        require_positive(
            max_k=self.max_k,
            n_random=self.n_random,
            n_batches=self.n_batches,
            batch_size=self.batch_size,
        )

    def labels(self, spec: ModelSpec) -> Labels:
        return {
            "role_set": SETS,
            "pruned_kind": PRUNED,
            "k": tuple(str(k) for k in range(self._most(spec) + 1)),
            "split": SPLITS,
        }

    def quantities(self) -> Mapping[str, Quantity]:
        roles = (
            f"heroes: rank by gradient norm ({self.reading}) at least {self.threshold:g} below "
            "rank by mean ablation; bloats: at least as far above; ranked on other sequences"
        )
        pruned = Quantity(
            ("pruned_kind", "k", "split"),
            "exact match when pruned",
            "fraction",
            f"{MATCHED}; with the k components of a kind with the largest gap mean-ablated at "
            f"once; random: k of all components, mean over {self.n_random} random orders. {roles}. "
            f"Mean over {self.examples} fresh sequences of the longest training length (in "
            f"distribution) and of the held-out one. {HOW}; {PAPER}",
            "[0, 1]",
            f"{FEWER}; {NO_ORDER}",
        )
        interval = Quantity(
            (*pruned.dims, "bound"),
            f"{pruned.long_name}, 95% interval",
            "fraction",
            "Clopper-Pearson over sequences; random, of several orders: mean -+ 1.96 standard "
            "errors over sequences of their mean over the orders",
            "(-inf, inf)",
            pruned.nan_means,
        )
        how = f"{self.sampled}, of the held-out length. {MATCHED}. {roles}. {HOW}; {PAPER}"
        return {
            "pruned_exact_match": pruned,
            "pruned_exact_match_interval": interval,
            "pruned_n": self.n("pruned_n")["pruned_n"],
            **self._of_set("joint_drop", "exact match lost jointly", f"all at once, {how}"),
            **self._of_set("sum_of_drops", "sum of the single losses", f"one by one, {how}"),
            "role_super_additivity": Quantity(
                ("role_set",),
                "super-additivity",
                "ratio",
                "role_joint_drop / role_sum_of_drops; infinite where the sum is 0 and the joint "
                "drop is not",
                "[-inf, inf]",
                f"{BOTH_ZERO}; {NO_ORDER}",
            ),
            "role_size": Quantity(
                ("role_set",), "components", "components", roles, "[0, inf)", NO_ORDER
            ),
        }

    def asked(self, observation: Observation, split: str) -> TargetSplit:
        return fresh_examples(observation, split, "pruned", n=self.examples, seed=self.seed)

    def roles(self, observation: Observation, split: str) -> Mapping[str, Members] | None:
        """Heroes and bloats of the model, the largest gap first; None if nothing is ranked."""
        gap = self._gap(observation, split)
        if gap.reason:
            return None
        names = [str(part) for part in components(observation.spec)]
        found = (by_size(gap.delta, names, role, self.threshold) for role in ("hero", "bloat"))
        return {
            name: tuple(Component.parse(text) for text in own)
            for name, own in zip(SETS, found, strict=True)
        }

    def values(self, observation: Observation, split: str) -> Mapping[str, Any]:
        roles = self.roles(observation, split)
        inside = split_name(max(observation.targeting.train_lengths))
        most = self._most(observation.spec)
        orders = self._random_orders(observation.spec)
        pruned = np.full((len(PRUNED), most + 1, len(SPLITS)), np.nan)
        ends = np.full((*pruned.shape, 2), np.nan)
        for place, name in enumerate((inside, split)):
            own = {} if roles is None else {kind: [roles[kind]] for kind in SETS}
            for kind, candidates in {**own, "random": orders}.items():
                at = PRUNED.index(kind), slice(None), place
                pruned[at], ends[at] = self._curve(observation, name, candidates, most)
            for kind in SETS if roles is None else ():  # nothing pruned: the model itself
                at = PRUNED.index(kind), 0, place
                random = PRUNED.index("random"), 0, place
                pruned[at], ends[at] = pruned[random], ends[random]
        found = {
            "pruned_exact_match": pruned,
            "pruned_exact_match_interval": ends,
            "pruned_n": self.examples,
        }
        return found | self._sets(observation, split, roles)

    def _gap(self, observation: Observation, split: str) -> RankGap:
        """The gap on the sequences that the measures of attribution and importance ask."""
        shared: dict[str, Any] = {
            "split": split,
            "seed": self.seed,
            "reference_examples": self.reference_examples,
        }
        gradient = GradientNorm(**shared, n_batches=self.n_batches, batch_size=self.batch_size)
        importance = ComponentImportance(
            **shared, examples=self.examples, chunk=self.chunk, ablations=("mean",)
        )
        norms = gradient.values(observation, split)["gradient_norm"]
        drops = importance.values(observation, split)["exact_match_drop"]
        return rank_gap(norms[tuple(READINGS).index(self.reading)], drops[0])

    def _curve(
        self, observation: Observation, split: str, candidates: Sequence[Members], most: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Exact match [k] with the first k of each candidate pruned, averaged, and its interval."""
        prefixes = [[own[:k] for own in candidates if len(own) >= k] for k in range(most + 1)]
        runs = [(members, "mean") for group in prefixes for members in group if members]
        matched = self.scores(observation, split, runs).exact_match.astype(np.float64)
        values, ends = np.full(most + 1, np.nan), np.full((most + 1, 2), np.nan)
        taken = 1  # the first run is the model without ablation
        for k, group in enumerate(prefixes):
            if not group:
                continue
            rows = matched[:1] if k == 0 else matched[taken : taken + len(group)]
            taken += 0 if k == 0 else len(group)
            values[k], ends[k] = _mean(rows)
        return values, ends

    def _sets(
        self, observation: Observation, split: str, roles: Mapping[str, Members] | None
    ) -> dict[str, Any]:
        """The joint drop of all heroes and of all bloats, and the sum of the single ones."""
        names = ("role_joint_drop", "role_sum_of_drops")
        found: dict[str, Any] = {name: np.full(len(SETS), np.nan) for name in names}
        found |= {f"{name}_interval": np.full((len(SETS), 2), np.nan) for name in names}
        found["role_size"] = np.full(len(SETS), np.nan)
        for place, kind in enumerate(SETS if roles is not None else ()):
            assert roles is not None
            members = roles[kind]
            found["role_size"][place] = len(members)
            if not members:
                continue
            runs = [(members, "mean"), *(((part,), "mean") for part in members)]
            drops = self.scores(observation, split, runs).drops()
            for name, values in zip(names, (drops[0], drops[1:].sum(0)), strict=True):
                mean = mean_with_interval(values)
                found[name][place] = mean.value
                found[f"{name}_interval"][place] = mean.interval
        found["role_super_additivity"] = super_additivity(*(found[name] for name in names))
        return found

    def _of_set(self, name: str, title: str, formula: str) -> dict[str, Quantity]:
        missing = f"the set is empty; {NO_ORDER}"
        formula = f"exact match unablated - with the set mean-ablated {formula}"
        of = Quantity(("role_set",), title, "fraction", formula, "(-inf, inf)", missing)
        return paired(f"role_{name}", of)

    def _random_orders(self, spec: ModelSpec) -> list[Members]:
        parts = components(spec)
        stream = numpy_stream(self.seed, "attribution", "pruned at random")
        orders = [stream.permutation(len(parts)) for _ in range(self.n_random)]
        return [tuple(parts[index] for index in order) for order in orders]

    def _most(self, spec: ModelSpec) -> int:
        return min(self.max_k, len(components(spec)))


def _mean(matched: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean of 0 or 1 over [run example], and its interval over examples."""
    if len(matched) == 1:
        successes, n = matched[0].sum(), matched.shape[1]
        return float(matched[0].mean()), proportion_interval(np.array(successes), np.array(n))
    mean = mean_with_interval(matched.mean(axis=0))
    return float(mean.value), mean.interval
