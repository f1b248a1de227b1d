"""The hand-over of many seeds in one table: steps, lags and carriers, one row a run.

What each run's events are is decided in `phases`; here they are laid side by side. A seed that does
not have an event has an empty cell: it is not dropped, and not counted in that column's summary.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from interp_shortcuts.timelines.carriers import What, When, smallest_carriers
from interp_shortcuts.timelines.phases import Phases

LAGS: Mapping[str, str] = {
    "QK decline": "first_qk_decline",
    "OV rise": "first_ov_rise",
    "causal take-over": "causal_take_over",
}
"""Kinds of hand-over entries, and the column of their first lag."""

STEPS = ("shortcut_learned", "saturation", "onset", "completion")


def handover_table(runs: Mapping[str, Phases]) -> pd.DataFrame:
    """One row a run: its dated events, the lags of the hand-over, and who carried what.

    Args:
        runs: The phases of each run, by its name.

    Returns:
        Columns `run`, `outcome`; the steps `shortcut_learned`, `saturation`, `onset`,
        `completion`; the lags to onset in training steps of the first QK decline, the first OV
        rise and the causal take-over (`Int64`, missing where there is none); and in
        `shortcut_before`, `rule_before`, `shortcut_after`, `rule_after` the smallest components
        that carry it.
    """
    rows = [{"run": name, **_row(phases)} for name, phases in runs.items()]
    whole = [*STEPS, *LAGS.values()]
    carried = [f"{what}_{when}" for when in ("before", "after") for what in ("shortcut", "rule")]
    table = pd.DataFrame(rows, columns=["run", "outcome", *whole, *carried])
    return table.astype(dict.fromkeys(whole, "Int64"))


def lag_summary(table: pd.DataFrame) -> pd.DataFrame:
    """Median, smallest and largest of every step and lag, and how many runs have it."""
    numbers = table[[*STEPS, *LAGS.values()]].astype("Float64")
    return pd.DataFrame(
        {
            "n": numbers.notna().sum(),
            "of": len(numbers),
            "median": numbers.median(),
            "min": numbers.min(),
            "max": numbers.max(),
        }
    ).rename_axis("quantity")


def _row(phases: Phases) -> dict[str, object]:
    first: dict[str, int] = {}
    for entry in phases.handover:  # in order of steps
        if entry.kind in LAGS:
            first.setdefault(LAGS[entry.kind], entry.lag)
    return {
        "outcome": phases.outcome,
        "shortcut_learned": phases.event("shortcut_learned").step,
        "saturation": phases.event("saturation").step,
        "onset": phases.onset,
        "completion": phases.completion,
        **first,
        **{
            f"{what}_{when}": _names(phases, what, when)
            for when in ("before", "after")
            for what in ("shortcut", "rule")
        },
    }


def _names(phases: Phases, what: What, when: When) -> str:
    return ", ".join(v.component for v in smallest_carriers(phases.carriers, what, when))
