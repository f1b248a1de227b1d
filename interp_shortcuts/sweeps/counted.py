"""Which runs of a table count in a rate or a curve, and why the others do not.

A run counts when it was trained to its end and its adversarial accuracy is known. Runs that do not
count are never dropped in silence: every statistic of a sweep carries their number, by reason.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from interp_shortcuts.sweeps.settings import require_columns, rows_where

NOT_COUNTED = ("failed", "diverged", "unfinished", "unmeasured")
"""Why a run does not count.

`failed`: training raised. `diverged`: the loss was no longer a finite number. `unfinished`: not
begun, running, or stopped before its end. `unmeasured`: trained to the end, but it cannot be told
whether it generalised.
"""


def why_not_counted(table: pd.DataFrame) -> tuple[str, ...]:
    """For each run one of `NOT_COUNTED`, or an empty text if it counts."""
    require_columns(table, ("status", "generalised", "lasting"))
    known = (table["generalised"].notna() & table["lasting"].notna()).tolist()
    reasons = {"failed": "failed", "diverged": "diverged"}
    return tuple(
        ("" if measured else "unmeasured")
        if status == "finished"
        else reasons.get(status, "unfinished")
        for status, measured in zip(table["status"].tolist(), known, strict=True)
    )


def counted(table: pd.DataFrame) -> pd.DataFrame:
    """The runs that count."""
    return rows_where(table, np.array([not reason for reason in why_not_counted(table)], bool))


def not_counted(table: pd.DataFrame) -> dict[str, int]:
    """How many runs do not count, by reason; every reason is there, also at 0."""
    reasons = why_not_counted(table)
    return {name: reasons.count(name) for name in NOT_COUNTED}
