"""What the paper's released code ablates, beside an ablation of the head itself.

    python analyses/released_ablation.py runs/sequences --csv released_ablation.csv

The released code of arXiv 2602.01442 writes the mean of a head's output before W_O into a slice of
the attention's output after W_O. For the last checkpoint of each tracked run: the exact match that
every head costs in either way, on the same sequences, and how each order of the components agrees
with that of the gradient norm. Runs that are not tracked, or were excluded, are left out.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import tyro

from interp_shortcuts import Run, Timeline, Trajectory
from interp_shortcuts.cli.folders import run_folders
from interp_shortcuts.errors import InterpShortcutsError
from interp_shortcuts.measures.attribution.released import compared_with_released
from interp_shortcuts.measures.observation import Observation


def main(paths: tyro.conf.Positional[tuple[Path, ...]], *, csv: Path | None = None) -> int:
    """Prints one line a run and the means over seeds, and writes the table.

    Args:
        paths: Run folders, or folders of run folders.
        csv: Also write the table here.
    """
    rows = []
    try:
        for path in run_folders(
            paths, on_skip=lambda path: print(f"left out: {path}", file=sys.stderr)
        ):
            row = _compared(path)
            if row is None:
                print(f"left out: {path} (not tracked, or excluded)", file=sys.stderr)
                continue
            rows.append(row)
            print(
                " ".join(f"{k}={v:.3f}" if isinstance(v, float) else f"{v}" for k, v in row.items())
            )
    except InterpShortcutsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if not rows:
        print("error: no run is tracked and counts", file=sys.stderr)
        return 2
    table = pd.DataFrame(rows)
    for task, runs in table.groupby("task"):
        means = runs.drop(columns=["task", "seed", "length"]).agg(["mean", "std", "count"])
        print(f"\n{task}\n{means.T.round(3).to_string()}")
    if csv is not None:
        table.to_csv(csv, index=False, float_format="%.4f")
    return 0


def _compared(path: Path) -> dict[str, str | int | float] | None:
    run, file = Run.open(path), path / "timeline.nc"
    if run.ood_length is None or not file.exists():
        return None
    trajectory = Trajectory.open(path)
    step = trajectory.steps[-1]
    observation = Observation(trajectory.model(step), trajectory.task, step)
    measured = Timeline.open(file).data.sel(step=step)
    return {
        "task": run.config.task.label,
        "seed": run.config.seed,
        "length": run.ood_length,
        **compared_with_released(observation, measured, length=run.ood_length),
    }


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
