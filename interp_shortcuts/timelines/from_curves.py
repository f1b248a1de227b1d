"""The phases of a run from its learning curves alone, without tracking it and without torch.

The same events and outcome as a tracked timeline has, read at every evaluation of the run rather
than at its kept checkpoints; what needs measures of components is absent, with the reason.
"""

from __future__ import annotations

import pandas as pd
import xarray as xr

from interp_shortcuts.runs.run import Run
from interp_shortcuts.timelines.phase_rules import PhaseRules
from interp_shortcuts.timelines.phases import Phases, find_phases


def run_phases(run: Run, rules: PhaseRules | None = None) -> Phases:
    """Events and outcome of a run, read from its curves.jsonl.

    Args:
        run: The run; one that has not ended has the phases of what it has so far.
        rules: Thresholds; the defaults of `PhaseRules` without them.

    Raises:
        StorageError: If the curves are damaged.
        ConfigError: If neither this process nor the run's manifest knows the rule.
    """
    return find_phases(behaviour_of(run.curves(), n_classes=n_classes(run)), rules)


def behaviour_of(curves: pd.DataFrame, *, n_classes: int) -> xr.Dataset:
    """Learning curves as the behaviour variables of a timeline's dataset.

    Args:
        curves: `Run.curves()`.
        n_classes: Number of classes of the task.

    Returns:
        `accuracy`, `loss`, `shortcut_rate` (fraction, nats, fraction) over step and split, and
        `n_examples` over split.
    """
    values = ["accuracy", "loss", "shortcut_rate"]
    found = curves.set_index(["step", "split"])[values].to_xarray()
    counts = curves.groupby("split")["n"].last().reindex(found["split"].to_numpy())
    found["n_examples"] = ("split", counts.to_numpy())
    return found.assign_attrs(n_classes=n_classes)


def n_classes(run: Run) -> int:
    """The number of classes of a run's task, also where its rule is not known to this process.

    Raises:
        ConfigError: If neither this process nor the manifest knows the rule.
    """
    splits = run.manifest.get("task", {}).get("splits", {})
    counts = splits.get("train", {}).get("label_counts")
    return len(counts) if counts else run.config.spec.n_classes
