"""How periodic the neurons of a two-layer network are, and how close to the analytic solution.

The transforms themselves are in `models/spectrum.py`. The quantities are those of
arXiv 2605.18022; what the paper leaves open is said with each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from interp_shortcuts.models.spectrum import (
    VECTORS,
    Spectrum,
    inverse_participation,
    neuron_strengths,
)
from interp_shortcuts.residues import Arithmetic

SPECTRA_PAPER = "arXiv:2605.18022"
_NO_FREQUENCY = "no vector that counts has anything at a nonzero frequency"
_ZERO_VECTOR = "the vector is zero at all residues of the circle"
_NO_PHASE = "a vector has nothing at the neuron's joint frequency"


@dataclass(frozen=True)
class NeuronSpectra:
    """Frequencies, concentration, phases, IPR and strength of every neuron; reads weights alone.

        spectra = NeuronSpectra()(net)
        spectra.concentration.sel(vector="w").values

    Attributes:
        arithmetic: The operation that the network was trained on: addition and subtraction go
            round all residues, multiplication round the powers of a primitive root, without zero.
    """

    arithmetic: Arithmetic = "add"

    def __call__(self, model: nn.Module) -> xr.Dataset:
        """The spectra of one network.

        Args:
            model: A `TwoLayerNet` with as many tokens as classes, also a compiled one.

        Returns:
            `power` [vector neuron frequency], `dominant_frequency` and `concentration` [vector
            neuron], `joint_frequency` [neuron], `joint_concentration` and `phase` [vector
            neuron], `phase_error`, `ipr_rfft`, `ipr_fft` and `strength` [neuron]; each with its
            units, definition, range and what NaN means in its attributes.

        Raises:
            ConfigError: If it is no such network, or the operation has no circle at its size.
            MeasureError: If weights are not finite.
        """
        spectrum = Spectrum.of(model, self.arithmetic)
        joint = spectrum.joint.expand_as(spectrum.dominant)
        unembed = spectrum.vectors[2]
        variables = {
            **self._frequencies(spectrum),
            "joint_concentration": _variable(
                ["vector", "neuron"],
                spectrum.share_at(joint),
                "concentration at the joint frequency",
                "1",
                "share of the vector's squared length at the neuron's joint frequency; ours",
                "[0, 1]",
                nan_means=_ZERO_VECTOR,
            ),
            "phase": _variable(
                ["vector", "neuron"],
                spectrum.phases,
                "phase at the joint frequency",
                "rad",
                "angle phi of cos(2 pi k j / n + phi) in the vector, k the joint frequency and j "
                "the place on the circle; the joint frequency is ours",
                "(-pi, pi]",
                nan_means=_NO_PHASE,
            ),
            "phase_error": _variable(
                ["neuron"],
                spectrum.phase_error,
                "phase error",
                "rad",
                "phi_u + phi_v - phi_w (subtraction: phi_u - phi_v - phi_w), wrapped; 0 in the "
                f"analytic solution of {SPECTRA_PAPER}",
                "(-pi, pi]",
                nan_means=_NO_PHASE,
            ),
            "ipr_rfft": _variable(
                ["neuron"],
                inverse_participation(torch.fft.rfft(unembed, dim=-1)),
                "inverse participation ratio of w, by rfft",
                "1",
                f"(|w^|_4 / |w^|_2)^4 with w^ the rfft of w; {SPECTRA_PAPER}. A cosine gives 1",
                "(0, 1]",
                nan_means=_ZERO_VECTOR,
            ),
            "ipr_fft": _variable(
                ["neuron"],
                inverse_participation(torch.fft.fft(unembed, dim=-1)),
                "inverse participation ratio of w, by fft",
                "1",
                f"(|w^|_4 / |w^|_2)^4 with w^ the fft of w; {SPECTRA_PAPER}. A cosine gives 0.5",
                "(0, 1]",
                nan_means=_ZERO_VECTOR,
            ),
            "strength": _variable(
                ["neuron"],
                neuron_strengths(model),
                "strength",
                "logits",
                f"|w|_inf phi(|u|_inf + |v|_inf), {SPECTRA_PAPER}; phi at plus or minus the sum, "
                "whichever is larger (ours)",
                "[0, inf)",
            ),
        }
        return xr.Dataset(
            variables,
            coords={
                "vector": list(VECTORS),
                "neuron": np.arange(unembed.shape[0]),
                "frequency": np.arange(spectrum.power.shape[-1]),
            },
            attrs={"measure": "NeuronSpectra", "arithmetic": self.arithmetic},
        )

    @staticmethod
    def _frequencies(spectrum: Spectrum) -> dict[str, xr.Variable]:
        turns = f"[1, {spectrum.n_places // 2}]"
        nothing = spectrum.has_nothing_at(spectrum.dominant)
        return {
            "power": _variable(
                ["vector", "neuron", "frequency"],
                spectrum.power,
                "power",
                "1",
                "part of the vector's squared length at each frequency; the parts sum to it",
                "[0, inf)",
            ),
            "dominant_frequency": _variable(
                ["vector", "neuron"],
                torch.where(nothing, torch.nan, spectrum.dominant.double()),
                "dominant frequency",
                "turns a circle",
                f"nonzero frequency of the largest power; {SPECTRA_PAPER}",
                turns,
                nan_means=_NO_FREQUENCY,
            ),
            "concentration": _variable(
                ["vector", "neuron"],
                spectrum.share_at(spectrum.dominant),
                "concentration",
                "1",
                "share of the vector's squared length at its dominant frequency",
                "[0, 1]",
                nan_means=_ZERO_VECTOR,
            ),
            "joint_frequency": _variable(
                ["neuron"],
                torch.where(nothing.all(0), torch.nan, spectrum.joint.double()),
                "joint frequency",
                "turns a circle",
                "nonzero frequency of the largest power summed over u, v and w; ours",
                turns,
                nan_means=_NO_FREQUENCY,
            ),
        }


def _variable(
    dims: list[str],
    values: Tensor,
    long_name: str,
    units: str,
    definition: str,
    range: str,
    *,
    nan_means: str = "never NaN",
) -> xr.Variable:
    array = values.numpy()
    if array.dtype.kind == "f":
        array = array.astype(np.float32)
    attrs = {
        "long_name": long_name,
        "units": units,
        "definition": definition,
        "range": range,
        "nan_means": nan_means,
        "measure": "NeuronSpectra",
    }
    return xr.Variable(tuple(dims), array, attrs)
