"""How far a network gets on a share of its neurons, ranked by IPR, by strength, or at random.

The ranking is that of `interventions/neurons.py`. From arXiv 2605.18022, where ranking neurons
finds much less of the rule than filtering frequencies does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.interventions.neurons import NeuronPartition
from interp_shortcuts.measures.base import BOUNDS, Measure, axis_labels
from interp_shortcuts.measures.intervals import proportion_interval
from interp_shortcuts.measures.modular.noise_rows import (
    AGAINST,
    EMPTY,
    PAPER,
    NoiseRows,
    require_modular,
)
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.pair_grid import neuron_logits
from interp_shortcuts.models.two_layer import TwoLayerNet
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.streams import derive_seed
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.tasks.noisy_task import NOISE_GROUPS

RANKED = ("ipr", "strength")
SCORES = (*RANKED, "random")
KEPT = ("top", "bottom")
_NO_NEURON = f"{EMPTY}, or the share comes to no neuron"


@dataclass(frozen=True)
class PartitionAccuracy(Measure):
    """Accuracy on the top and on the bottom share of the neurons, by group.

    The other neurons are taken out; mu is kept. Random orders are the control: the same at every
    step, so that their neurons can be followed. Shares of one ranking are read from one pass over
    its neurons; the cost is that of `n_draws + 2` passes over all pairs. A swapped activation acts,
    in the strengths as in the logits; hooks do not act.

    Attributes:
        shares: The shares of the neurons that are kept, in (0, 1], ascending.
        n_draws: Number of random orders.
        seed: Seed of the random orders, from the streams `("partition", "draw 0")` and on.

    Raises:
        MeasureError: If the shares are not ascending or out of range, or there is no draw.
    """

    name: ClassVar[str] = "neuron_partition"
    reads: ClassVar[Literal["weights", "activations"]] = "activations"
    constant: ClassVar[frozenset[str]] = frozenset({"partition_n"})
    asks: ClassVar[type] = ModularArithmetic
    of_model: ClassVar[type] = TwoLayerSpec

    shares: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    n_draws: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        ascending = all(low < high for low, high in pairwise((0.0, *self.shares)))
        if not self.shares or not ascending or not self.shares[-1] <= 1:
            raise MeasureError(
                f"`shares` must be in (0, 1] and ascending; got {list(self.shares)}."
            )
        if self.n_draws < 1:
            raise MeasureError(f"`n_draws` must be at least 1; got {self.n_draws}.")

    def measure(self, observation: Observation) -> xr.Dataset:
        task = require_modular(observation.task)
        net, rows = observation.two_layer, NoiseRows.of(task)
        right = np.stack(
            [
                self._right(
                    net, task, rows, NeuronPartition(score, 1.0, arithmetic=task.arithmetic)
                )
                for score in RANKED
            ]
        )
        drawn = rows.fraction(
            np.stack(
                [
                    self._right(net, task, rows, NeuronPartition("random", 1.0, seed=seed))
                    for seed in self._seeds()
                ]
            )
        )
        some = self._some_neuron(net.spec.width)[..., None]
        accuracy = np.concatenate([rows.fraction(right), drawn.mean(0, keepdims=True)])
        interval = proportion_interval(right, np.broadcast_to(rows.n, right.shape))
        undefined = np.full((1, *interval.shape[1:]), np.nan)
        return self._labelled(
            np.where(some, accuracy, np.nan),
            np.where(some[..., None], np.concatenate([interval, undefined]), np.nan),
            np.where(some, drawn, np.nan),
            rows.n,
        )

    def _right(
        self, net: TwoLayerNet, task: ModularArithmetic, rows: NoiseRows, part: NeuronPartition
    ) -> Int[np.ndarray, "keep share group"]:
        return rows.right(part_predictions(net, task, part.ranked(net), self._cuts(net.spec.width)))

    def _seeds(self) -> list[int]:
        return [derive_seed(self.seed, "partition", f"draw {n}") for n in range(self.n_draws)]

    def _cuts(self, width: int) -> Int[np.ndarray, "keep share"]:
        """How many of the ranked neurons are above each cut."""
        return np.array(
            [
                [NeuronPartition("random", share, keep).n_above(width) for share in self.shares]
                for keep in KEPT
            ]
        )

    def _some_neuron(self, width: int) -> np.ndarray:
        """Whether any neuron is kept [keep share]."""
        top, bottom = self._cuts(width)
        return np.stack([top > 0, bottom < width])

    def _labelled(
        self,
        accuracy: Float[np.ndarray, "score keep share group"],
        interval: Float[np.ndarray, "score keep share group bound"],
        drawn: Float[np.ndarray, "draw keep share group"],
        n: Int[np.ndarray, " group"],
    ) -> xr.Dataset:
        dims = ["keep", "share", "group"]
        definition = (
            "fraction of the group's pairs whose largest logit (ties to the lowest class) is their "
            f"label, {AGAINST}; on the top or the bottom share of the neurons"
        )
        draws = f"{self.n_draws} random orders (ours), the same at every step"
        variables = {
            "partition_accuracy": self.described(
                ["score", *dims],
                accuracy,
                long_name="accuracy on a share of the neurons",
                units="fraction",
                definition=f"{definition} by IPR of w, by strength ({PAPER}), or the "
                f"mean over {draws}; mu is kept (ours)",
                range="[0, 1]",
                nan_means=_NO_NEURON,
            ),
            "partition_accuracy_interval": self.described(
                ["score", *dims, "bound"],
                interval,
                long_name="accuracy on a share of the neurons, 95% interval",
                units="fraction",
                definition="Clopper-Pearson 95% interval over the pairs of the group (ours)",
                range="[0, 1]",
                nan_means=f"{_NO_NEURON}, or the order is random, whose spread is "
                "partition_random_low to partition_random_high",
            ),
            "partition_n": self.described(
                ["group"],
                n,
                long_name="pairs of the group",
                units="pairs",
                definition="number of the group's pairs",
                range="[0, inf)",
            ),
        }
        for bound, word, extreme in (
            ("low", "smallest", drawn.min(0)),
            ("high", "largest", drawn.max(0)),
        ):
            variables[f"partition_random_{bound}"] = self.described(
                dims,
                extreme,
                long_name=f"{word} accuracy on a random share of the neurons",
                units="fraction",
                definition=f"{definition} in {draws}: the {word} of them",
                range="[0, 1]",
                nan_means=_NO_NEURON,
            )
        labels = axis_labels(score=SCORES, keep=KEPT, group=NOISE_GROUPS, bound=BOUNDS)
        return xr.Dataset(variables, coords=labels).assign_coords(
            share=np.array(self.shares, dtype=np.float64)
        )


def part_predictions(
    net: TwoLayerNet,
    task: ModularArithmetic,
    ranked: Int[Tensor, " neuron"],
    cuts: Int[np.ndarray, "keep share"],
) -> Int[Tensor, "keep share pair"]:
    """What the neurons above, and those below, each cut predict for all pairs.

    Neurons add up in the logits, so that one pass over them gives every part of one ranking: sums
    from the highest rank down, and from the lowest up.

    Args:
        net: The network; mu stays in every part.
        task: Whose pairs are asked.
        ranked: All neurons, from the highest rank to the lowest.
        cuts: How many of them are above each cut: kept in the first row, taken out in the second.
    """
    weights = {name: tensor.detach() for name, tensor in net.named_parameters()}
    residues = torch.from_numpy(task.residues)
    edges = sorted({0, *cuts.flatten().tolist(), net.spec.width})
    added = [
        neuron_logits(
            weights, residues, ranked[low:high].to(net.mu.device), activation=net.activation
        )
        for low, high in pairwise(edges)
    ]
    found = torch.empty((*cuts.shape, task.pairs.n), dtype=torch.int64)
    above, below = edges, edges[::-1]
    for keep, (ends, blocks) in enumerate(((above, added), (below, added[::-1]))):
        logits = net.mu.detach().to(added[0].dtype)[:, None].expand_as(added[0]).clone()
        for end, block in zip(ends, [None, *blocks], strict=True):
            if block is not None:
                logits += block
            places = np.flatnonzero(cuts[keep] == end)
            if len(places):
                found[keep, places] = task.predictions(logits.T.cpu().contiguous())
    return found
