"""Which of the two causal variables a component carries: interchange interventions across splits.

The pairs of target and source are drawn in `pairs`; the patch itself is `interventions.Patch`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.interventions.base import Intervention
from interp_shortcuts.interventions.batched import read_logits_under
from interp_shortcuts.interventions.patch import Patch
from interp_shortcuts.measures.base import BOUNDS, PAPER, Measure, axis_labels
from interp_shortcuts.measures.component_sets import ComponentNames, Members, component_sets
from interp_shortcuts.measures.effects import require_positive
from interp_shortcuts.measures.intervals import proportion_interval
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.measures.pairs import DIRECTIONS, PAIRINGS, Pairs, pairs_of
from interp_shortcuts.measures.transfers import Moved, Recovered, moved, recovered
from interp_shortcuts.models.sites import Component, Kind
from interp_shortcuts.models.spec import Architecture

INTERCHANGE = "interchange interventions, Geiger et al. 2021, arXiv:2106.02997"
FRACTIONS: Mapping[str, str] = {
    "rule": "rule_transfer",
    "shortcut": "shortcut_transfer",
    "control": "disruption",
}
"""The fraction that each pairing gives."""
_CHANGED = {"rule": "true", "shortcut": "shortcut"}


class Place(NamedTuple):
    """The residual stream before or after a layer, at one position."""

    kind: Literal["resid_pre", "resid_post"]
    layer: int
    position: int


class _Found(NamedTuple):
    """What one direction gave: of components over [component], of the residual over [place]."""

    components: dict[str, Moved]
    residual: dict[str, Moved]
    recovered: dict[str, Recovered]


@dataclass(frozen=True)
class CrossSplitPatching(Measure):
    """A component's activation is taken from a source example that differs in one label.

    Each pairing (see `pairs.PAIRINGS`) changes one causal variable: the true label, the shortcut
    label, or, as a control, neither. Read the transfers against `disruption`: patching one of two
    heads that compute together mixes two sequences and moves predictions whatever it carries. "All
    heads" together are the upper reference. Where the model does not use the label that a pairing
    changes, source and target differ little in logit difference, and the mean recovered fraction
    is erratic: read its interval, and how many pairs were left out. **Hooks that are attached to
    the model do not act.**

    Attributes:
        components: Names of components and sets, e.g. `"L0.H1"`, `"L0.heads"`, `"all heads"`,
            `"L0.H0 + L1.mlp"`; None for every component and every named set.
        n_pairs: Number of targets in each direction; at most what the target's split has.
        n_residual_pairs: How many of them, the first ones, the residual stream is patched on; it
            has a site for each layer and position, and so most of the cost. 0 for none.
        min_difference: In nats: pairs whose source and target differ by less in logit difference
            are left out of the recovered fraction, which has it as its denominator.
        seed: Of the pairs; see `pairs.pairs_of`.
        chunk: How many pairs are held at a time; bounds the memory.
    """

    name: ClassVar[str] = "cross_split_patching"
    reads: ClassVar[Literal["weights", "activations"]] = "activations"
    kinds: ClassVar[tuple[Kind, ...]] = ("head", "mlp")

    components: ComponentNames = None
    n_pairs: int = 192
    n_residual_pairs: int = 64
    min_difference: float = 0.5
    seed: int = 0
    chunk: int = 256

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(n_pairs=self.n_pairs, chunk=self.chunk)
        if self.n_residual_pairs < 0:
            raise MeasureError(f"`n_residual_pairs` (={self.n_residual_pairs}) must be at least 0.")
        if not self.min_difference > 0:
            raise MeasureError(f"`min_difference` (={self.min_difference}) must be above 0.")

    def measure(self, observation: Observation) -> xr.Dataset:
        spec, task = observation.spec, observation.answering
        sets = component_sets(spec, self.kinds, self.components)
        sites = residual_sites(spec)
        places = [Place(*site, at) for site in sites for at in range(task.context)]
        found = [
            self._direction(observation, pairs, tuple(sets.values()), places)
            for pairs in pairs_of(task, n_pairs=self.n_pairs, seed=self.seed)
        ]
        variables: dict[str, xr.Variable] = {}
        shape = (len(sites), task.context)
        for pairing in PAIRINGS:
            of_components = [one.components[pairing] for one in found]
            of_residual = [one.residual[pairing] for one in found]
            variables |= self._fraction(pairing, of_components)
            variables |= self._fraction(pairing, of_residual, residual=shape)
        for pairing in _CHANGED:
            variables |= self._recovered(pairing, [one.recovered[pairing] for one in found])
        return xr.Dataset(
            variables,
            coords=axis_labels(
                component=tuple(sets),
                site=tuple(f"{kind} L{layer}" for kind, layer in sites),
                position=task.context,
                direction=tuple(DIRECTIONS),
                bound=BOUNDS,
            ),
        )

    def _direction(
        self,
        observation: Observation,
        pairs: Pairs,
        sets: Sequence[Members],
        places: Sequence[Place],
    ) -> _Found:
        task = observation.answering
        plain, by_pairing = self._patched(observation, pairs, sets)
        target = observation.exact_logits(pairs.target.tokens)
        first = pairs.first(self.n_residual_pairs)
        plain_first, residual = self._patched(observation, first, places)
        return _Found(
            components={
                pairing: moved(task, pairs, pairing, plain=plain, patched=logits)
                for pairing, logits in by_pairing.items()
            },
            residual={
                pairing: moved(task, first, pairing, plain=plain_first, patched=logits)
                for pairing, logits in residual.items()
            },
            recovered={
                pairing: recovered(
                    pairs,
                    pairing,
                    plain=target,
                    source=observation.exact_logits(pairs.sources[pairing].tokens),
                    patched=by_pairing[pairing],
                    min_difference=self.min_difference,
                )
                for pairing in _CHANGED
            },
        )

    def _patched(
        self, observation: Observation, pairs: Pairs, what: Sequence[Members | Place]
    ) -> tuple[Float[Tensor, "pair class"], dict[str, Float[Tensor, "run pair class"]]]:
        """The targets' logits, and for each pairing those of the targets patched."""
        runs = [_patch(observation, each, pairs, pairing) for pairing in PAIRINGS for each in what]
        logits = read_logits_under(
            observation.model,
            pairs.target.tokens,
            [(), *runs],
            position=observation.answering.read_position,
            chunk=self.chunk,
            references=observation.references,
        ).cpu()
        by_pairing = logits[1:].unflatten(0, (len(PAIRINGS), len(what)))
        return logits[0], dict(zip(PAIRINGS, by_pairing, strict=True))

    def _fraction(
        self, pairing: str, found: Sequence[Moved], *, residual: tuple[int, int] | None = None
    ) -> dict[str, xr.Variable]:
        """The fraction over [component direction], or over [site position direction]."""
        k, n = (np.stack([getattr(one, name) for one in found], axis=-1) for name in Moved._fields)
        name, dims = FRACTIONS[pairing], ["component", "direction"]
        patched = "a component's activation (heads: z, before W_O; MLPs: mlp_out), at all positions"
        if residual is not None:
            k, n = (counts.reshape(*residual, -1) for counts in (k, n))
            name, dims = f"residual_{name}", ["site", "position", "direction"]
            patched = "the residual stream at one position"
        empty = "the splits hold no pair of this pairing"
        if pairing == "control":
            pair = "another example of the target's split with the same true and shortcut label"
            counted = "pairs whose prediction the patch changes"
            which = "all pairs"
        else:
            changed = _CHANGED[pairing]
            kept = next(label for label in _CHANGED.values() if label != changed)
            pair = f"an example of the other split, other {changed} label, same {kept} label"
            counted = f"pairs whose patched prediction is the source's {changed} label"
            which = f"pairs whose unpatched prediction is not the source's {changed} label"
            empty += ", or every unpatched prediction is the source's label already"
        origin = f"{PAPER} patches across splits; as {INTERCHANGE}; the counting is ours."
        return {
            name: self.described(
                dims,
                np.divide(k, n, out=np.full(k.shape, np.nan), where=n > 0),
                long_name=name.replace("_", " "),
                units="fraction",
                definition=f"fraction of {counted}, among {which}. Patched is {patched}; the "
                f"source is {pair}. {origin}",
                range="[0, 1]",
                nan_means=empty,
            ),
            f"{name}_interval": self.described(
                [*dims, "bound"],
                proportion_interval(k, n),
                long_name=f"{name.replace('_', ' ')}, 95% interval",
                units="fraction",
                definition="Clopper-Pearson 95% interval over the pairs that count",
                range="[0, 1]",
                nan_means=empty,
            ),
            f"{name}_n": self.described(
                dims,
                n,
                long_name=f"pairs of {name.replace('_', ' ')}",
                units="pairs",
                definition=f"number of {which}; 0 if {empty}",
                range="[0, inf)",
            ),
        }

    def _recovered(self, pairing: str, found: Sequence[Recovered]) -> dict[str, xr.Variable]:
        name, dims, changed = f"{pairing}_recovered", ["component", "direction"], _CHANGED[pairing]
        few = f"no pair whose logit difference changes by at least {self.min_difference} nats"
        return {
            name: self.described(
                dims,
                np.stack([one.value for one in found], axis=-1),
                long_name=f"recovered logit difference ({pairing} pairing)",
                units="fraction",
                definition="mean of (LD_patched - LD_target) / (LD_source - LD_target), LD the "
                f"logit of the source's {changed} label minus that of the target's, at '=', over "
                f"pairs with |LD_source - LD_target| >= {self.min_difference} nats. {PAPER} "
                f"patches across splits; as {INTERCHANGE}; the formula is ours.",
                range="(-inf, inf)",
                nan_means=few,
            ),
            f"{name}_interval": self.described(
                [*dims, "bound"],
                np.stack([one.interval for one in found], axis=-2),
                long_name=f"recovered logit difference ({pairing} pairing), 95% interval",
                units="fraction",
                definition="mean -+ 1.96 standard errors over the pairs that count",
                range="(-inf, inf)",
                nan_means="fewer than two pairs count",
            ),
            f"{name}_n": self.described(
                dims,
                np.stack([one.n for one in found], axis=-1),
                long_name=f"pairs of the recovered logit difference ({pairing} pairing)",
                units="pairs",
                definition=f"number of pairs that count; 0 if there is {few}",
                range="[0, inf)",
            ),
            f"{name}_left_out": self.described(
                dims,
                np.stack([one.left_out for one in found], axis=-1),
                long_name=f"pairs left out of the recovered logit difference ({pairing} pairing)",
                units="pairs",
                definition="number of pairs whose source and target differ by less than "
                f"{self.min_difference} nats in logit difference",
                range="[0, inf)",
            ),
        }


def residual_sites(
    spec: Architecture,
) -> list[tuple[Literal["resid_pre", "resid_post"], int]]:
    """Before each layer, and after the last: after any other is before the next."""
    last = spec.n_layers - 1
    return [*(("resid_pre", layer) for layer in range(spec.n_layers)), ("resid_post", last)]


def _patch(
    observation: Observation, what: Members | Place, pairs: Pairs, pairing: str
) -> Intervention | tuple[()]:
    """The patch; nothing where it provably changes nothing, to save its run."""
    source = pairs.sources[pairing].tokens
    if not isinstance(what, Place):
        return Patch(what, source)
    if what.kind == "resid_post" and what.position != observation.answering.read_position:
        return ()  # after the last layer, no other position is read
    at = what.position
    if what == ("resid_pre", 0, at) and torch.equal(source[:, at], pairs.target.tokens[:, at]):
        return ()  # the same token at the same position
    return Patch(Component(what.layer, what.kind), source, at)
