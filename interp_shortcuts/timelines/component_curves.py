"""Which curves are read from a timeline to date changes: of which components, on what, when.

Circuit measures (fingerprints) are read for heads; causal measures for heads, MLPs and sets of
them. What the curves mean is read in `circuit_events` and `carriers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import xarray as xr
from jaxtyping import Float64, Int64

from interp_shortcuts.timelines.layout import measured_part

SPLIT = "validation"
"""The split on which circuit measures that have one are read."""
DIRECTION = "validation<-adversarial"
"""The direction (target<-source) in which transfers are read: there rule and shortcut agree in the
target, and the source says which of the two moves the prediction."""
ABLATION = "mean"
"""The ablation whose effect is dated."""

QK_MEASURES = ("qk_spearman", "qk_spearman_activation")
OV_MEASURES = ("ov_spearman", "ov_class_fraction")


@dataclass(frozen=True)
class Reading:
    """What is read of one variable.

    Attributes:
        measure: The variable.
        labels: The label that is read of each dim; dims that the variable lacks do not count.
    """

    measure: str
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def on(self) -> str:
        """The split, or the direction of patching, that is read; empty if neither applies."""
        return self.labels.get("split", self.labels.get("direction", ""))


CIRCUIT_READINGS = tuple(
    Reading(measure, {"split": SPLIT})
    for measure in (*QK_MEASURES, "attention_to_max", *OV_MEASURES)
)
TRANSFER_READINGS = tuple(
    Reading(measure, {"direction": DIRECTION})
    for measure in ("rule_transfer", "shortcut_transfer", "disruption")
)
CAUSAL_READINGS = (
    *TRANSFER_READINGS[:2],
    *(
        Reading("ablation_accuracy_drop", {"ablation": ABLATION, "split": split})
        for split in ("adversarial", "validation")
    ),
)
"""The variables whose changes are dated; `disruption` only says how to read the transfers."""


@dataclass(frozen=True)
class ComponentCurve:
    """One measure of one component at the steps where it was measured; undefined is NaN."""

    component: str
    measure: str
    feature: str
    split: str
    steps: Int64[np.ndarray, " step"]
    values: Float64[np.ndarray, " step"]


def component_curves(data: xr.Dataset, reading: Reading) -> Iterator[ComponentCurve]:
    """The curve of each component; none if the variable or one of its labels was not measured.

    A variable with several features is read for the first it was measured for. Causal measures may
    be taken at some steps only: a step at which no component has a value was not measured.
    """
    if reading.measure not in data or "step" not in data[reading.measure].coords:
        return
    array = measured_part(data[reading.measure])
    feature, labels = "", {}
    if "feature" in array.dims:
        if not array.sizes["feature"]:
            return
        array = array.isel(feature=0)
        feature = str(array["feature"].item())
    for dim, label in reading.labels.items():
        if dim in array.dims:
            if label not in array[dim]:
                return
            array, labels[dim] = array.sel({dim: label}), label
    split = Reading(reading.measure, labels).on
    steps = array["step"].to_numpy().astype(np.int64)
    if set(array.dims) == {"step", "component"}:
        table = array.transpose("component", "step").to_numpy().astype(np.float64)
        taken = np.flatnonzero(np.isfinite(table).any(axis=0))
        for component, values in zip(array["component"].to_numpy(), table, strict=True):
            yield ComponentCurve(
                str(component), reading.measure, feature, split, steps[taken], values[taken]
            )
    elif set(array.dims) == {"step", "layer", "head"}:
        for layer in array["layer"].to_numpy():
            for head in array["head"].to_numpy():
                values = array.sel(layer=layer, head=head).to_numpy().astype(np.float64)
                yield ComponentCurve(
                    f"L{layer}.H{head}", reading.measure, feature, split, steps, values
                )
