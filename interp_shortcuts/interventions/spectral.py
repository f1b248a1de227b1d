"""Networks split by frequency: what is periodic in the residues, and what is not.

The dominant frequency of every weight vector makes up the generalising network G, all else the
rest R, as in arXiv 2605.18022. Transforms are in `models/spectrum.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.interventions.network_part import NetworkPart, check_choice
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.models.spectrum import (
    Spectrum,
    frequency_power,
    places_of,
    with_frequencies,
)
from interp_shortcuts.models.two_layer import TwoLayerNet, two_layer_weights
from interp_shortcuts.models.unembedding import Unembedding, unembedding_of, with_unembedding
from interp_shortcuts.residues import Arithmetic

KeptFrequencies = Literal["dominant", "rest"]
FilterVariant = Literal["per vector", "joint"]


@dataclass(frozen=True)
class FrequencyFilter(NetworkPart):
    """One frequency of every neuron's vectors (network G), or everything else (network R).

    G holds, of each u_m, v_m and w_m, the component at its dominant nonzero frequency. R holds
    the rest: all other frequencies, the constant one among them, mu, and for multiplication the
    entries of zero, which is not on the circle. The weights of G and of R sum to the network's,
    up to one rounding.

    Attributes:
        keep: `"dominant"` gives G, `"rest"` gives R.
        variant: `"per vector"`, the paper's: each vector has a dominant frequency of its own;
            `"joint"`: one for the neuron, that of the largest power summed over its vectors.
        arithmetic: The operation that the network was trained on, whose circle is used; addition
            and subtraction have the same.

    Raises:
        InterventionError: If a field is not one of its choices.
    """

    keep: KeptFrequencies | str = "dominant"
    variant: FilterVariant | str = "per vector"
    arithmetic: Arithmetic = "add"

    def __post_init__(self) -> None:
        check_choice("keep", self.keep, get_args(KeptFrequencies))
        check_choice("variant", self.variant, get_args(FilterVariant))
        check_choice("arithmetic", self.arithmetic, get_args(Arithmetic))

    def kept(self, spectrum: Spectrum) -> Bool[Tensor, "vector neuron frequency"]:
        """Which frequencies are the network G's."""
        dominant = spectrum.dominant
        if self.variant == "joint":
            dominant = spectrum.joint.expand_as(dominant)
        return torch.arange(spectrum.power.shape[-1]) == dominant[..., None]

    def weights(self, net: TwoLayerNet) -> dict[str, Tensor]:
        """Of every parameter, what G or R has of it, in float32 at least."""
        spectrum = Spectrum.of(net, self.arithmetic)
        places = places_of(self.arithmetic, net.spec.n_tokens)
        u, v, w = with_frequencies(spectrum.vectors, self.kept(spectrum))
        wide = torch.promote_types(net.mu.dtype, torch.float32)
        whole = {name: tensor.to(wide) for name, tensor in two_layer_weights(net).items()}
        periodic = {name: torch.zeros_like(tensor) for name, tensor in whole.items()}
        periodic["U"][places] = u.T.to(whole["U"].dtype)
        periodic["W"][:, places] = w.to(whole["W"].dtype)
        if not net.spec.tied:
            periodic["V"][places] = v.T.to(whole["V"].dtype)
        if self.keep == "dominant":
            return periodic
        return {name: tensor - periodic[name] for name, tensor in whole.items()}

    def describe(self) -> dict[str, Any]:
        """The filter in words, fit for JSON."""
        return {
            "part": "FrequencyFilter",
            "acts on": "U, V and W along the residues; mu goes with the rest",
            "keep": self.keep,
            "variant": self.variant,
            "arithmetic": self.arithmetic,
        }


def unembedding_frequencies(
    model: nn.Module, k: int, *, arithmetic: Arithmetic = "add"
) -> Int[Tensor, " kept"]:
    """The k nonzero frequencies that hold most of a transformer's unembedding.

    By the power of W_U along the classes, summed over the residual stream; among equals the
    lowest first.

    Args:
        model: A `HookedTransformer` whose classes are residues, also a compiled one.
        k: How many.
        arithmetic: The operation that it was trained on.

    Raises:
        InterventionError: If k is not from 1 to the number of nonzero frequencies.
    """
    matrix = unembedding_of(model).matrix
    on_circle = matrix[:, places_of(arithmetic, matrix.shape[1])]
    n_places = on_circle.shape[1]
    if not 1 <= k <= n_places // 2:
        raise InterventionError(
            f"`k` must be from 1 to {n_places // 2}, the number of nonzero frequencies of "
            f"{n_places} residues; got {k}."
        )
    power = frequency_power(torch.fft.rfft(on_circle, dim=-1), n_places).sum(0)
    return torch.argsort(power[1:], descending=True, stable=True)[:k] + 1


def filter_unembedding(
    model: nn.Module, k: int, *, keep: KeptFrequencies = "dominant", arithmetic: Arithmetic = "add"
) -> HookedTransformer:
    """A transformer with the k strongest frequencies of its unembedding, or with all others.

    The counterpart of `FrequencyFilter` for a transformer that was trained on pairs of residues.
    b_U, the constant frequency and for multiplication the column of zero go with the rest. The
    constant frequency adds the same to all logits on the circle.

    Args:
        model: A `HookedTransformer` whose classes are residues, also a compiled one; it is left
            as it is.
        k: Number of nonzero frequencies, those of `unembedding_frequencies`.
        keep: `"dominant"` keeps those k, `"rest"` everything else.
        arithmetic: The operation that it was trained on.

    Returns:
        A new model in eval mode, with the dtype and device of the given one.

    Raises:
        InterventionError: If k is not from 1 to the number of nonzero frequencies, or `keep` is
            not one of its choices.
    """
    check_choice("keep", keep, get_args(KeptFrequencies))
    whole = unembedding_of(model)
    places = places_of(arithmetic, whole.matrix.shape[1])
    kept = torch.zeros(len(places) // 2 + 1, dtype=torch.bool)
    kept[unembedding_frequencies(model, k, arithmetic=arithmetic)] = True
    on_circle = whole.matrix[:, places]
    periodic = Unembedding(torch.zeros_like(whole.matrix), torch.zeros_like(whole.bias))
    periodic.matrix[:, places] = with_frequencies(on_circle, kept.expand(len(on_circle), -1))
    rest = Unembedding(whole.matrix - periodic.matrix, whole.bias)
    return with_unembedding(model, periodic if keep == "dominant" else rest)
