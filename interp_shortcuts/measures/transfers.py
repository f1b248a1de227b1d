"""What patched pairs say: how many predictions move, and how much of a logit difference follows.

Pure functions of logits and pairs. Running the patches is left to `patching`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp_shortcuts.measures.intervals import mean_with_interval
from interp_shortcuts.measures.pairs import Pairs
from interp_shortcuts.tasks.base import AnswerTask


class Moved(NamedTuple):
    """How many of the pairs that count have moved, in each run; `n` is the same for all runs."""

    k: Int[np.ndarray, " run"]
    n: Int[np.ndarray, " run"]


class Recovered(NamedTuple):
    """Mean recovered fraction of the logit difference; the last two are the same for all runs."""

    value: Float[np.ndarray, " run"]
    interval: Float[np.ndarray, "run bound"]
    n: Int[np.ndarray, " run"]
    left_out: Int[np.ndarray, " run"]


def moved(
    task: AnswerTask,
    pairs: Pairs,
    pairing: str,
    *,
    plain: Float[Tensor, "pair class"],
    patched: Float[Tensor, "run pair class"],
) -> Moved:
    """Predictions that move to the source's label; in the control pairing, that change at all.

    A pair whose unpatched prediction is the source's label already cannot move there: it does not
    count.

    Args:
        task: Says what is predicted.
        pairs: The pairs.
        pairing: A member of `pairs.PAIRINGS`; with `"rule"` the label is the source's true label,
            with `"shortcut"` its shortcut label.
        plain: Logits of the targets.
        patched: The same, patched.
    """
    n_runs, n_pairs = patched.shape[:2]
    before = task.predictions(plain)
    after = task.predictions(patched.flatten(0, 1)).unflatten(0, (n_runs, n_pairs))
    counts = pairs.found[pairing]
    if pairing == "control":
        has_moved = after != before
    else:
        wanted = _label(pairs, pairing)[1]
        has_moved = after == wanted
        counts = counts & (before != wanted)
    k = (has_moved & counts).sum(1).numpy()
    return Moved(k, np.full(n_runs, int(counts.sum()), dtype=np.int64))


def recovered(
    pairs: Pairs,
    pairing: str,
    *,
    plain: Float[Tensor, "pair class"],
    source: Float[Tensor, "pair class"],
    patched: Float[Tensor, "run pair class"],
    min_difference: float,
) -> Recovered:
    """Mean of (LD_patched - LD_target) / (LD_source - LD_target).

    LD is the logit of the source's label minus that of the target's: true labels in the rule
    pairing, shortcut labels in the shortcut pairing.

    Args:
        pairs: The pairs.
        pairing: `"rule"` or `"shortcut"`.
        plain: Logits of the targets.
        source: Logits of the sources by themselves.
        patched: Logits of the patched targets.
        min_difference: Pairs whose denominator is smaller than this are left out.
    """
    of_target, of_source = _label(pairs, pairing)

    def difference(logits: Float[Tensor, "*run pair class"]) -> Float[Tensor, "*run pair"]:
        def at(labels: Int[Tensor, " pair"]) -> Float[Tensor, "*run pair"]:
            index = labels.expand(logits.shape[:-1])[..., None]
            return logits.double().gather(-1, index)[..., 0]

        return at(of_source) - at(of_target)

    whole = difference(source) - difference(plain)
    counts = pairs.found[pairing] & (whole.abs() >= min_difference)
    fraction = (difference(patched) - difference(plain)) / torch.where(counts, whole, torch.nan)
    mean = mean_with_interval(fraction.T.numpy())
    left_out = int((pairs.found[pairing] & ~counts).sum())
    n = mean.n.astype(np.int64)
    return Recovered(mean.value, mean.interval, n, np.full_like(n, left_out))


def _label(pairs: Pairs, pairing: str) -> tuple[Int[Tensor, " pair"], Int[Tensor, " pair"]]:
    """The label that the pairing changes, of target and source."""
    source = pairs.sources[pairing]
    if pairing == "rule":
        return pairs.target.labels, source.labels
    return pairs.target.shortcut_labels, source.shortcut_labels
