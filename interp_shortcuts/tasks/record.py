"""What a run's manifest says about the examples: counts, balance, and what is shared.

It describes splits that exist; how they come about is in `sampling.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from interp_shortcuts.tasks.sampling import Drawn
from interp_shortcuts.tasks.split import Split


def describe(
    splits: Mapping[str, Split], drawn: Mapping[str, Drawn], *, n_classes: int
) -> dict[str, Any]:
    """The facts about the splits, fit for JSON.

    Args:
        splits: The splits of a task.
        drawn: The sequences they were made from, by group.
        n_classes: Number of classes.

    Returns:
        `achieved_ratio` (fraction of training examples that are consistent), `n_exist` (size of
        each group; None if not counted), `disjoint`, `n_shared_with_train` (sequences that an
        evaluation split shares with training), `overlap_reason` (`""` if disjoint), and `splits`
        with, for each, `n`, `n_distinct`, `n_consistent`, `label_counts` (by class),
        `label_balance` (fractions; empty if there are no examples) and `sha`.
    """
    shared = {
        "validation": drawn["consistent"].n_shared,
        "adversarial": drawn["anti"].n_shared,
    }
    reasons = [
        f"training and {split} together need {len(group.train) + len(group.evaluation)} distinct "
        f"{name} sequences and {group.n_exist} exist, so {group.n_shared} are in both"
        for split, (name, group) in zip(shared, drawn.items(), strict=True)
        if group.n_shared
    ]
    return {
        "achieved_ratio": splits["consistent"].n / splits["train"].n,
        "n_exist": {name: group.n_exist for name, group in drawn.items()},
        "disjoint": not reasons,
        "n_shared_with_train": shared,
        "overlap_reason": "; ".join(reasons),
        "splits": {name: _counts(split, n_classes) for name, split in splits.items()},
    }


def _counts(split: Split, n_classes: int) -> dict[str, Any]:
    counts = torch.bincount(split.labels, minlength=n_classes).tolist()
    return {
        "n": split.n,
        "n_distinct": len(torch.unique(split.tokens, dim=0)) if split.n else 0,
        "n_consistent": int(split.consistent.sum()),
        "label_counts": counts,
        "label_balance": [count / split.n for count in counts] if split.n else [],
        "sha": split.sha,
    }
