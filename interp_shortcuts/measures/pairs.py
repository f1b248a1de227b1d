"""Pairs of a target and a source example for cross-split patching, drawn once for each task.

A pairing holds one of the two labels fixed and changes the other, so that a patch from source to
target moves one causal variable. What is patched is left to `patching`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from interp_shortcuts.streams import numpy_stream
from interp_shortcuts.tasks.base import AnswerTask
from interp_shortcuts.tasks.split import Split

DIRECTIONS: Mapping[str, tuple[str, str]] = {
    "validation<-adversarial": ("validation", "adversarial"),
    "adversarial<-validation": ("adversarial", "validation"),
}
"""Target and source split of each direction."""

PAIRINGS = ("rule", "shortcut", "control")
"""`rule`: the source, from the other split, has another true label and the same shortcut label.
`shortcut`: from the other split, the same true label and another shortcut label. `control`:
another example of the target's own split, with both labels the same."""

_KEPT = 32
_drawn: OrderedDict[tuple[str, int, int], tuple[Pairs, ...]] = OrderedDict()


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of one direction: the same targets in every pairing, in the same order.

    Attributes:
        direction: A key of `DIRECTIONS`.
        target: The target examples, all distinct.
        sources: For each pairing, example i donates to target i. Where the source split has no
            example with the labels that the pairing asks for, the target stands in.
        found: For each pairing, whether there is a pair at all.
    """

    direction: str
    target: Split
    sources: Mapping[str, Split]
    found: Mapping[str, Bool[Tensor, " pair"]]

    def first(self, n: int) -> Pairs:
        """The first n targets and their sources."""
        rows = torch.arange(min(n, self.target.n))
        return Pairs(
            self.direction,
            self.target.take(rows),
            {pairing: source.take(rows) for pairing, source in self.sources.items()},
            {pairing: found[rows] for pairing, found in self.found.items()},
        )


def pairs_of(task: AnswerTask, *, n_pairs: int, seed: int = 0) -> tuple[Pairs, ...]:
    """The pairs of both directions; the same for all checkpoints of a task.

    Args:
        task: The task. Of its splits, `"validation"` and `"adversarial"` are used.
        n_pairs: Number of targets in each direction; at most what the target's split has.
        seed: Streams `("patching", direction, "target")` and `("patching", direction, pairing)`.
    """
    key = (task.fingerprint, n_pairs, seed)
    if key not in _drawn:
        _drawn[key] = tuple(
            _draw(task, direction, n_pairs=n_pairs, seed=seed) for direction in DIRECTIONS
        )
    _drawn.move_to_end(key)
    while len(_drawn) > _KEPT:
        _drawn.popitem(last=False)
    return _drawn[key]


def _draw(task: AnswerTask, direction: str, *, n_pairs: int, seed: int) -> Pairs:
    own, other = (task.split(name) for name in DIRECTIONS[direction])
    order = numpy_stream(seed, "patching", direction, "target").permutation(own.n)
    rows = torch.from_numpy(order[:n_pairs])
    target = own.take(rows)
    sources: dict[str, Split] = {}
    found: dict[str, Tensor] = {}
    for pairing in PAIRINGS:
        stream = numpy_stream(seed, "patching", direction, pairing)
        pool = own if pairing == "control" else other
        chosen = _sources(target, rows, pool, pairing, stream)
        found[pairing] = chosen >= 0
        sources[pairing] = _with_stand_ins(target, pool, chosen)
    return Pairs(direction, target, sources, found)


def _sources(
    target: Split,
    rows: Int[Tensor, " pair"],
    pool: Split,
    pairing: str,
    stream: np.random.Generator,
) -> Int[Tensor, " pair"]:
    """For each target a random example of the pool with the labels asked for; -1 if none."""
    chosen = torch.full((target.n,), -1, dtype=torch.long)
    labels = torch.stack([target.labels, target.shortcut_labels], dim=1)
    for label, shortcut in labels.unique(dim=0).tolist():
        here = torch.nonzero((labels == torch.tensor([label, shortcut])).all(1))[:, 0]
        same_label = pool.labels == label
        same_shortcut = pool.shortcut_labels == shortcut
        eligible = torch.nonzero(
            (same_label != (pairing == "rule")) & (same_shortcut != (pairing == "shortcut"))
        )[:, 0]
        # an example is no control of itself: the draw is from the others, and skips over it
        itself = pairing == "control"
        n_eligible = len(eligible) - itself
        if n_eligible > 0:
            drawn = torch.from_numpy(stream.integers(n_eligible, size=len(here)))
            if itself:
                drawn += drawn >= torch.searchsorted(eligible, rows[here])
            chosen[here] = eligible[drawn]
    return chosen


def _with_stand_ins(target: Split, pool: Split, chosen: Int[Tensor, " pair"]) -> Split:
    found = chosen >= 0
    tokens, labels = target.tokens.clone(), target.labels.clone()
    shortcut_labels = target.shortcut_labels.clone()
    tokens[found] = pool.tokens[chosen[found]]
    labels[found] = pool.labels[chosen[found]]
    shortcut_labels[found] = pool.shortcut_labels[chosen[found]]
    return Split(pool.name, tokens, labels, shortcut_labels)
