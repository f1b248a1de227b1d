"""Runs under label noise, laid side by side, in sentences. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from interp_shortcuts.sweeps.hidden_cells import HiddenCells
from interp_shortcuts.timelines.hidden_text import with_activation
from interp_shortcuts.timelines.words import capital, count_of, interval_text, listed, signed

_SHOWN = {
    "clean labels": ("full", "trained", "clean"),
    "noisy labels": ("full", "trained", "noisy"),
    "test": ("full", "trained", "test"),
    "G, test": ("G", "trained", "test"),
    "G quadratic, test": ("G", "quadratic", "test"),
    "G joint, test": ("G joint", "trained", "test"),
    "R, noisy": ("R", "trained", "noisy"),
    "R, test": ("R", "trained", "test"),
    "swapped to quadratic, test": ("full", "quadratic", "test"),
    "swapped to reverse ReLU, test": ("full", "reverse_relu", "test"),
}
"""The finals that a short table shows."""

_WHO = {"full": "the network itself", "G": "network G"}


def cells_sentences(found: HiddenCells) -> list[str]:
    """What the runs show together: how often and when, means, and what is fitted first."""
    n, out = len(found.progress), len(found.excluded)
    excluded = f" {count_of(out, 'run is', 'runs are')} excluded and in no number." if out else ""
    if not n:
        return [f"No run counts.{excluded}"]
    if len(found.cells) == 1:
        return [
            f"Over {count_of(n, 'seed')}: {_means(found)}.{excluded}",
            *_events(found),
            *_fitted(found),
        ]
    return [
        f"{count_of(n, 'run')} in {count_of(len(found.cells), 'cell')}, which differ in "
        f"{listed(found.differing)}.{excluded}",
        *_events_of_many(found),
        *_largest_gap(found),
        *_fitted_of_many(found),
    ]


def finals_in_words(finals: pd.DataFrame) -> pd.DataFrame:
    """A row a cell: mean final accuracies, with their 95% t interval where there is one.

    Args:
        finals: Those of `HiddenCells`.

    Returns:
        `cell`, a column of texts for each accuracy of a short table, and `seeds`.
    """
    keys = ["network", "acting", "group"]
    ends = zip(finals["mean"], finals["low"], finals["high"], strict=True)
    said = [f"{m:.3f}" + (f" ({a:.3f} to {b:.3f})" if a == a else "") for m, a, b in ends]
    wide = finals.assign(said=said).pivot_table(
        index="cell", columns=keys, values="said", aggfunc="first", sort=False
    )
    shown = wide.reindex(columns=pd.MultiIndex.from_tuples(_SHOWN.values(), names=keys))
    shown.columns = list(_SHOWN)
    return shown.assign(seeds=finals.groupby("cell", sort=False)["n"].max()).reset_index()


def network_words(network: str, acting: str) -> str:
    """`the network itself`, `network G with the quadratic activation`."""
    who = _WHO.get(network, f"network {network}")
    return who if network == "full" and acting == "trained" else f"{who} {with_activation(acting)}"


def _means(found: HiddenCells) -> str:
    parts = []
    for row in _rows(found.finals, group="test"):
        key = (row["network"], row["acting"])
        if key in (("full", "trained"), ("G", "trained"), ("G", "quadratic")) and row["n"]:
            interval = interval_text(row["low"], row["high"])
            parts.append(f"{network_words(*key)} has {signed(row['mean'])}{interval}")
    if not parts:
        return "no test accuracy was measured"
    return f"of the test pairs, {listed(parts)} right at the end"


def _events(found: HiddenCells) -> list[str]:
    """How often, and when, the threshold is there for good; in one cell."""
    sentences = []
    for row in found.events.to_dict("records"):
        if not row["n"]:
            continue
        who = capital(network_words(row["network"], row["acting"]))
        count, n = int(row["count"]), int(row["n"])
        text = (
            f"{who} reaches a test accuracy of {found.threshold:g} for good in {count} of "
            f"{count_of(n, 'seed')}{interval_text(row['low'], row['high'])}"
        )
        if count:
            text += f", at step {row['median']:,.0f} in the median"
            if row["earliest"] != row["latest"]:
                text += f" ({row['earliest']:,.0f} to {row['latest']:,.0f})"
        sentences.append(f"{text}.")
    return sentences


def _fitted(found: HiddenCells) -> list[str]:
    sentences = []
    for row in found.first.to_dict("records"):
        if not row["n"]:
            continue
        share = f"{100 * row['level']:g}%"
        others = [
            f"{label} in {int(row[key])}"
            for key, label in (("clean", "the clean ones"), ("together", "both at the same step"))
            if row[key]
        ]
        rest = f"; {listed(others)}" if others else ""
        sentences.append(
            f"Noisy labels are the first to be fitted to {share} in {int(row['noisy'])} of "
            f"{count_of(int(row['n']), 'seed')}{interval_text(row['low'], row['high'])}{rest}."
        )
    return sentences


def _events_of_many(found: HiddenCells) -> list[str]:
    """In how many cells all, some or none of the seeds get there."""
    sentences = []
    rows = found.events.to_dict("records")
    for key in dict.fromkeys((row["network"], row["acting"]) for row in rows):
        own = [row for row in rows if (row["network"], row["acting"]) == key and row["n"]]
        if not own:
            continue
        every = sum(row["count"] == row["n"] for row in own)
        some = sum(0 < row["count"] < row["n"] for row in own)
        sentences.append(
            f"{capital(network_words(*key))} reaches a test accuracy of {found.threshold:g} for "
            f"good {_among(every, some, len(own))}."
        )
    return sentences


def _among(every: int, some: int, n: int) -> str:
    """In how many of n cells all seeds do it, and in how many some do."""
    if not every and not some:
        return f"in no seed of any of {count_of(n, 'cell')}"
    if every == n:
        return f"in every seed of all {count_of(n, 'cell')}" if n > 1 else "in every seed of 1 cell"
    return (
        f"in every seed of {every}, in some seeds of {some} and in none of {n - every - some} of "
        f"{count_of(n, 'cell')}"
    )


def _largest_gap(found: HiddenCells) -> list[str]:
    """The cell in which network G is furthest ahead of the network itself."""
    test = {
        (row["cell"], row["network"], row["acting"]): row
        for row in _rows(found.finals, group="test")
        if row["n"]
    }
    ahead = [
        (test[cell, "G", acting]["mean"] - test[cell, "full", "trained"]["mean"], cell, acting)
        for cell in found.cells
        for acting in ("trained", "quadratic")
        if (cell, "G", acting) in test and (cell, "full", "trained") in test
    ]
    if not ahead or max(ahead)[0] <= 0:
        return []
    _, cell, acting = max(ahead, key=lambda one: one[0])
    g, full = test[cell, "G", acting], test[cell, "full", "trained"]
    return [
        f"They are furthest apart at {cell}: {network_words('G', acting)} has {signed(g['mean'])} "
        f"of the test pairs right{interval_text(g['low'], g['high'])}, the network itself "
        f"{signed(full['mean'])}{interval_text(full['low'], full['high'])} (n = {int(g['n'])})."
    ]


def _fitted_of_many(found: HiddenCells) -> list[str]:
    sentences = []
    rows = found.first.to_dict("records")
    for level in dict.fromkeys(row["level"] for row in rows):
        own = [row for row in rows if row["level"] == level and row["n"]]
        if not own:
            continue
        always = sum(row["noisy"] == row["n"] for row in own)
        some = sum(0 < row["noisy"] < row["n"] for row in own)
        noisy, n = (int(np.sum([row[key] for row in own])) for key in ("noisy", "n"))
        sentences.append(
            f"Noisy labels are the first to be fitted to {100 * level:g}% "
            f"{_among(always, some, len(own))} with noisy labels ({noisy} of {count_of(n, 'run')})."
        )
    return sentences


def _rows(table: Any, *, group: str) -> Sequence[dict[Any, Any]]:
    return [row for row in table.to_dict("records") if row["group"] == group]
