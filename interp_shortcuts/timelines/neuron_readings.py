"""What is read of the neurons' spectra for pictures: states, counts and sorted spectra.

The spectra themselves are measured in `measures/modular`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from interp_shortcuts.timelines.layout import measured_part

NEURON_VARIABLES = ("dominant_frequency", "concentration", "joint_frequency")


@dataclass(frozen=True, eq=False)
class NeuronStates:
    """Every neuron at every step where the spectra were measured.

    Attributes:
        steps: Training steps.
        vectors: The names of the three vectors of a neuron.
        neurons: The numbers of the neurons.
        dominant: Dominant frequency of each vector, in turns a circle; NaN for a zero vector.
        concentration: Share of the squared length at that frequency, in [0, 1].
        joint: Joint frequency of each neuron.
        phase_error: Phase error, in radians; NaN where it is undefined or was not measured.
    """

    steps: tuple[int, ...]
    vectors: tuple[str, ...]
    neurons: tuple[int, ...]
    dominant: Float[np.ndarray, "step vector neuron"]
    concentration: Float[np.ndarray, "step vector neuron"]
    joint: Float[np.ndarray, "step neuron"]
    phase_error: Float[np.ndarray, "step neuron"]

    @property
    def last_frequency(self) -> int:
        """The largest frequency at which any neuron is; 0 for none."""
        known = np.concatenate([self.dominant.ravel(), self.joint.ravel()])
        known = known[np.isfinite(known)]
        return int(known.max()) if known.size else 0

    @property
    def counts(self) -> Int[np.ndarray, "step frequency"]:
        """How many neurons have each joint frequency, from 0 to the largest."""
        size = self.last_frequency + 1
        return np.stack(
            [np.bincount(row[np.isfinite(row)].astype(int), minlength=size) for row in self.joint]
        )


@dataclass(frozen=True, eq=False)
class SortedSpectra:
    """The spectrum of each neuron's vectors at one step, the neurons by their joint frequency.

    Attributes:
        step: The training step.
        vectors: The names of the three vectors.
        neurons: The numbers of the neurons, by joint frequency, then by concentration; neurons
            without a frequency last.
        joint: Their joint frequencies.
        share: Share of the vector's squared length at each frequency; NaN for a zero vector.
    """

    step: int
    vectors: tuple[str, ...]
    neurons: tuple[int, ...]
    joint: Float[np.ndarray, " neuron"]
    share: Float[np.ndarray, "vector neuron frequency"]


def missing_for_neurons(data: xr.Dataset, *also: str) -> str:
    """Why the states of neurons cannot be read; empty if they can.

    Args:
        data: A timeline's dataset.
        also: Further variables that are needed.
    """
    missing = [name for name in (*NEURON_VARIABLES, *also) if name not in data]
    if missing:
        return f"{', '.join(missing)} {'was' if len(missing) == 1 else 'were'} not measured"
    steps = measured_part(data["joint_frequency"]).sizes["step"]
    return "" if steps else "the spectra were measured at no step"


def neuron_states(data: xr.Dataset) -> NeuronStates:
    """The states of a timeline of which `missing_for_neurons` says that they can be read."""
    dominant, concentration = (
        measured_part(data[name]).transpose("step", "vector", "neuron")
        for name in ("dominant_frequency", "concentration")
    )
    joint = measured_part(data["joint_frequency"]).transpose("step", "neuron")
    if "phase_error" in data:
        error = measured_part(data["phase_error"]).transpose("step", "neuron").to_numpy()
    else:
        error = np.full(joint.shape, np.nan)
    return NeuronStates(
        steps=tuple(int(step) for step in joint["step"].to_numpy()),
        vectors=tuple(str(name) for name in dominant["vector"].to_numpy()),
        neurons=tuple(int(number) for number in joint["neuron"].to_numpy()),
        dominant=dominant.to_numpy().astype(np.float64),
        concentration=concentration.to_numpy().astype(np.float64),
        joint=joint.to_numpy().astype(np.float64),
        phase_error=error.astype(np.float64),
    )


def sorted_spectra(data: xr.Dataset) -> SortedSpectra:
    """The spectra at the last step where `power` was measured, for a picture of all neurons."""
    power = measured_part(data["power"]).transpose("step", "vector", "neuron", "frequency")
    last = power.isel(step=-1)
    step = int(last["step"])
    joint = measured_part(data["joint_frequency"]).sel(step=step).to_numpy().astype(np.float64)
    sure = measured_part(data["concentration"]).sel(step=step).transpose("vector", "neuron")
    sure = np.nan_to_num(sure.to_numpy().astype(np.float64)).mean(axis=0)
    order = np.lexsort((-sure, joint))  # NaN sorts last
    values = last.to_numpy().astype(np.float64)[:, order]
    total = values.sum(axis=-1, keepdims=True)
    share = np.divide(values, total, out=np.full(values.shape, np.nan), where=total > 0)
    numbers = last["neuron"].to_numpy()
    return SortedSpectra(
        step=step,
        vectors=tuple(str(name) for name in last["vector"].to_numpy()),
        neurons=tuple(int(numbers[place]) for place in order),
        joint=joint[order],
        share=share,
    )
