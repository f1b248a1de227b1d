"""The gap between attribution and causal importance of one run, over its steps.

Ranks and roles are made in `measures.attribution.gap`; what is read of a timeline is chosen in
`gap_readings`; many runs are laid side by side in `gap_over_seeds`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from interp_shortcuts.measures.attribution.gap import (
    THRESHOLD,
    RankGap,
    Role,
    by_size,
    check_threshold,
    rank_gap,
    roles,
)
from interp_shortcuts.timelines.gap_readings import (
    METHOD,
    REFERENCE,
    GapReading,
    method_named,
    read,
    reference_named,
    why_unread,
)
from interp_shortcuts.timelines.reached import begin_of_end
from interp_shortcuts.timelines.timeline import Timeline

ATTRIBUTION_VARIABLES = frozenset(
    {
        *("gradient_norm", "weight_gradient", "activation_gradient", "integrated_gradients"),
        *("exact_match_drop", "loss_rise", "shapley"),
    }
)


@dataclass(frozen=True)
class Separation:
    """When heroes and bloats first stand apart.

    Attributes:
        step: The first step from which at least one hero and at least one bloat of the end of
            training have their final role at every later step too; None if there is none.
        reason: Why there is none; empty if there is one.
        at_last: Whether it is the last step, after which nothing could have undone it.
    """

    step: int | None
    reason: str = ""
    at_last: bool = False


@dataclass(frozen=True, eq=False)
class AttributionGap:
    """Attribution and importance of each component at the steps where both were measured.

    Attributes:
        method: The attribution.
        reference: The causal importance.
        threshold: Ranks that make a hero or a bloat.
        components: Heads and MLPs, by layer.
        steps: Training steps, increasing; none if there is nothing to compare.
        attribution: Values of the attribution.
        importance: Values of the importance.
        importance_low: Lower end of its 95% interval; NaN where there is none.
        importance_high: Upper end.
        gaps: Ranks, delta and rho at each step.
        reason: Why there is nothing to compare; empty if there is.
    """

    method: GapReading
    reference: GapReading
    threshold: float
    components: tuple[str, ...]
    steps: tuple[int, ...]
    attribution: Float[np.ndarray, "step component"]
    importance: Float[np.ndarray, "step component"]
    importance_low: Float[np.ndarray, "step component"]
    importance_high: Float[np.ndarray, "step component"]
    gaps: tuple[RankGap, ...]
    reason: str = ""

    @property
    def final(self) -> RankGap | None:
        """The gap at the last step; None if there is nothing to compare."""
        return self.gaps[-1] if self.gaps else None

    @property
    def rho(self) -> Float[np.ndarray, " step"]:
        """Spearman's rho at each step, in [-1, 1]; NaN where one of the two is constant."""
        return np.array([gap.rho for gap in self.gaps], dtype=np.float64)

    @cached_property
    def delta(self) -> Float[np.ndarray, "step component"]:
        """Rank by attribution minus rank by importance."""
        if not self.gaps:
            return np.empty((0, len(self.components)))
        return np.stack([gap.delta for gap in self.gaps])

    @property
    def final_roles(self) -> Mapping[str, Role]:
        """The role of each component at the last step; none without a step."""
        if self.final is None:
            return {}
        return dict(zip(self.components, self.final.roles(self.threshold), strict=True))

    def named(self, role: Role) -> tuple[str, ...]:
        """The components of that role at the last step, the largest gap first."""
        if self.final is None:
            return ()
        return by_size(self.final.delta, self.components, role, self.threshold)

    def why_no_rho(self) -> str:
        """Why rho is undefined at the last step; empty if it is not."""
        return self.reason or (self.final.reason if self.final is not None else "")

    @cached_property
    def settled(self) -> Mapping[str, int]:
        """The first step from which each final hero and bloat keeps its role, by component."""
        found: dict[str, int] = {}
        for index, name in enumerate(self.components):
            role = self.final_roles.get(name)
            if role in ("hero", "bloat"):
                same = np.array([r == role for r in roles(self.delta[:, index], self.threshold)])
                found[name] = self.steps[begin_of_end(same)]
        return found

    @property
    def separation(self) -> Separation:
        """The step at which heroes and bloats first stand apart for good."""
        if reason := self.why_no_rho():
            return Separation(None, reason)
        sides = {role: self.named(role) for role in ("hero", "bloat")}
        missing = [role for role, names in sides.items() if not names]
        if missing:
            return Separation(None, f"no {' and no '.join(missing)} at the last step")
        step = max(min(self.settled[name] for name in names) for names in sides.values())
        return Separation(step, at_last=step == self.steps[-1])


def find_gap(
    data: Timeline | xr.Dataset,
    *,
    method: str = METHOD,
    reference: str = REFERENCE,
    threshold: float = THRESHOLD,
) -> AttributionGap:
    """Compares an attribution with a causal importance at every step that has both.

    Args:
        data: What was measured.
        method: A name in `gap_readings.METHODS`, or in `REFERENCES` (to compare two of those).
        reference: A name in `gap_readings.REFERENCES`.
        threshold: Ranks that make a hero or a bloat.

    Returns:
        The gap; without steps, and with the reason, if one of the two was not measured or the two
        have no component or step in common.

    Raises:
        MeasureError: If there is no such method or reference, or the threshold is not positive.
    """
    check_threshold(threshold)
    data = data.data if isinstance(data, Timeline) else data
    second = reference_named(reference)
    try:
        first = reference_named(method)
    except ValueError:
        first = method_named(method)
    missing = filter(None, (why_unread(data, first), why_unread(data, second)))
    reason = "; ".join(dict.fromkeys(missing))
    if reason:
        return _nothing(first, second, threshold, reason)
    values, costs = read(data, first), read(data, second)
    names, steps = in_common(values, costs)
    if not names or not steps.size:
        common = "component" if not names else "step"
        reason = f"{first.name} and {second.name} were measured at no {common} in common"
        return _nothing(first, second, threshold, reason)
    at = {"step": steps, "component": names}
    attribution, importance = values.sel(at).to_numpy(), costs.sel(at).to_numpy()
    low, high = (
        read(data, second, bound=bound).reindex(at).to_numpy() for bound in ("low", "high")
    )
    gaps = tuple(rank_gap(a, c) for a, c in zip(attribution, importance, strict=True))
    return AttributionGap(
        method=first,
        reference=second,
        threshold=threshold,
        components=tuple(names),
        steps=tuple(int(step) for step in steps),
        attribution=attribution,
        importance=importance,
        importance_low=low,
        importance_high=high,
        gaps=gaps,
    )


def in_common(
    first: xr.DataArray, second: xr.DataArray
) -> tuple[list[str], Int[np.ndarray, " step"]]:
    """The components, in the order of the first, and the steps that two quantities both have."""
    known = set(second["component"].to_numpy().tolist())
    names = [str(name) for name in first["component"].to_numpy().tolist() if name in known]
    return names, np.intersect1d(first["step"].to_numpy(), second["step"].to_numpy())


def has_attribution(data: xr.Dataset) -> bool:
    """Whether a timeline has anything of which a gap could be read.

    Gradients of groups of examples go by the name `gradient_norm` too, and have no component.
    """
    return any(name in data and "component" in data[name].dims for name in ATTRIBUTION_VARIABLES)


def about_the_gap(data: xr.Dataset) -> bool:
    """Whether a timeline's picture and page are those of attribution against importance.

    True of a run of a sequence task, and of any other run with something to compare and no
    shortcut.
    """
    for name in ("task", "config"):
        try:
            found = json.loads(str(data.attrs.get(name, "")))
        except json.JSONDecodeError:
            continue
        task = found.get("task", found) if isinstance(found, dict) else {}
        if isinstance(task, dict) and "operation" in task:
            return True
    return has_attribution(data) and "shortcut_rate" not in data


def _nothing(
    method: GapReading, reference: GapReading, threshold: float, reason: str
) -> AttributionGap:
    empty = np.empty((0, 0))
    return AttributionGap(
        method, reference, threshold, (), (), empty, empty, empty, empty, (), reason
    )
