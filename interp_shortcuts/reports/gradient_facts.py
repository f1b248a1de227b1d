"""The facts of the gradient section: ratio, floor, excess, cosine and shares at the run's events.

Values are those measured at the evaluation nearest to each event; nothing is computed here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from interp_shortcuts.plots.panel_lines import why_missing
from interp_shortcuts.timelines.layout import measured_part
from interp_shortcuts.timelines.phases import Phases

_PART = "model"
_WANTED = ("gradient_amplification", "gradient_excess", "gradient_cosine")


def gradient_facts(data: xr.Dataset, phases: Phases) -> dict[str, Any]:
    """Gradients of the whole model at each dated event and at the end.

    Returns:
        `missing` (the reason why there is nothing; else empty), `floor` and `rows`, by step: what
        happened, its step, the step of the nearest measurement, and the values there.
    """
    found: dict[str, Any] = {"missing": "", "floor": None, "rows": []}
    for name in _WANTED:
        reason = why_missing(data, name, "GradientConflict")
        if reason is None and _PART not in measured_part(data[name])["part"]:
            reason = f"the part {_PART!r} was not measured"
        if reason:
            return found | {"missing": reason}
    if "gradient_amplification_floor" in data:
        found["floor"] = float(data["gradient_amplification_floor"])
    measured = measured_part(data["gradient_amplification"])["step"].values
    moments = [(event.name, event.step) for event in phases.events if event.step is not None]
    moments.append(("last evaluation", int(data["step"].values[-1])))
    for moment, step in sorted(moments, key=lambda pair: pair[1]):
        nearest = int(measured[np.argmin(np.abs(measured - step))])
        row: dict[str, Any] = {"moment": moment, "step": step, "measured_at": nearest}
        for name in _WANTED:
            value = measured_part(data[name]).sel(part=_PART, step=nearest)
            row[name.removeprefix("gradient_")] = float(value)
        row["share"] = _by_group(data, "gradient_share", nearest, part=_PART)
        row["example_norm"] = _by_group(data, "gradient_example_norm", nearest)
        found["rows"].append(row)
    return found


def _by_group(data: xr.Dataset, name: str, step: int, **where: str) -> dict[str, float | None]:
    """The values of both groups; None where there are none."""
    nothing: dict[str, float | None] = {"consistent": None, "anti": None}
    if name not in data:
        return nothing
    part = measured_part(data[name])
    if step not in part["step"].values:
        return nothing
    here = part.sel({"step": step, **where})
    groups = [str(group) for group in here["group"].values]
    return nothing | {group: float(here.sel(group=group)) for group in groups}
