"""Which attribution is closest to causal importance? Every method against every reference.

The statistics over seeds are those of `measures.attribution.stability`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import xarray as xr

from interp_shortcuts.measures.attribution.gap import rank_gap
from interp_shortcuts.measures.attribution.stability import mean_over_seeds
from interp_shortcuts.timelines.attribution_gap import in_common
from interp_shortcuts.timelines.gap_readings import (
    METHODS,
    REFERENCES,
    read,
    why_unread,
)
from interp_shortcuts.timelines.timeline import Timeline

LEAGUE_COLUMNS = (
    *("method", "reference", "mean", "sd", "low", "high", "bootstrap_low", "bootstrap_high"),
    *("n", "n_undefined", "best", "behind", "behind_low", "behind_high", "behind_n", "reason"),
)
COMPARED = ("mean ablation",)
"""References that are rows of the table too: does ablating one at a time find what Shapley does?"""


def method_league(
    timelines: Mapping[str, Timeline], *, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Mean over seeds of Spearman's rho at the last step, for each method and reference.

    Args:
        timelines: The runs that count, by their name.
        n_resamples: Bootstrap resamples over seeds.
        seed: Seed of their stream.

    Returns:
        A row a pair, with `LEAGUE_COLUMNS`: the mean of rho with its t and bootstrap interval, the
        seeds that define it, and those that do not. `best` is the method with the largest mean
        against that reference; `behind` is the mean over seeds of (best - this one) in rho, paired
        within seeds, with its t interval: where it reaches 0, the two cannot be told apart (it is
        not corrected for having chosen the best). Mean ablation is compared with Shapley too, but
        is never `best`. A pair that no seed defines has NaN and a reason.
    """
    values = [_values(line.data) for line in timelines.values()]
    rhos: dict[tuple[str, str], np.ndarray] = {}
    reasons: dict[tuple[str, str], str] = {}
    for reference in REFERENCES:
        for method in (*METHODS, *(name for name in COMPARED if reference == "Shapley")):
            found = [_last_rho(own[method], own[reference]) for own in values]
            rhos[method, reference] = np.array([rho for rho, _ in found], dtype=np.float64)
            reasons[method, reference] = next((reason for _, reason in found if reason), "")
    best = {reference: _best(rhos, reference) for reference in REFERENCES}
    rows = []
    for (method, reference), rho in rhos.items():
        own = mean_over_seeds(rho, n_resamples=n_resamples, seed=seed)
        first = best[reference]
        ahead = rhos[first, reference] - rho if first else np.full(rho.shape, np.nan)
        behind = mean_over_seeds(ahead, n_resamples=n_resamples, seed=seed)
        rows.append(
            {
                "method": method,
                "reference": reference,
                "mean": own.mean,
                "sd": own.sd,
                "low": own.low,
                "high": own.high,
                "bootstrap_low": own.bootstrap_low,
                "bootstrap_high": own.bootstrap_high,
                "n": own.n,
                "n_undefined": own.n_undefined,
                "best": method == first,
                "behind": behind.mean,
                "behind_low": behind.low,
                "behind_high": behind.high,
                "behind_n": behind.n,
                "reason": "" if own.n else reasons[method, reference] or own.reason,
            }
        )
    return pd.DataFrame(rows, columns=list(LEAGUE_COLUMNS))


def _values(data: xr.Dataset) -> dict[str, xr.DataArray | str]:
    """Every quantity [step component] by its name, or why it cannot be read."""
    readings = {**METHODS, **REFERENCES}
    return {
        name: why_unread(data, reading) or read(data, reading) for name, reading in readings.items()
    }


def _last_rho(method: xr.DataArray | str, reference: xr.DataArray | str) -> tuple[float, str]:
    """rho at the last step that has both, and why it is NaN."""
    missing = [quantity for quantity in (method, reference) if isinstance(quantity, str)]
    if missing or isinstance(method, str) or isinstance(reference, str):
        return float("nan"), "; ".join(missing)
    names, steps = in_common(method, reference)
    if not names or not steps.size:
        return float("nan"), "the two were measured at no component or step in common"
    at = {"step": steps[-1], "component": names}
    gap = rank_gap(method.sel(at).to_numpy(), reference.sel(at).to_numpy())
    return gap.rho, gap.reason


def _best(rhos: Mapping[tuple[str, str], np.ndarray], reference: str) -> str:
    """The method with the largest mean; empty if no seed defines any."""
    means = {
        method: float(values[np.isfinite(values)].mean())
        for (method, other), values in rhos.items()
        if other == reference and method in METHODS and np.isfinite(values).any()
    }
    return max(means, key=lambda method: means[method]) if means else ""
