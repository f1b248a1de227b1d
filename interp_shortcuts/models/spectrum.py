"""The weights of a two-layer network by frequency: Fourier transforms round a circle of residues.

The circle (`interp_shortcuts.residues.circle`) is n residues in the order in which the operation
turns them: n = P, or P - 1 for multiplication, where zero stays apart. Everything is computed in
float64. Frequencies are 0 to n // 2, in whole turns a circle.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Complex, Float, Int
from torch import Tensor, nn

from interp_shortcuts.errors import ConfigError, MeasureError
from interp_shortcuts.models.activations import activation_function
from interp_shortcuts.models.two_layer import two_layer_of
from interp_shortcuts.residues import Arithmetic, circle, turn

VECTORS = ("u", "v", "w")

_NOTHING = 1e-12  # share of a squared length: above rounding in float32, below all else


def places_of(arithmetic: Arithmetic, n_residues: int) -> Int[Tensor, " place"]:
    """The circle as a tensor of residues.

    Raises:
        ConfigError: If the operation has no circle there, or one without a nonzero frequency.
    """
    places = torch.from_numpy(circle(arithmetic, n_residues))
    if len(places) < 2:
        raise ConfigError(
            f"`arithmetic` {arithmetic!r} modulo {n_residues} has a circle of {len(places)} "
            "residue, which has no frequency; at least 2 are needed."
        )
    return places


def frequency_power(
    coefficients: Complex[Tensor, "*batch frequency"], n_places: int
) -> Float[Tensor, "*batch frequency"]:
    """The part of a vector's squared length at each frequency; the parts sum to it (Parseval).

    |x^_k|^2 / n, doubled where a frequency has a mirror image: everywhere but at 0 and n / 2.
    """
    doubled = torch.full((n_places // 2 + 1,), 2.0, dtype=torch.float64)
    doubled[0] = 1
    if n_places % 2 == 0:
        doubled[-1] = 1
    return doubled * coefficients.abs().square() / n_places


def with_frequencies(
    vectors: Float[Tensor, "*batch place"], kept: Bool[Tensor, "*batch frequency"]
) -> Float[Tensor, "*batch place"]:
    """The vectors with the chosen frequencies alone."""
    coefficients = torch.fft.rfft(vectors, dim=-1)
    masked = torch.where(kept, coefficients, torch.zeros_like(coefficients))
    return torch.fft.irfft(masked, n=vectors.shape[-1], dim=-1)


def dominant_frequencies(
    power: Float[Tensor, "*batch frequency"],
) -> Int[Tensor, "*batch"]:
    """The nonzero frequency of the largest power; among equals the lowest."""
    return power[..., 1:].argmax(dim=-1) + 1


def inverse_participation(
    coefficients: Complex[Tensor, "*batch frequency"],
) -> Float[Tensor, "*batch"]:
    """(|x|_4 / |x|_2)^4 of Fourier coefficients: 1 for a single one, 1/n for n equal ones.

    NaN where all are zero.
    """
    power = coefficients.abs().square()
    scaled = power / power.amax(dim=-1, keepdim=True)  # fourth powers of small weights underflow
    return scaled.square().sum(-1) / scaled.sum(-1).square()


def wrapped(angles: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Angles in radians, brought into (-pi, pi]."""
    return -torch.remainder(-angles + torch.pi, 2 * torch.pi) + torch.pi


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The vectors u_m, v_m and w_m of every neuron round the circle.

    Attributes:
        vectors: Their entries at the places of the circle, float64.
        arithmetic: The operation whose circle it is.
    """

    vectors: Float[Tensor, "vector neuron place"]
    arithmetic: Arithmetic

    @classmethod
    def of(cls, model: nn.Module, arithmetic: Arithmetic) -> Spectrum:
        """The spectrum of a network's weights.

        Args:
            model: A `TwoLayerNet` with as many tokens as classes.
            arithmetic: The operation that it was trained on.

        Raises:
            ConfigError: If it is no such network, or the operation has no circle at its size.
            MeasureError: If weights are not finite.
        """
        net = two_layer_of(model)
        if net.spec.n_tokens != net.spec.n_classes:
            raise ConfigError(
                f"`n_tokens` (={net.spec.n_tokens}) must equal `n_classes` "
                f"(={net.spec.n_classes}) for tokens and classes to be the same residues."
            )
        places = places_of(arithmetic, net.spec.n_tokens)
        stacked = torch.stack([net.U.detach().T, net.V.detach().T, net.W.detach()])
        vectors = stacked.cpu().double()
        if not torch.isfinite(vectors).all():
            raise MeasureError("weights must be finite; U, V or W hold NaN or infinity.")
        return cls(vectors[..., places], arithmetic)

    @property
    def n_places(self) -> int:
        """Number n of residues on the circle."""
        return self.vectors.shape[-1]

    @cached_property
    def coefficients(self) -> Complex[Tensor, "vector neuron frequency"]:
        """x^_k = sum over places j of x_j exp(-2 pi i k j / n), for k = 0 to n // 2 (rfft)."""
        return torch.fft.rfft(self.vectors, dim=-1)

    @cached_property
    def power(self) -> Float[Tensor, "vector neuron frequency"]:
        """The part of each vector's squared length at each frequency; see `frequency_power`."""
        return frequency_power(self.coefficients, self.n_places)

    @cached_property
    def dominant(self) -> Int[Tensor, "vector neuron"]:
        """The dominant nonzero frequency of each vector; 1 where it `has_nothing_at` any."""
        return dominant_frequencies(self.power)

    @cached_property
    def joint(self) -> Int[Tensor, " neuron"]:
        """The nonzero frequency with the largest power summed over the neuron's three vectors."""
        return dominant_frequencies(self.power.sum(0))

    def share_at(self, frequencies: Int[Tensor, "vector neuron"]) -> Float[Tensor, "vector neuron"]:
        """The share of each vector's squared length at one frequency, in [0, 1].

        NaN for a vector of zeros.
        """
        at = self.power.gather(-1, frequencies[..., None])[..., 0]
        return at / self.power.sum(-1)

    def has_nothing_at(
        self, frequencies: Int[Tensor, "vector neuron"]
    ) -> Bool[Tensor, "vector neuron"]:
        """Whether a vector is zero, or has no more than rounding at one frequency."""
        return ~(self.share_at(frequencies) > _NOTHING)

    @cached_property
    def phases(self) -> Float[Tensor, "vector neuron"]:
        """The angle phi of cos(2 pi k j / n + phi) in each vector, k the neuron's joint frequency.

        In radians, in (-pi, pi]; NaN where the vector has nothing at that frequency.
        """
        joint = self.joint.expand_as(self.dominant)
        angles = self.coefficients.gather(-1, joint[..., None])[..., 0].angle()
        return torch.where(self.has_nothing_at(joint), torch.nan, angles)

    @cached_property
    def phase_error(self) -> Float[Tensor, " neuron"]:
        """phi_u + phi_v - phi_w, for subtraction phi_u - phi_v - phi_w, in (-pi, pi].

        Zero in the analytic solution of arXiv 2605.18022; NaN where a phase is.
        """
        first, second, out = self.phases
        return wrapped(first + turn(self.arithmetic) * second - out)


def neuron_strengths(model: nn.Module) -> Float[Tensor, " neuron"]:
    """|w_m|_inf phi(|u_m|_inf + |v_m|_inf), the most that a neuron can add to a logit; float64.

    From arXiv 2605.18022. **Ours**: phi is taken at plus and at minus the sum, and the larger
    value counts. It is the paper's number for all activations but reverse ReLU, for which the
    paper's would be zero for every neuron. The activation is the one that acts now.
    """
    net = two_layer_of(model)
    first, second = (matrix.detach().cpu().double().abs().amax(0) for matrix in (net.U, net.V))
    phi = activation_function(net.activation)
    reach = torch.maximum(phi(first + second), phi(-first - second))
    return net.W.detach().cpu().double().abs().amax(1) * reach
