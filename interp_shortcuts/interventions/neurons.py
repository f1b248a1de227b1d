"""Networks split by neuron: those that rank high by a score, and those that rank low.

From arXiv 2605.18022, where the generalising neurons are those of high inverse participation
ratio or strength, and with random neurons as a control.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.interventions.network_part import NetworkPart, check_choice
from interp_shortcuts.models.spectrum import Spectrum, inverse_participation, neuron_strengths
from interp_shortcuts.models.two_layer import TwoLayerNet, two_layer_weights
from interp_shortcuts.residues import Arithmetic
from interp_shortcuts.streams import numpy_stream

NeuronScore = Literal["ipr", "strength", "random"]
KeptNeurons = Literal["top", "bottom"]
BiasPolicy = Literal["kept", "zero"]


@dataclass(frozen=True)
class NeuronPartition(NetworkPart):
    """The top or the bottom share of the neurons; the others are set to zero in U, V and W.

    Shares that sum to 1 part the neurons exactly: round(share * M) at the top, the rest of M at
    the bottom.

    Attributes:
        score: `"ipr"`, of w_m along the circle; `"strength"`, see `neuron_strengths`; or
            `"random"`, an order from the stream `("neurons", "random")`, the control. A neuron
            whose ratio is undefined, since its w_m is zero, ranks last; equals rank by number.
        share: The share gamma of the neurons that is kept, in (0, 1].
        keep: `"top"` gives the generalising network, `"bottom"` the memorising one.
        arithmetic: The operation that the network was trained on; `"ipr"` alone reads it.
        bias: Whether mu is `"kept"`, in both networks, or `"zero"`. **Ours**: the paper does not
            say.
        seed: Seed of the random order.

    Raises:
        InterventionError: If a field is not one of its choices, or the share is out of its range.
    """

    score: NeuronScore | str
    share: float | int
    keep: KeptNeurons | str = "top"
    arithmetic: Arithmetic = "add"
    bias: BiasPolicy | str = "kept"
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("score", self.score, get_args(NeuronScore))
        check_choice("keep", self.keep, get_args(KeptNeurons))
        check_choice("arithmetic", self.arithmetic, get_args(Arithmetic))
        check_choice("bias", self.bias, get_args(BiasPolicy))
        if not 0 < self.share <= 1:
            raise InterventionError(f"`share` must be in (0, 1]; got {self.share}.")

    def scores(self, net: TwoLayerNet) -> Float[Tensor, " neuron"]:
        """The score of every neuron; larger ranks higher, and NaN last."""
        if self.score == "ipr":
            return inverse_participation(Spectrum.of(net, self.arithmetic).coefficients[2])
        if self.score == "strength":
            return neuron_strengths(net)
        order = numpy_stream(self.seed, "neurons", "random").permutation(net.spec.width)
        return torch.from_numpy(order).double()

    def ranked(self, net: TwoLayerNet) -> Int[Tensor, " neuron"]:
        """The numbers of all neurons, from the highest rank to the lowest."""
        scores = torch.nan_to_num(self.scores(net), nan=-1.0)  # scores are never below 0
        return torch.argsort(scores, descending=True, stable=True)

    def n_above(self, width: int) -> int:
        """How many of the ranked neurons are above the cut: the kept ones of `"top"`."""
        exact = (self.share if self.keep == "top" else 1 - self.share) * width
        return round(round(exact, 6))  # so that 3.4999999 and 3.5 are the same share

    def chosen(self, net: TwoLayerNet) -> Int[Tensor, " kept"]:
        """The numbers of the neurons that are kept, from the highest rank to the lowest.

        Raises:
            InterventionError: If the share comes to no neuron.
        """
        width = net.spec.width
        ranked, above = self.ranked(net), self.n_above(width)
        found = ranked[:above] if self.keep == "top" else ranked[above:]
        if not len(found):
            raise InterventionError(
                f"`share` (={self.share}) must come to at least one of the {width} neurons; it "
                "comes to none."
            )
        return found

    def weights(self, net: TwoLayerNet) -> dict[str, Tensor]:
        """The weights with the neurons that are not kept set to zero."""
        others = torch.ones(net.spec.width, dtype=torch.bool)
        others[self.chosen(net)] = False
        kept = two_layer_weights(net)
        for name in kept.keys() & {"U", "V"}:
            kept[name][:, others] = 0
        kept["W"][others] = 0
        if self.bias == "zero":
            kept["mu"].zero_()
        return kept

    def describe(self) -> dict[str, Any]:
        """The partition in words and numbers, fit for JSON."""
        said: dict[str, Any] = {
            "part": "NeuronPartition",
            "acts on": "neurons: columns of U and V, rows of W",
            "score": self.score,
            "share": float(self.share),
            "keep": self.keep,
            "bias": self.bias,
        }
        if self.score == "ipr":
            said["arithmetic"] = self.arithmetic
        if self.score == "random":
            said["seed"] = self.seed
        return said
