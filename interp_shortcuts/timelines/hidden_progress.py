"""What is fitted first under label noise, and how early the hidden network G generalises.

From arXiv 2605.18022: network G keeps the dominant frequency of every vector, network R the rest.
The filter and the groups are measured in `measures/modular`; tables of what was measured are made
in `hidden_tables`, sentences in `hidden_text`; many runs are laid side by side in
`sweeps.hidden_cells`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.timelines.hidden_tables import finals_table
from interp_shortcuts.timelines.layout import measured_part
from interp_shortcuts.timelines.reached import Reached, first_at_least, held_from
from interp_shortcuts.timelines.timeline import Timeline

GROUP, FILTERED = "group_accuracy", "filtered_accuracy"
ACTINGS = ("trained", "quadratic")
"""The activations with which network G is asked: the run's own, and the one that the paper swaps
in after training."""
LABELS = ("clean", "noisy")
"""The two kinds of training labels."""
THRESHOLD = 0.99
FITTED = 0.5


@dataclass(frozen=True)
class Lead:
    """By how many steps network G is ahead of the network itself.

    Attributes:
        steps: Steps between the two events, negative if the network itself is first; None if one
            of them is missing.
        at_least: Where the network itself never got there: the steps from G's event to the last
            one, which is the least that the lead can be; else None.
        reason: Why there is no lead; empty if there is one.
    """

    steps: int | None
    at_least: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class FittedFirst:
    """Which training labels reach a level first.

    Attributes:
        which: `"noisy"`, `"clean"`, or `"together"` (at the same measured step); None if it cannot
            be said.
        reason: Why it cannot be said; empty if it can.
    """

    which: str | None
    reason: str = ""


@dataclass(frozen=True, eq=False)
class HiddenProgress:
    """What one run under label noise shows over its steps.

    Attributes:
        threshold: Test accuracy, in [0, 1], that counts as having generalised.
        fitted_at: Training accuracy, in [0, 1], that counts as having begun to fit.
        steps: Training steps at which the groups were measured; none without a measurement.
        full: When the network's own test accuracy is at the threshold for good.
        hidden: The same of network G (a frequency per vector), by the activation it acts with.
        fitted: When the training accuracy on clean and on noisy labels (as given) first is at a
            level, by group and level.
        finals: Accuracy and loss of every network, activation and group at the last step; see
            `hidden_tables.finals_table`.
        reason: Why nothing can be said of network G; empty if it can.
    """

    threshold: float
    fitted_at: float
    steps: tuple[int, ...]
    full: Reached
    hidden: Mapping[str, Reached]
    fitted: Mapping[tuple[str, float], Reached]
    finals: pd.DataFrame
    reason: str = ""

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels at which fitting is dated: the field, and the threshold."""
        return tuple(dict.fromkeys((self.fitted_at, self.threshold)))

    @property
    def best(self) -> str | None:
        """The activation with which network G is there first; the run's own among equals."""
        dated = [name for name, event in self.hidden.items() if event.step is not None]
        return min(dated, key=lambda name: self.hidden[name].step or 0, default=None)

    def lead(self, acting: str) -> Lead:
        """By how many steps network G, acting with that activation, is ahead of the network.

        Raises:
            MeasureError: If network G was not asked with that activation.
        """
        if acting not in self.hidden:
            known = ", ".join(map(repr, self.hidden)) or "none"
            raise MeasureError(f"`acting` must be one of {known}; got {acting!r}.")
        first, second = self.hidden[acting], self.full
        if first.step is None:
            return Lead(None, reason=f"network G ({acting}): {first.reason}")
        if second.step is None:
            at_least = self.steps[-1] - first.step if self.steps else None
            return Lead(None, at_least, f"the network itself: {second.reason}")
        return Lead(second.step - first.step)

    def fitted_first(self, level: float | None = None) -> FittedFirst:
        """Which training labels are at a level first.

        Args:
            level: One of `levels`; without it, `fitted_at`.
        """
        level = self.fitted_at if level is None else level
        clean, noisy = (self.fitted[label, level] for label in LABELS)
        for one, name in ((noisy, "noisy"), (clean, "clean")):
            if one.reason.startswith("it is defined"):
                return FittedFirst(None, f"there are no {name} labels")
        if len(self.steps) < 2:
            return FittedFirst(None, "one step was measured, which orders nothing")
        if noisy.step is None and clean.step is None:
            return FittedFirst(None, f"clean: {clean.reason}; noisy: {noisy.reason}")
        if noisy.step == clean.step:
            return FittedFirst("together")
        late = float("inf")
        first = (noisy.step if noisy.step is not None else late) < (
            clean.step if clean.step is not None else late
        )
        return FittedFirst("noisy" if first else "clean")

    def final(self, network: str, group: str, acting: str = "trained") -> float:
        """Accuracy at the last step, in [0, 1]; NaN if it was not measured."""
        for row in self.finals.to_dict("records"):
            if (row["network"], row["acting"], row["group"]) == (network, acting, group):
                return float(row["accuracy"])
        return float("nan")


def find_hidden_progress(
    data: Timeline | xr.Dataset, *, threshold: float = THRESHOLD, fitted_at: float = FITTED
) -> HiddenProgress:
    """Reads the events of a run under label noise.

    Args:
        data: What was measured.
        threshold: Test accuracy that counts as having generalised, in (0, 1].
        fitted_at: Training accuracy that counts as having begun to fit, in (0, 1].

    Returns:
        The events; what was not measured or never happened has a reason in its place.

    Raises:
        MeasureError: If a level is not in (0, 1].
    """
    for name, value in (("threshold", threshold), ("fitted_at", fitted_at)):
        if not 0 < value <= 1:
            raise MeasureError(f"`{name}` must be in (0, 1]; got {value}.")
    data = data.data if isinstance(data, Timeline) else data
    steps, curves = group_curves(data)
    hidden: dict[str, Reached] = {}
    reason = "" if FILTERED in data else f"{FILTERED} was not measured"
    for acting in ACTINGS if not reason else ():
        own_steps, curve = network_curve(data, "G", acting, "test")
        if own_steps:
            hidden[acting] = held_from(own_steps, curve, threshold)
    return HiddenProgress(
        threshold=threshold,
        fitted_at=fitted_at,
        steps=steps,
        full=_event(steps, curves.get("test"), threshold, held=True),
        hidden=hidden,
        fitted={
            (label, level): _event(steps, curves.get(label), level)
            for label in LABELS
            for level in dict.fromkeys((fitted_at, threshold))
        },
        finals=finals_table(data),
        reason=reason,
    )


def group_curves(
    data: xr.Dataset, variable: str = GROUP
) -> tuple[tuple[int, ...], dict[str, Float[np.ndarray, " step"]]]:
    """The steps at which the groups were measured, and the curve of each group; maybe none."""
    if variable not in data:
        return (), {}
    array = measured_part(data[variable]).transpose("step", "group")
    steps = tuple(int(step) for step in array["step"].to_numpy())
    values = array.to_numpy().astype(np.float64)
    return steps, {
        str(name): values[:, place] for place, name in enumerate(array["group"].to_numpy())
    }


def network_curve(
    data: xr.Dataset, network: str, acting: str, group: str, *, variable: str = FILTERED
) -> tuple[tuple[int, ...], Float[np.ndarray, " step"]]:
    """The steps at which a part of the network was asked, and what it gave; maybe none."""
    wanted = {"network": network, "acting": acting, "group": group}
    if variable not in data:
        return (), np.empty(0)
    array = measured_part(data[variable])
    if any(label not in array[dim].to_numpy().tolist() for dim, label in wanted.items()):
        return (), np.empty(0)
    line = array.sel(wanted).reset_coords(drop=True)
    steps = tuple(int(step) for step in line["step"].to_numpy())
    return steps, line.to_numpy().astype(np.float64)


def curve_bounds(
    data: xr.Dataset, network: str, acting: str, group: str
) -> tuple[Float[np.ndarray, " step"], Float[np.ndarray, " step"]] | None:
    """The ends of a curve's 95% interval at its steps; None if they were not measured.

    Of the network itself, acting as trained, those of the groups.
    """
    itself = (network, acting) == ("full", "trained")
    name = f"{GROUP if itself else FILTERED}_interval"
    if name not in data:
        return None
    ends = []
    for bound in ("low", "high"):
        one = data[[name]].sel(bound=bound).reset_coords(drop=True)
        if itself:
            curve = group_curves(one, name)[1].get(group)
        else:
            steps, curve = network_curve(one, network, acting, group, variable=name)
            curve = curve if steps else None
        if curve is None:
            return None
        ends.append(curve)
    return ends[0], ends[1]


def about_label_noise(data: xr.Dataset) -> bool:
    """Whether a timeline's picture and page are those of a run under label noise."""
    if GROUP in data or FILTERED in data:
        return True
    for name in ("task", "config"):
        try:
            found = json.loads(str(data.attrs.get(name, "")))
        except json.JSONDecodeError:
            continue
        task = found.get("task", found) if isinstance(found, dict) else {}
        if isinstance(task, dict) and "noise" in task:
            return True
    return False


def _event(
    steps: tuple[int, ...],
    curve: Float[np.ndarray, " step"] | None,
    level: float,
    *,
    held: bool = False,
) -> Reached:
    if curve is None:
        return Reached(None, reason=f"{GROUP} was not measured")
    return held_from(steps, curve, level) if held else first_at_least(steps, curve, level)
