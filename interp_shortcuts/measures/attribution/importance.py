"""Causal importance: what taking away one component costs, in exact match and in loss.

A head is ablated at z, before W_O (b_O stays), an MLP at mlp_out, bias included; the unablated pass
is on the same sequences. Sets of components are `joint`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import numpy as np

from interp_shortcuts.interventions.ablate import Ablate, AblationKind
from interp_shortcuts.measures.attribution.ablated_scores import Scores, ablated_scores
from interp_shortcuts.measures.attribution.ood_examples import fresh_examples
from interp_shortcuts.measures.attribution.target_measure import (
    PAPER,
    Labels,
    Quantity,
    TargetMeasure,
)
from interp_shortcuts.measures.component_sets import Members
from interp_shortcuts.measures.effects import require_choices, require_positive
from interp_shortcuts.measures.intervals import mean_with_interval, proportion_interval
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.sites import Component, components
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.streams import derive_seed
from interp_shortcuts.tasks.target_split import TargetSplit

TOO_FEW = "there are fewer than two sequences"
HOW = (
    "heads ablated at z, before W_O (b_O stays), MLPs at mlp_out (bias included): 'mean' by the "
    "mean over other fresh sequences of the length, per position; 'zero' by 0; 'resample' by the "
    "activation of a random one of them at the same position"
)
MATCHED = (
    "exact match: every target token predicted under teacher forcing, which is whether greedy "
    "decoding gives the answer"
)


def ablation(
    members: Sequence[Component], kind: str, reference: TargetSplit, *, seed: int = 0
) -> Ablate | tuple[()]:
    """The joint ablation of some components; of none, the unablated pass.

    Args:
        members: Heads and MLPs.
        kind: `"mean"`, `"zero"` or `"resample"`.
        reference: What means are over and examples are resampled from; of the same length as the
            examples.
        seed: Of the resampled examples, stream `("ablate", "resample")`.
    """
    if not members:
        return ()
    return Ablate(
        tuple(members), kind=kind, reference=None if kind == "zero" else reference, seed=seed
    )


@dataclass(frozen=True)
class ScoredAblations(TargetMeasure):
    """Base of the measures that ablate components and look at the scores.

    **Hooks that are attached to the model do not act.**

    Attributes:
        split: See `TargetMeasure`.
        seed: See `TargetMeasure`.
        reference_examples: See `TargetMeasure`; resampled activations come from them too.
        examples: Fresh sequences of the length that the model answers.
        chunk: How many examples are held at a time; bounds the memory.
    """

    examples: int = 200
    chunk: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(examples=self.examples, chunk=self.chunk)

    def asked(self, observation: Observation, split: str) -> TargetSplit:
        """The sequences that the model answers."""
        return fresh_examples(observation, split, "examples", n=self.examples, seed=self.seed)

    def scores(
        self,
        observation: Observation,
        split: str,
        runs: Sequence[tuple[Members, str]],
    ) -> Scores:
        """The scores without ablation, and then under each joint ablation of this kind."""
        reference = self.reference(observation, split)
        seed = derive_seed(self.seed, "attribution", split)
        ablations = [ablation(members, kind, reference, seed=seed) for members, kind in runs]
        return ablated_scores(
            observation.model,
            self.asked(observation, split),
            [(), *ablations],
            references=observation.references,
            chunk=self.chunk,
        )

    @property
    def sampled(self) -> str:
        """What means are over, for definitions."""
        return (
            f"paired: mean over {self.examples} fresh sequences of the length; reference: "
            f"{self.reference_examples} others"
        )

    def n(self, name: str) -> dict[str, Quantity]:
        """The number of sequences."""
        return {
            name: Quantity(
                (),
                "sequences",
                "examples",
                "number of sequences asked in each run",
                "[0, inf)",
            )
        }


def paired(name: str, of: Quantity) -> dict[str, Quantity]:
    """A paired mean over sequences, and its 95% interval."""
    interval = Quantity(
        (*of.dims, "bound"),
        f"{of.long_name}, 95% interval",
        of.units,
        "mean -+ 1.96 standard errors of the paired differences over sequences",
        "(-inf, inf)",
        TOO_FEW if of.nan_means == "never NaN" else f"{of.nan_means}; {TOO_FEW}",
    )
    return {name: of, f"{name}_interval": interval}


@dataclass(frozen=True)
class ComponentImportance(ScoredAblations):
    """The cost of ablating each component alone, by mean, by zero and by resampling.

    The paper's C is `exact_match_drop`. **Hooks that are attached to the model do not act.**

    Attributes:
        split: See `TargetMeasure`.
        seed: See `TargetMeasure`.
        reference_examples: See `ScoredAblations`.
        examples: See `ScoredAblations`.
        chunk: See `ScoredAblations`.
        ablations: Kinds of ablation: `"mean"`, `"zero"`, `"resample"`.
    """

    name: ClassVar[str] = "component_importance"

    ablations: Sequence[str] = ("mean", "zero", "resample")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.ablations, str):
            object.__setattr__(self, "ablations", (self.ablations,))
        require_choices("ablations", self.ablations, get_args(AblationKind))

    def labels(self, spec: ModelSpec) -> Labels:
        del spec
        return {"ablation_kind": tuple(self.ablations)}

    def quantities(self) -> Mapping[str, Quantity]:
        dims = ("ablation_kind", "component")
        clean = f"without ablation, mean over {self.examples} fresh sequences of the length"
        return {
            **paired(
                "exact_match_drop",
                Quantity(
                    dims,
                    "exact match lost",
                    "fraction",
                    f"exact match unablated - ablated, {self.sampled}. {MATCHED}. {HOW}; {PAPER}",
                    "[-1, 1]",
                ),
            ),
            **paired(
                "loss_rise",
                Quantity(
                    dims,
                    "loss added",
                    "nats",
                    "mean cross-entropy over a sequence's target tokens, ablated - unablated, "
                    f"{self.sampled}. {HOW}; ours, beyond {PAPER}",
                    "(-inf, inf)",
                ),
            ),
            "exact_match": Quantity((), "exact match", "fraction", f"{MATCHED}; {clean}", "[0, 1]"),
            "exact_match_interval": Quantity(
                ("bound",),
                "exact match, 95% interval",
                "fraction",
                "Clopper-Pearson over sequences",
                "[0, 1]",
            ),
            "token_loss": Quantity(
                (),
                "token loss",
                "nats",
                f"mean cross-entropy over a sequence's target tokens, {clean}",
                "[0, inf)",
            ),
            "token_loss_interval": Quantity(
                ("bound",),
                "token loss, 95% interval",
                "nats",
                "mean -+ 1.96 standard errors over sequences",
                "(-inf, inf)",
                TOO_FEW,
            ),
            **self.n("n_examples"),
        }

    def values(self, observation: Observation, split: str) -> Mapping[str, Any]:
        parts = components(observation.spec)
        runs = [((part,), kind) for kind in self.ablations for part in parts]
        scores = self.scores(observation, split, runs)
        shape = (len(self.ablations), len(parts))
        drop, rise = (mean_with_interval(each.T) for each in (scores.drops(), scores.rises()))
        loss = mean_with_interval(scores.loss[0])
        matched, n = scores.exact_match[0], scores.exact_match.shape[1]
        return {
            "exact_match_drop": drop.value.reshape(shape),
            "exact_match_drop_interval": drop.interval.reshape(*shape, 2),
            "loss_rise": rise.value.reshape(shape),
            "loss_rise_interval": rise.interval.reshape(*shape, 2),
            "exact_match": matched.mean(),
            "exact_match_interval": proportion_interval(np.array(matched.sum()), np.array(n)),
            "token_loss": loss.value,
            "token_loss_interval": loss.interval,
            "n_examples": n,
        }
