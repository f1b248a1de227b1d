"""What an ablation costs: accuracy, loss and logit difference, paired with the unablated run.

The part that all ablations share: which components and examples, the runs, the paired differences
and their intervals. What is replaced by what is in `ablation`, `qk_ablation` and `ov_ablation`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.interventions.base import Intervention
from interp_shortcuts.interventions.batched import read_logits_under
from interp_shortcuts.measures.base import BOUNDS, PAPER, Measure, axis_labels
from interp_shortcuts.measures.component_sets import ComponentNames, Members, component_sets
from interp_shortcuts.measures.intervals import Mean, mean_with_interval
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.sites import Kind
from interp_shortcuts.tasks.base import AnswerTask
from interp_shortcuts.tasks.split import Split

EMPTY = "the split has no example"
TOO_FEW = "the split has fewer than two examples"
OUTCOMES = ("accuracy_drop", "loss_increase", "logit_difference_drop")


class Effects(NamedTuple):
    """Paired differences to the unablated run, over [ablation] in the order they were run."""

    accuracy_drop: Mean
    loss_increase: Mean
    logit_difference_drop: Mean


@dataclass(frozen=True)
class AblationMeasure(Measure):
    """Base of the ablation measures: every component and named set, on the same examples.

    The runs are those of `models.variants`, without hooks: **hooks that are attached to the model
    do not act**.

    Attributes:
        components: Names of components and sets, e.g. `"L0.H1"`, `"L0.heads"`, `"all heads"`,
            `"L0.H0 + L1.mlp"`; None for every component and every named set.
        splits: Names of the splits on which effects are measured.
        reference: Name of the split that reference activations come from.
        examples: At most this many examples of each split, its first ones; None for all.
        reference_examples: The same for the reference.
        chunk: How many examples are held at a time; bounds the memory.
    """

    reads: ClassVar[Literal["weights", "activations"]] = "activations"
    kinds: ClassVar[tuple[Kind, ...]]
    dim: ClassVar[str | None]
    """The dimension of the ways to ablate; None if there is one."""

    components: ComponentNames = None
    splits: Sequence[str] = ("validation", "adversarial")
    reference: str = "train"
    examples: int | None = 192
    reference_examples: int | None = 512
    chunk: int = 256

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.splits:
            raise MeasureError("`splits` must name at least one split; got ().")
        require_positive(
            examples=self.examples, reference_examples=self.reference_examples, chunk=self.chunk
        )

    @property
    @abstractmethod
    def ways(self) -> tuple[str, ...]:
        """The ways to ablate, the labels of `dim`."""

    @property
    @abstractmethod
    def acts(self) -> str:
        """What is replaced, and by what, in words for the definition."""

    @abstractmethod
    def intervention(
        self, members: Members, way: str, *, reference: Split, split: str
    ) -> Intervention:
        """The joint ablation of a set of components."""

    def measure(self, observation: Observation) -> xr.Dataset:
        task = observation.answering
        sets = component_sets(observation.spec, self.kinds, self.components)
        reference = self._reference(task)
        asked = [first_examples(task.split(name), self.examples) for name in self.splits]
        effects = [
            self._effects(observation, sets, reference, split, name)
            for name, split in zip(self.splits, asked, strict=True)
        ]
        n = np.array([split.n for split in asked], dtype=np.int64)
        labels = {} if self.dim is None else {self.dim: self.ways}
        return xr.Dataset(
            {**self._variables(effects, sets, reference), **self._n(n)},
            coords=axis_labels(
                component=tuple(sets), **labels, split=tuple(self.splits), bound=BOUNDS
            ),
        )

    def _reference(self, task: AnswerTask) -> Split:
        reference = first_examples(task.split(self.reference), self.reference_examples)
        if reference.n == 0:
            raise MeasureError(
                f"`reference` must name a split that has examples; {self.reference!r} has none."
            )
        return reference

    def _effects(
        self,
        observation: Observation,
        sets: dict[str, Members],
        reference: Split,
        split: Split,
        name: str,
    ) -> Effects:
        """Over [component and way]; sets with the same members (one head a layer) run once."""
        distinct = list(dict.fromkeys(frozenset(members) for members in sets.values()))
        runs = [
            self.intervention(tuple(sorted(members)), way, reference=reference, split=name)
            for members in distinct
            for way in self.ways
        ]
        logits = read_logits_under(
            observation.model,
            split.tokens,
            [(), *runs],
            position=observation.answering.read_position,
            chunk=self.chunk,
            references=observation.references,
        ).cpu()
        ablated = logits[1:].unflatten(0, (len(distinct), len(self.ways)))
        order = [distinct.index(frozenset(members)) for members in sets.values()]
        return paired_effects(observation.answering, split, logits[0], ablated[order].flatten(0, 1))

    def _variables(
        self, effects: list[Effects], sets: dict[str, Members], reference: Split
    ) -> dict[str, xr.Variable]:
        shape = [len(sets)] if self.dim is None else [len(sets), len(self.ways)]
        dims = ["component"] if self.dim is None else ["component", self.dim]
        pairing = f"paired: mean over the first {self.examples} examples of the split"
        if self.examples is None:
            pairing = "paired: mean over the examples of the split"
        origin = (
            f"{self.acts} Reference: the first {reference.n} examples of {self.reference!r}. Sets "
            f"are ablated jointly. {PAPER} ablates components and gives no formula: this is ours."
        )
        variables: dict[str, xr.Variable] = {}
        for outcome in OUTCOMES:
            means: list[Mean] = [getattr(effect, outcome) for effect in effects]
            values = np.stack([mean.value for mean in means], axis=-1)
            intervals = np.stack([mean.interval for mean in means], axis=-2)
            variables[f"{self.name}_{outcome}"] = self.described(
                [*dims, "split"],
                values.reshape(*shape, len(effects)),
                long_name=f"{_LONG_NAMES[outcome]} ({self.name.replace('_', ' ')})",
                units=_UNITS[outcome],
                definition=f"{_FORMULAS[outcome]}, {pairing}. {origin}",
                range="[-1, 1]" if outcome == "accuracy_drop" else "(-inf, inf)",
                nan_means=EMPTY,
            )
            variables[f"{self.name}_{outcome}_interval"] = self.described(
                [*dims, "split", "bound"],
                intervals.reshape(*shape, len(effects), 2),
                long_name=f"{_LONG_NAMES[outcome]} ({self.name.replace('_', ' ')}), 95% interval",
                units=_UNITS[outcome],
                definition="mean -+ 1.96 standard errors of the paired differences over examples",
                range="(-inf, inf)",
                nan_means=TOO_FEW,
            )
        return variables

    def _n(self, n: np.ndarray) -> dict[str, xr.Variable]:
        return {
            f"{self.name}_n": self.described(
                ["split"],
                n,
                long_name="examples of the ablations",
                units="examples",
                definition="number of examples that each run, ablated or not, was asked about",
                range="[0, inf)",
            )
        }


_LONG_NAMES = {
    "accuracy_drop": "accuracy lost",
    "loss_increase": "loss added",
    "logit_difference_drop": "logit difference lost",
}
_UNITS = {
    "accuracy_drop": "fraction",
    "loss_increase": "nats",
    "logit_difference_drop": "nats",
}
_FORMULAS = {
    "accuracy_drop": "[correct unablated] - [correct ablated] at '='",
    "loss_increase": "cross-entropy ablated - unablated at '='",
    "logit_difference_drop": "logit of the true class minus the mean of the other classes' logits "
    "at '=', unablated - ablated",
}


def paired_effects(
    task: AnswerTask,
    split: Split,
    plain: Float[Tensor, "example class"],
    ablated: Float[Tensor, "run example class"],
) -> Effects:
    """The differences that ablations make to each example, averaged.

    Args:
        task: Says what is correct, and what it costs.
        split: The examples.
        plain: Their logits in the unablated run.
        ablated: Their logits in each ablated run.

    Returns:
        Means with intervals and n, each over [run].
    """
    n_runs = len(ablated)
    logits = torch.cat([plain[None], ablated]).flatten(0, 1)
    labels = split.labels.repeat(n_runs + 1)
    outcomes = (
        task.correct(logits, labels).double(),
        -task.loss(logits, labels).double(),
        logit_difference(logits.double(), labels),
    )
    found = []
    for values in outcomes:
        unablated, others = values.unflatten(0, (n_runs + 1, split.n)).split([1, n_runs])
        found.append(mean_with_interval((unablated - others).T.numpy()))
    return Effects(*found)


def logit_difference(
    logits: Float[Tensor, "example class"], labels: Tensor
) -> Float[Tensor, " example"]:
    """Logit of the true class minus the mean of the other classes' logits, in nats."""
    true = logits.gather(1, labels[:, None])[:, 0]
    return true - (logits.sum(1) - true) / (logits.shape[1] - 1)


@lru_cache(maxsize=64)
def first_examples(split: Split, n: int | None) -> Split:
    """The first n examples of a split; the same object each time, so that readings are shared."""
    return split if n is None or n >= split.n else split.take(torch.arange(n))


def require_positive(**fields: int | None) -> None:
    """Refuses counts below 1; None is left to mean all.

    Raises:
        MeasureError: Names the field.
    """
    for name, value in fields.items():
        if value is not None and value < 1:
            raise MeasureError(f"`{name}` (={value}) must be at least 1.")


def require_choices(name: str, given: Sequence[str], choices: Sequence[str]) -> None:
    """Refuses an empty list, and what is not among the choices.

    Raises:
        MeasureError: Lists the choices.
    """
    for value in given or ("nothing",):
        if value not in choices:
            *others, last = map(repr, choices)
            raise MeasureError(f"`{name}` must be {', '.join(others)} or {last}; got {value!r}.")
