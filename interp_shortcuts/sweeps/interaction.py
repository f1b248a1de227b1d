"""Does the effect of one field depend on another? A difference of differences of rates, tested.

For arXiv 2607.10116: does raising the ratio from balanced to imbalanced help two layers and hurt
one? With p the generalisation rate, the quantity is

    (p[2, 0.9] - p[2, 0.5]) - (p[1, 0.9] - p[1, 0.5])

on the scale of fractions of seeds, in [-2, 2]; 0 when the ratio does the same at both depths.
Which runs count is `counted`'s business.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import hypergeom

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.measures.intervals import LEVEL, proportion_interval
from interp_shortcuts.streams import numpy_stream
from interp_shortcuts.sweeps.counted import counted, not_counted
from interp_shortcuts.sweeps.interaction_text import interaction_sentence
from interp_shortcuts.sweeps.settings import (
    groups,
    require_columns,
    rows_where,
    setting_label,
    varying_fields,
)

_TIE = 1e-9  # differences of fractions closer than this are the same difference
_SIGNS = np.array([[1.0, -1.0], [-1.0, 1.0]])  # between level, effect level


@dataclass(frozen=True)
class InteractionCell:
    """One of the four cells: how many of its counted runs generalised."""

    between: Any
    """Level of the field between which effects are compared."""
    effect: Any
    """Level of the field whose effect it is."""
    generalised: int
    n: int
    """Runs that count."""

    @property
    def rate(self) -> float:
        """Fraction in [0, 1]; NaN out of none."""
        return self.generalised / self.n if self.n else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Its Clopper-Pearson 95% interval; NaN out of none."""
        low, high = proportion_interval(np.array([self.generalised]), np.array([self.n]))[0]
        return float(low), float(high)


@dataclass(frozen=True)
class Interaction:
    """The interaction of two fields in four cells, with its test and intervals.

    Attributes:
        effect: The field whose effect is asked about, e.g. `ratio`.
        between: The field on which that effect may depend, e.g. `n_layers`.
        setting: The other fields that vary in the table, with their values here; may be empty.
        cells: Low and high level of `between`; in each, low and high level of `effect`.
        differences: Change of the rate from the low to the high level of `effect`, at the low and
            at the high level of `between`; each in [-1, 1].
        difference: The second minus the first of `differences`, in [-2, 2].
        low: Lower end of its 95% interval, from the exact intervals of the four rates.
        high: Upper end.
        bootstrap_low: Lower end of the 95% percentile bootstrap interval over seeds.
        bootstrap_high: Upper end.
        p_value: Exact two-sided permutation p-value, in (0, 1].
        n_resamples: Bootstrap resamples asked for.
        resamples_left_out: Resamples in which a cell had no run; they are in no interval.
        seed: Seed of the stream of the bootstrap.
        not_counted: Runs in these cells that count in nothing, by reason.
        reason: Why there are no numbers (all NaN); empty if there are.
    """

    effect: str
    between: str
    setting: str
    cells: tuple[InteractionCell, InteractionCell, InteractionCell, InteractionCell]
    differences: tuple[float, float]
    difference: float
    low: float
    high: float
    bootstrap_low: float
    bootstrap_high: float
    p_value: float
    n_resamples: int
    resamples_left_out: int
    seed: int
    not_counted: dict[str, int]
    reason: str = ""

    @property
    def sentence(self) -> str:
        """The result in words, with its numbers."""
        return interaction_sentence(self)


def find_interaction(
    table: pd.DataFrame,
    *,
    effect: str = "ratio",
    between: str = "n_layers",
    setting: str = "",
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Interaction:
    """Tests whether the effect of `effect` on the generalisation rate depends on `between`.

    **The test.** Under the null, whether a run generalises does not depend on `effect` at either
    level of `between`: the labels of `effect` are permuted within each level of `between`, which
    keeps a main effect of `between`. The p-value is the share of permutations whose difference of
    differences is at least as far from 0 as the observed one. Outcomes are yes or no, so that
    permutations which put as many generalised runs into each cell are the same; all of them are
    summed over (two hypergeometric distributions), and nothing is drawn. With cells of equal size
    the p-value also holds when `effect` does the same at both levels: see the decision page on
    statistics over seeds.

    **The interval** `low` to `high` combines the four Clopper-Pearson intervals by the distances of
    their ends from the rates (Zou and Donner 2008, "MOVER"), so that a cell with none or all of its
    runs generalised keeps its uncertainty. The bootstrap draws seeds with replacement, a seed
    taking its runs in all four cells with it; it knows of no other values than those seen, and has
    no width where all cells are at 0 or 1.

    Args:
        table: Runs that differ in these two fields and in the seed only.
        effect: Field whose effect it is; it must have two levels.
        between: Field on which the effect may depend; it must have two levels.
        setting: Words for the other settings of these runs; only kept.
        n_resamples: Bootstrap resamples over seeds.
        seed: Seed of the bootstrap's stream, `("sweep statistics", "interaction bootstrap")`.

    Raises:
        ConfigError: If a field has not two levels, other settings vary, or a column is missing.
    """
    require_columns(table, ("seed", "status", effect, between))
    if n_resamples < 1:
        raise ConfigError(f"`n_resamples` must be at least 1; got {n_resamples}.")
    levels = [_two_levels(table, name) for name in (between, effect)]
    others = [name for name in varying_fields(table) if name not in (effect, between)]
    if others:
        raise ConfigError(
            f"runs must differ in `{between}`, `{effect}` and the seed only; these differ in "
            f"{', '.join(others)} too. Choose one value of each, or ask `interactions`."
        )
    runs = counted(table)
    places = [runs[name].to_numpy() for name in (between, effect)]
    found = [
        [rows_where(runs, (places[0] == b) & (places[1] == e)) for e in levels[1]]
        for b in levels[0]
    ]
    counts = np.array([[int(_generalised(cell).sum()) for cell in row] for row in found])
    n = np.array([[len(cell) for cell in row] for row in found])
    cells = tuple(
        InteractionCell(levels[0][i], levels[1][j], int(counts[i, j]), int(n[i, j]))
        for i in (0, 1)
        for j in (0, 1)
    )
    first, second, third, fourth = cells
    common = {
        "effect": effect,
        "between": between,
        "setting": setting,
        "cells": (first, second, third, fourth),
        "n_resamples": n_resamples,
        "seed": seed,
        "not_counted": not_counted(table),
    }
    empty = [setting_label({between: c.between, effect: c.effect}) for c in cells if not c.n]
    if empty:
        nan = math.nan
        numbers = ("difference", "low", "high", "bootstrap_low", "bootstrap_high", "p_value")
        return Interaction(
            **common,
            **dict.fromkeys(numbers, nan),
            differences=(nan, nan),
            resamples_left_out=0,
            reason=f"no run with {' and none with '.join(empty)} has ended",
        )
    rates = counts / n
    bootstrap = _bootstrap(found, n_resamples, seed)
    tail = 100 * (1 - LEVEL) / 2
    defined = bootstrap[np.isfinite(bootstrap)]
    ends = np.percentile(defined, [tail, 100 - tail]) if defined.size else (np.nan, np.nan)
    low, high = _combined_interval(counts, n)
    return Interaction(
        **common,
        differences=(float(rates[0, 1] - rates[0, 0]), float(rates[1, 1] - rates[1, 0])),
        difference=float((_SIGNS * rates).sum()),
        low=low,
        high=high,
        bootstrap_low=float(ends[0]),
        bootstrap_high=float(ends[1]),
        p_value=permutation_p_value(counts, n),
        resamples_left_out=int(n_resamples - defined.size),
    )


def interactions(
    table: pd.DataFrame,
    *,
    effect: str = "ratio",
    between: str = "n_layers",
    n_resamples: int = 10_000,
    seed: int = 0,
) -> tuple[Interaction, ...]:
    """One interaction for each setting of the other fields that vary; see `find_interaction`.

    Of more than two levels of a field the lowest and the highest are taken; of the ratio, the one
    nearest to chance (balanced data) in place of the lowest. A setting in which one of the four
    cells is not part of the table is left out.
    """
    require_columns(table, (effect, between, "chance"))
    corners = table
    for name in (effect, between):
        levels = corners[name].to_numpy()
        corners = rows_where(corners, np.isin(levels, _ends(table, name)))
    others = [name for name in varying_fields(corners) if name not in (effect, between)]
    found = []
    for values, runs in groups(corners, others) if others else [((), corners)]:
        pairs = set(zip(runs[between].tolist(), runs[effect].tolist(), strict=True))
        if len(pairs) < 4:
            continue
        setting = setting_label(dict(zip(others, values, strict=True)))
        options = {"setting": setting, "n_resamples": n_resamples, "seed": seed}
        found.append(find_interaction(runs, effect=effect, between=between, **options))
    return tuple(found)


def permutation_p_value(generalised: np.ndarray, n: np.ndarray) -> float:
    """The exact two-sided p-value of the difference of differences, over all permutations.

    Args:
        generalised: Counts [between, effect].
        n: Runs [between, effect], none of them 0.
    """
    changes, chances = [], []
    for count, runs in zip(generalised, n, strict=True):
        total, successes = int(runs.sum()), int(count.sum())
        at_high = np.arange(max(0, successes - runs[0]), min(runs[1], successes) + 1)
        changes.append(at_high / runs[1] - (successes - at_high) / runs[0])
        chances.append(hypergeom.pmf(at_high, total, successes, runs[1]))
    differences = changes[1][None, :] - changes[0][:, None]
    weights = chances[1][None, :] * chances[0][:, None]
    observed = abs(float((_SIGNS * generalised / n).sum()))
    return min(1.0, float(weights[np.abs(differences) >= observed - _TIE].sum()))


def _combined_interval(counts: np.ndarray, n: np.ndarray) -> tuple[float, float]:
    """The interval of the signed sum of four rates from their own intervals."""
    rates = counts / n
    ends = proportion_interval(counts, n)
    below, above = rates - ends[..., 0], ends[..., 1] - rates
    down = np.where(_SIGNS > 0, below, above)
    up = np.where(_SIGNS > 0, above, below)
    centre = float((_SIGNS * rates).sum())
    return centre - float(np.sqrt((down**2).sum())), centre + float(np.sqrt((up**2).sum()))


def _bootstrap(
    cells: list[list[pd.DataFrame]], n_resamples: int, seed: int
) -> Float[np.ndarray, " resample"]:
    """The difference of differences in each resample of seeds; NaN where a cell is empty."""
    seeds = sorted({int(s) for row in cells for cell in row for s in cell["seed"]})
    place = {s: index for index, s in enumerate(seeds)}
    runs, successes = (np.zeros((len(seeds), 2, 2)) for _ in range(2))
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            for s, success in zip(cell["seed"], _generalised(cell), strict=True):
                runs[place[int(s)], i, j] += 1
                successes[place[int(s)], i, j] += success
    stream = numpy_stream(seed, "sweep statistics", "interaction bootstrap")
    weights = stream.multinomial(len(seeds), np.full(len(seeds), 1 / len(seeds)), size=n_resamples)
    n, counts = (np.tensordot(weights, values, axes=1) for values in (runs, successes))
    rates = np.divide(counts, n, out=np.full(n.shape, np.nan), where=n > 0)
    return (_SIGNS * rates).sum(axis=(1, 2))


def _generalised(runs: pd.DataFrame) -> np.ndarray:
    return runs["generalised"].to_numpy(dtype=bool)


def _ends(table: pd.DataFrame, name: str) -> tuple[Any, Any]:
    levels = sorted(table[name].dropna().unique().tolist())
    chances = table["chance"].dropna().unique().tolist()
    if name != "ratio" or not chances:
        return levels[0], levels[-1]
    return min(levels, key=lambda ratio: abs(ratio - chances[0])), levels[-1]


def _two_levels(table: pd.DataFrame, name: str) -> tuple[Any, Any]:
    levels = sorted(table[name].dropna().unique().tolist())
    if len(levels) != 2:
        shown = ", ".join(map(str, levels)) or "none"
        raise ConfigError(f"`{name}` must have two levels in the table; it has {shown}.")
    return levels[0], levels[1]
