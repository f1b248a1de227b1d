"""How many seeds of each cell generalise, for good or for a while, with exact intervals.

The rate is that of arXiv 2607.10116: a run generalises if its adversarial accuracy is complete at
any evaluation. Whether it stays so is counted beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from interp_shortcuts.measures.intervals import proportion_interval
from interp_shortcuts.sweeps.counted import NOT_COUNTED, counted, not_counted
from interp_shortcuts.sweeps.settings import (
    groups,
    require_columns,
    setting_fields,
    settings_of_cells,
)

RATES = ("generalised", "lasting", "transient")
"""What is counted: complete at any evaluation; that, and not lost; that, and lost again."""


def generalisation_rates(table: pd.DataFrame) -> pd.DataFrame:
    """One row a cell: how many of its runs generalised, and the rate with its 95% interval.

    Args:
        table: The runs of a sweep, as `results` gives them.

    Returns:
        `cell`, its settings and `chance`; `runs`, all of them; `n`, those that count; the numbers
        that do not, `failed`, `diverged`, `unfinished`, `unmeasured`; and for each of `RATES` the
        count under its own name with `<name>_rate`, `<name>_low` and `<name>_high`: fractions of
        `n` in [0, 1] with their Clopper-Pearson interval, NaN for n = 0. `lasting` and `transient`
        add up to `generalised`.

    Raises:
        ConfigError: If a column is missing, or runs of one cell differ in a setting.
    """
    require_columns(table, ("cell", "status", "generalised", "lasting"))
    rows = [_counts(str(cell), runs) for (cell,), runs in groups(table, ["cell"])]
    names = ["cell", "runs", "n", *NOT_COUNTED, *RATES]
    rates = settings_of_cells(table).merge(pd.DataFrame(rows, columns=names), on="cell")
    n = rates["n"].to_numpy(dtype=np.int64)
    for name in RATES:
        count = rates[name].to_numpy(dtype=np.int64)
        interval = proportion_interval(count, n)
        rates[f"{name}_rate"] = np.divide(count, n, out=np.full(len(n), np.nan), where=n > 0)
        rates[f"{name}_low"], rates[f"{name}_high"] = interval[..., 0], interval[..., 1]
    every = [f"{name}{end}" for name in RATES for end in ("", "_rate", "_low", "_high")]
    settings = [*setting_fields(table), "chance"]
    return rates.reindex(columns=["cell", *settings, "runs", "n", *NOT_COUNTED, *every])


def chance_distances(table: pd.DataFrame) -> pd.DataFrame:
    """The rates of each cell beside the distance of its ratio from chance.

    At a ratio of 1 / classes the shortcut label says nothing on the true one; arXiv 2607.10116
    states that generalisation is suppressed there and promoted by a bias to either side.

    Returns:
        The columns of `generalisation_rates`, with `distance` = |ratio - chance| in [0, 1] and
        `side`, which is `"below"`, `"at"` or `"above"` chance, after `cell`.
    """
    rates = generalisation_rates(table)
    offset = rates["ratio"].astype(float) - rates["chance"].astype(float)
    near = np.isclose(offset, 0.0, atol=1e-9)
    side = np.select([near, offset < 0], ["at", "below"], default="above")
    rates.insert(1, "distance", np.where(near, 0.0, offset.abs()))
    rates.insert(2, "side", side)
    return rates


def _counts(cell: str, runs: pd.DataFrame) -> dict[str, Any]:
    counting = counted(runs)
    generalised = counting["generalised"].to_numpy(dtype=bool)
    lasting = counting["lasting"].to_numpy(dtype=bool)
    return {
        "cell": cell,
        "runs": len(runs),
        "n": len(counting),
        **not_counted(runs),
        "generalised": int(np.count_nonzero(generalised)),
        "lasting": int(np.count_nonzero(generalised & lasting)),
        "transient": int(np.count_nonzero(generalised & ~lasting)),
    }
