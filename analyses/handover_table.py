"""The hand-over of many seeds: events, lags to onset, and which component carried what.

    python analyses/handover_table.py runs/max-parity
    python analyses/handover_table.py runs/* --csv handover.csv

Runs that are not tracked yet are tracked first. A run with a problem is named on standard error and
left out of the table.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tyro

from interp_shortcuts.cli.folders import run_folders
from interp_shortcuts.cli.tracked import as_markdown, track_run
from interp_shortcuts.errors import ConfigError
from interp_shortcuts.timelines.over_seeds import handover_table, lag_summary


def main(paths: tyro.conf.Positional[tuple[Path, ...]], *, csv: Path | None = None) -> int:
    """Prints the hand-over table and its summary over runs, as Markdown.

    Args:
        paths: Run folders, or folders of run folders.
        csv: Also write the table here.
    """
    try:
        folders = run_folders(
            paths, on_skip=lambda path: print(f"left out: {path}", file=sys.stderr)
        )
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    runs = [track_run(folder) for folder in folders]
    for run in runs:
        if run.problem:
            print(f"error: {run.path}: {run.problem}", file=sys.stderr)
    table = handover_table({run.path.name: run.phases for run in runs if run.phases})
    if csv is not None:
        table.to_csv(csv, index=False)
    print(as_markdown(table))
    print()
    print(as_markdown(lag_summary(table).reset_index()))
    return 1 if any(run.error for run in runs) else 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
