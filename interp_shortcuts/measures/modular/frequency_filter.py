"""Is the rule there under the noise? Networks G and R, each with several activations.

What makes up G and R is in `interventions/spectral.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor

from interp_shortcuts.errors import ConfigError, MeasureError
from interp_shortcuts.interventions.spectral import FilterVariant, FrequencyFilter
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
from interp_shortcuts.models.activations import activation_function
from interp_shortcuts.models.pair_grid import grid_logits
from interp_shortcuts.models.two_layer import TwoLayerNet, two_layer_weights
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.residues import Arithmetic
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.tasks.noisy_task import NOISE_GROUPS

TRAINED = "trained"
"""Label of the activation that the network was trained with."""

_VARIANTS: Mapping[FilterVariant, str] = MappingProxyType({"per vector": "", "joint": " joint"})
NETWORKS = ("full", "G", "R", "G joint", "R joint")
_NETWORKS_SAID = (
    "full: the network; G: of each of u, v and w of a neuron its dominant nonzero frequency; R: "
    "the rest, with mu; G joint, R joint: with one frequency for the three vectors (ours)"
)


class FilteredScores(NamedTuple):
    """How often each filtered network is right, and its losses."""

    right: Int[np.ndarray, "network acting group"]
    loss: Float[np.ndarray, "network acting group"]
    loss_interval: Float[np.ndarray, "network acting group bound"]


@dataclass(frozen=True)
class FrequencyFilterAccuracy(Measure):
    """Accuracy and loss of the network, of G and of R, with several activations, by group.

    One pass over all pairs for each network and activation, from the weights alone: hooks do not
    act, nor does an activation that is swapped at the time.

        found = FrequencyFilterAccuracy()(net, task)
        found.filtered_accuracy.sel(network="G", acting="quadratic", group="test")

    Attributes:
        activations: What the neurons do, besides what they were trained with, which is labelled
            `"trained"`.

    Raises:
        MeasureError: If an activation is unknown or there twice.
    """

    name: ClassVar[str] = "frequency_filter"
    reads: ClassVar[Literal["weights", "activations"]] = "activations"
    constant: ClassVar[frozenset[str]] = frozenset({"filtered_n"})
    asks: ClassVar[type] = ModularArithmetic
    of_model: ClassVar[type] = TwoLayerSpec

    activations: Sequence[str] = ("relu", "quadratic", "reverse_relu")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.activations:
            try:
                activation_function(name)
            except ConfigError as error:
                raise MeasureError(str(error).replace("`activation`", "`activations`")) from error
        if len(set(self.activations)) < len(self.activations):
            raise MeasureError(f"`activations` must be distinct; got {list(self.activations)}.")

    def measure(self, observation: Observation) -> xr.Dataset:
        task = require_modular(observation.task)
        rows = NoiseRows.of(task)
        scores = filtered_scores(observation.two_layer, task, rows, tuple(self.activations))
        dims = ["network", "acting", "group"]
        definition = f"of each network ({_NETWORKS_SAID}) with each activation; {PAPER}"
        return xr.Dataset(
            {
                "filtered_accuracy": self.described(
                    dims,
                    rows.fraction(scores.right),
                    long_name="accuracy of the filtered network",
                    units="fraction",
                    definition="fraction of the group's pairs whose largest logit (ties to the "
                    f"lowest class) is their label, {AGAINST}; {definition}",
                    range="[0, 1]",
                    nan_means=EMPTY,
                ),
                "filtered_accuracy_interval": self.described(
                    [*dims, "bound"],
                    proportion_interval(scores.right, np.broadcast_to(rows.n, scores.right.shape)),
                    long_name="accuracy of the filtered network, 95% interval",
                    units="fraction",
                    definition="Clopper-Pearson 95% interval over the pairs of the group (ours)",
                    range="[0, 1]",
                    nan_means=EMPTY,
                ),
                "filtered_loss": self.described(
                    dims,
                    scores.loss,
                    long_name="loss of the filtered network",
                    units="nats",
                    definition=f"mean over the group's pairs of the cross-entropy {AGAINST}; "
                    f"{definition}",
                    range="[0, inf)",
                    nan_means=EMPTY,
                ),
                "filtered_loss_interval": self.described(
                    [*dims, "bound"],
                    scores.loss_interval,
                    long_name="loss of the filtered network, 95% interval",
                    units="nats",
                    definition="mean -+ 1.96 standard errors over the pairs of the group (ours)",
                    range="(-inf, inf)",
                    nan_means="the group has fewer than two examples",
                ),
                "filtered_n": self.described(
                    ["group"],
                    rows.n,
                    long_name="pairs of the group",
                    units="pairs",
                    definition="number of the group's pairs",
                    range="[0, inf)",
                ),
            },
            coords=axis_labels(
                network=NETWORKS,
                acting=(TRAINED, *self.activations),
                group=NOISE_GROUPS,
                bound=BOUNDS,
            ),
        )


def filtered_scores(
    net: TwoLayerNet, task: ModularArithmetic, rows: NoiseRows, activations: tuple[str, ...]
) -> FilteredScores:
    """The scores of all networks, with the activation of training first.

    Args:
        net: The network; its hooks do not act.
        task: Whose pairs are asked.
        rows: The groups of all its pairs.
        activations: What the neurons do besides.
    """
    residues = torch.from_numpy(task.residues)
    acting = (net.spec.activation, *activations)
    right, losses = [], []
    for weights in filtered_weights(net, task.arithmetic).values():
        on_device = {name: tensor.to(net.mu.device) for name, tensor in weights.items()}
        seen = {}
        for activation in dict.fromkeys(acting):
            logits = grid_logits(on_device, residues, activation=activation).T.cpu().contiguous()
            seen[activation] = rows.right(task.predictions(logits)), rows.losses(task, logits)
        right.append([seen[activation][0] for activation in acting])
        losses.append([seen[activation][1] for activation in acting])
    loss = rows.mean_loss(np.moveaxis(np.array(losses), (0, 1), (-2, -1)))
    return FilteredScores(right=np.array(right), loss=loss.value, loss_interval=loss.interval)


def filtered_weights(net: TwoLayerNet, arithmetic: Arithmetic) -> dict[str, dict[str, Tensor]]:
    """The weights of each of `NETWORKS`, on the CPU; R is what G leaves of them."""
    whole = two_layer_weights(net)
    found = {"full": whole}
    for variant, suffix in _VARIANTS.items():
        g = FrequencyFilter("dominant", variant, arithmetic).weights(net)
        found[f"G{suffix}"] = g
        found[f"R{suffix}"] = {name: whole[name] - kept for name, kept in g.items()}
    return found
