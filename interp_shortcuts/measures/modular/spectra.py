"""How periodic the neurons of a two-layer network are, and how close to the analytic solution.

The transforms themselves are in `models/spectrum.py`. The quantities are those of
arXiv 2605.18022; what the paper leaves open is said with each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import xarray as xr

from interp_shortcuts.measures.base import Measure, axis_labels
from interp_shortcuts.measures.modular.noise_rows import PAPER, require_modular
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.spectrum import (
    VECTORS,
    Spectrum,
    inverse_participation,
    neuron_strengths,
)
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.tasks.modular import ModularArithmetic

CONVENTIONS = ("rfft", "fft")
_NO_FREQUENCY = "no vector that counts has anything at a nonzero frequency"
_ZERO_VECTOR = "the vector is zero at all residues of the circle"
_NO_PHASE = "a vector has nothing at the neuron's joint frequency"


@dataclass(frozen=True)
class NeuronSpectra(Measure):
    """Frequencies, concentration, phases, IPR and strength of every neuron; reads weights alone.

    Frequencies are whole turns of the circle on which the task's operation is a rotation: all
    residues for addition and subtraction, the powers of a primitive root for multiplication. The
    strength is that with the activation that acts, also when it is swapped.

        spectra = NeuronSpectra()(net, task)
        spectra.concentration.sel(vector="w").values
    """

    name: ClassVar[str] = "neuron_spectra"
    reads: ClassVar[Literal["weights", "activations"]] = "weights"
    asks: ClassVar[type] = ModularArithmetic
    of_model: ClassVar[type] = TwoLayerSpec

    def measure(self, observation: Observation) -> xr.Dataset:
        net = observation.two_layer
        spectrum = Spectrum.of(net, require_modular(observation.task).arithmetic)
        variables = {
            **self._frequencies(spectrum),
            **self._phases(spectrum),
            **self._participation(spectrum),
            "strength": self.described(
                ["neuron"],
                neuron_strengths(net).numpy(),
                long_name="strength",
                units="logits",
                definition=f"|w|_inf phi(|u|_inf + |v|_inf), {PAPER}; phi at plus or minus "
                "the sum, whichever is larger (ours)",
                range="[0, inf)",
            ),
        }
        return xr.Dataset(
            variables,
            coords=axis_labels(
                vector=VECTORS,
                convention=CONVENTIONS,
                neuron=net.spec.width,
                frequency=spectrum.power.shape[-1],
            ),
        )

    def _frequencies(self, spectrum: Spectrum) -> dict[str, xr.Variable]:
        turns = f"[1, {spectrum.n_places // 2}]"
        nothing = spectrum.has_nothing_at(spectrum.dominant)
        return {
            "power": self.described(
                ["vector", "neuron", "frequency"],
                spectrum.power.numpy(),
                long_name="power",
                units="1",
                definition="part of the vector's squared length round the circle at each "
                "frequency; the parts sum to it (Parseval)",
                range="[0, inf)",
            ),
            "dominant_frequency": self.described(
                ["vector", "neuron"],
                torch.where(nothing, torch.nan, spectrum.dominant.double()).numpy(),
                long_name="dominant frequency",
                units="turns a circle",
                definition=f"nonzero frequency of the largest power; {PAPER}",
                range=turns,
                nan_means=_NO_FREQUENCY,
            ),
            "concentration": self.described(
                ["vector", "neuron"],
                spectrum.share_at(spectrum.dominant).numpy(),
                long_name="concentration",
                units="1",
                definition="share of the vector's squared length at its dominant frequency (ours)",
                range="[0, 1]",
                nan_means=_ZERO_VECTOR,
            ),
            "joint_frequency": self.described(
                ["neuron"],
                torch.where(nothing.all(0), torch.nan, spectrum.joint.double()).numpy(),
                long_name="joint frequency",
                units="turns a circle",
                definition="nonzero frequency of the largest power summed over u, v and w (ours)",
                range=turns,
                nan_means=_NO_FREQUENCY,
            ),
            "joint_concentration": self.described(
                ["vector", "neuron"],
                spectrum.share_at(spectrum.joint.expand_as(spectrum.dominant)).numpy(),
                long_name="concentration at the joint frequency",
                units="1",
                definition="share of the vector's squared length at the neuron's joint frequency "
                "(ours)",
                range="[0, 1]",
                nan_means=_ZERO_VECTOR,
            ),
        }

    def _phases(self, spectrum: Spectrum) -> dict[str, xr.Variable]:
        return {
            "phase": self.described(
                ["vector", "neuron"],
                spectrum.phases.numpy(),
                long_name="phase at the joint frequency",
                units="rad",
                definition="angle phi of cos(2 pi k j / n + phi) in the vector, k the joint "
                "frequency and j the place on the circle; the joint frequency is ours",
                range="(-pi, pi]",
                nan_means=_NO_PHASE,
            ),
            "phase_error": self.described(
                ["neuron"],
                spectrum.phase_error.numpy(),
                long_name="phase error",
                units="rad",
                definition="phi_u + phi_v - phi_w (subtraction: phi_u - phi_v - phi_w), wrapped; 0 "
                f"in the analytic solution of {PAPER}",
                range="(-pi, pi]",
                nan_means=_NO_PHASE,
            ),
        }

    def _participation(self, spectrum: Spectrum) -> dict[str, xr.Variable]:
        unembed = spectrum.vectors[2]
        both = (torch.fft.rfft(unembed, dim=-1), torch.fft.fft(unembed, dim=-1))
        return {
            "ipr": self.described(
                ["convention", "neuron"],
                torch.stack([inverse_participation(each) for each in both]).numpy(),
                long_name="inverse participation ratio of w",
                units="1",
                definition=f"(|w^|_4 / |w^|_2)^4 with w^ the Fourier transform of w, "
                f"{PAPER}; by rfft a cosine gives 1, by fft, with mirror images, 0.5",
                range="(0, 1]",
                nan_means=_ZERO_VECTOR,
            ),
        }
