"""A made-up table of runs with the columns of a real one, and outcomes that one chooses.

Nothing is trained and no torch is loaded: tests of sweep statistics, their figures and pages build
on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from interp_shortcuts.sweeps.table import COLUMNS

BOOLEANS = ("generalised", "lasting")
STEPS = ("shortcut_learned", "saturation", "onset", "completion", "lost", "last_step")
FRACTIONS = ("final_validation", "final_adversarial", "best_adversarial", "seconds")

SETTING: dict[str, Any] = {
    "rule": "max_parity",
    "ratio": 0.9,
    "length": 4,
    "n_integers": 40,
    "n_train": 4096,
    "n_layers": 2,
    "n_heads": 2,
    "weight_decay": 0.1,
    "n_steps": 1500,
}
GENERALISES = ("generalised", "transient", "direct")
NOT_ENDED = ("pending", "running", "failed", "diverged", "stopped")


def run_row(what: str, seed: int, setting: Mapping[str, Any], onset: int | None = None) -> dict:
    """One run: `what` is an outcome, or a status of a run that did not end.

    Onset at 300 + 10 * seed unless given, completion 100 steps later, loss 200 after that.
    """
    values = {**SETTING, **setting}
    cell = ", ".join(f"{name}={value:g}" for name, value in setting.items())
    name = cell.replace(", ", "-").replace("=", "").replace(".", "")
    row = {
        "cell": cell,
        "seed": seed,
        "run": f"runs/{name}-seed{seed}",
        "run_id": f"{abs(hash((cell, seed))):016x}"[:16],
        "status": what if what in NOT_ENDED else "finished",
        "error": "RuntimeError: out of <memory>" if what == "failed" else "",
        **values,
        "chance": 0.5,
        "outcome": "" if what in NOT_ENDED else what,
        "n_adversarial": 1024,
    }
    if what in NOT_ENDED:
        return row
    shortcut = what in ("generalised", "transient", "shortcut", "partial")
    began = what in ("generalised", "transient", "partial")
    complete = what in GENERALISES
    start = (300 + 10 * seed if onset is None else onset) if began or complete else None
    at_end = {"generalised": 1.0, "direct": 1.0, "transient": 0.6, "partial": 0.9, "shortcut": 0.05}
    final = at_end.get(what, 0.5)
    return row | {
        "generalised": None if what == "undetermined" else complete,
        "lasting": None if what == "undetermined" else complete and what != "transient",
        "shortcut_learned": 50 if shortcut else None,
        "saturation": 200,
        "onset": start if began else None,
        "completion": start + 100 if complete and start is not None else None,
        "lost": start + 300 if what == "transient" and start is not None else None,
        "last_step": values["n_steps"],
        "final_validation": 0.99,
        "final_adversarial": final,
        "best_adversarial": 1.0 if complete else final,
        "seconds": 60.0 + seed,
    }


def typed(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The rows as a table with the columns and types of `read_results`."""
    extra = [name for name in dict.fromkeys(k for row in rows for k in row) if name not in COLUMNS]
    place = COLUMNS.index("chance")
    table = pd.DataFrame(rows, columns=[*COLUMNS[:place], *extra, *COLUMNS[place:]])
    return table.astype(
        dict.fromkeys(BOOLEANS, "boolean")
        | dict.fromkeys((*STEPS, "n_adversarial"), "Int64")
        | dict.fromkeys(FRACTIONS, "Float64")
    )


def synthetic_sweep(cells: Sequence[tuple[Mapping[str, Any], Sequence[str]]]) -> pd.DataFrame:
    """Runs of each cell: its setting, and what became of seeds 0, 1, 2 and so on."""
    rows = [
        run_row(what, seed, setting) for setting, runs in cells for seed, what in enumerate(runs)
    ]
    return typed(rows)


def counts_table(counts: Mapping[tuple[int, float], tuple[int, int]]) -> pd.DataFrame:
    """(layers, ratio) -> (generalised, n): the first seeds generalise, the others do not."""
    return synthetic_sweep(
        [
            (
                {"n_layers": layers, "ratio": ratio},
                ["generalised"] * good + ["shortcut"] * (n - good),
            )
            for (layers, ratio), (good, n) in counts.items()
        ]
    )


PAPER_LIKE = [
    ({"n_layers": 1, "ratio": 0.5}, ["direct"] * 3 + ["memorised"] * 7),
    ({"n_layers": 1, "ratio": 0.9}, ["shortcut"] * 9 + ["failed"]),
    ({"n_layers": 2, "ratio": 0.5}, ["memorised"] * 9 + ["never learned"]),
    (
        {"n_layers": 2, "ratio": 0.9},
        ["generalised"] * 5 + ["transient"] * 2 + ["partial", "shortcut", "running"],
    ),
]
"""The four cells of the headline with ten seeds each, one failed and one still running."""
