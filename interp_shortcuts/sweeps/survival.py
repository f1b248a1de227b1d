"""When phase 2 begins and when the rule is complete, over seeds: survival curves per cell.

A run in which the event never came is censored where it was last seen without it; it is not
dropped, which would make the others look typical. Kaplan-Meier throughout.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from scipy.stats import CensoredData, ecdf

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.measures.intervals import LEVEL
from interp_shortcuts.sweeps.counted import NOT_COUNTED, counted, not_counted
from interp_shortcuts.sweeps.settings import (
    groups,
    require_columns,
    rows_where,
    setting_fields,
    settings_of_cells,
)

EVENTS = ("onset", "completion")
"""The events whose times are followed: phase 2 begins; the rule is complete."""

_CURVE = ("cell", "step", "at_risk", "events", "censored", "surviving", "low", "high")


def survival_curves(table: pd.DataFrame, *, event: str = "onset") -> pd.DataFrame:
    """The share of runs of each cell in which the event has not come yet, over steps.

    Runs without the event are censored at their last step. For the onset, a run of outcome `direct`
    (the rule complete with no shortcut phase) is censored where its rule was complete: from there
    on no onset can come. Events are dated on the evaluation grid, so that a step is the evaluation
    at which, not the exact step when.

    Args:
        table: The runs of a sweep, as `results` gives them.
        event: One of `EVENTS`.

    Returns:
        One row a cell and step at which something happens, and one at step 0: `at_risk`, the runs
        under observation just before; `events` and `censored`, the runs that leave there;
        `surviving`, the Kaplan-Meier estimate, a fraction in [0, 1]; `low` and `high`, its 95%
        interval (log-log; NaN where it is not defined: before the first event, and once the
        estimate is 0). A cell of which no run counts has no row.

    Raises:
        ConfigError: If the event is unknown, or a column is missing.
    """
    checked_event(event)
    frames = []
    for (cell,), runs in groups(table, ["cell"]):
        times, seen = _times(counted(runs), event)
        if times.size:
            frames.append(_curve(str(cell), times, seen))
    whole = dict.fromkeys(("step", "at_risk", "events", "censored"), "int64")
    if not frames:
        empty = pd.DataFrame(columns=list(_CURVE))
        return empty.astype({**whole, **dict.fromkeys(("surviving", "low", "high"), "float64")})
    return pd.concat(frames, ignore_index=True).astype(whole)


def survival_summary(table: pd.DataFrame, *, event: str = "onset") -> pd.DataFrame:
    """One row a cell: how many runs had the event, and the median step at which it came.

    Returns:
        `cell`, its settings and `chance`; `runs`; `n`, those that count; the numbers that do not,
        by reason; `events` and `censored`, which add up to `n`; `median`, the first step at which
        the event has come in half of the runs (Kaplan-Meier), missing where that is not reached;
        `median_low` and `median_high`, its 95% interval (the first steps at which the interval of
        the curve reaches one half; Brookmeyer and Crowley 1982), each missing where not reached.

    Raises:
        ConfigError: If the event is unknown, or a column is missing.
    """
    curves = survival_curves(table, event=event)
    rows = []
    for (cell,), runs in groups(table, ["cell"]):
        curve = rows_where(curves, curves["cell"].to_numpy() == cell)
        rows.append(
            {
                "cell": cell,
                "runs": len(runs),
                "n": len(counted(runs)),
                **not_counted(runs),
                "events": sum(curve["events"].tolist()),
                "censored": sum(curve["censored"].tolist()),
                "median": _first_at_half(curve, "surviving"),
                "median_low": _first_at_half(curve, "low"),
                "median_high": _first_at_half(curve, "high"),
            }
        )
    counts = ["runs", "n", *NOT_COUNTED, "events", "censored"]
    medians = ["median", "median_low", "median_high"]
    frame = pd.DataFrame(rows, columns=["cell", *counts, *medians])
    settings = [*setting_fields(table), "chance"]
    frame = settings_of_cells(table).merge(frame, on="cell").astype(dict.fromkeys(medians, "Int64"))
    return frame.reindex(columns=["cell", *settings, *counts, *medians])


def checked_event(event: str) -> str:
    """The event's name.

    Raises:
        ConfigError: If it is none of `EVENTS`.
    """
    if event not in EVENTS:
        raise ConfigError(f"`event` must be {' or '.join(map(repr, EVENTS))}; got {event!r}.")
    return event


def _times(runs: pd.DataFrame, event: str) -> tuple[np.ndarray, np.ndarray]:
    """The step of each run's event or censoring, and whether it was the event."""
    require_columns(runs, ("outcome", "onset", "completion", "last_step"))
    seen = runs[event].notna()
    end = runs["last_step"]
    if event == "onset":
        end = end.where(runs["outcome"] != "direct", runs["completion"])
    unknown = np.flatnonzero((~seen & end.isna()).to_numpy())
    if unknown.size:
        raise ConfigError(
            f"a run without {event} must have a `last_step`; run "
            f"{runs['run'].tolist()[unknown[0]]!r} has none."
        )
    times = runs[event].where(seen, end).to_numpy(dtype=np.int64)
    return times, seen.to_numpy(dtype=bool)


def _curve(cell: str, times: np.ndarray, seen: np.ndarray) -> pd.DataFrame:
    survival = ecdf(CensoredData.right_censored(times, ~seen)).sf
    with warnings.catch_warnings():
        # the log-log interval is not defined at 1 and at 0, which NaN says already
        warnings.filterwarnings("ignore", message="The confidence interval is undefined")
        interval = survival.confidence_interval(confidence_level=LEVEL, method="log-log")
    steps = survival.quantiles.astype(np.int64)
    frame = pd.DataFrame(
        {
            "cell": cell,
            "step": steps,
            "at_risk": [int((times >= step).sum()) for step in steps],
            "events": [int((seen & (times == step)).sum()) for step in steps],
            "censored": [int((~seen & (times == step)).sum()) for step in steps],
            "surviving": survival.probabilities,
            "low": interval.low.probabilities,
            "high": interval.high.probabilities,
        }
    )
    if steps[0] == 0:
        return frame
    nan = float("nan")
    start = {"cell": cell, "step": 0, "at_risk": len(times), "events": 0, "censored": 0}
    return pd.concat(
        [pd.DataFrame([{**start, "surviving": 1.0, "low": nan, "high": nan}]), frame],
        ignore_index=True,
    )


def _first_at_half(curve: pd.DataFrame, column: str) -> int | None:
    reached = np.flatnonzero(curve[column].to_numpy(dtype=np.float64) <= 0.5 + 1e-12)
    return int(curve["step"].tolist()[reached[0]]) if reached.size else None
