"""One row a run: outcome, onset and completion steps, as Markdown or CSV; for docs/replication.md.

    python analyses/outcome_table.py runs/max-parity
    python analyses/outcome_table.py runs/* --csv > outcomes.csv

A run that failed, or was not trained to its end, has an empty outcome and the reason.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tyro

from interp_shortcuts.cli.folders import run_folders
from interp_shortcuts.cli.tracked import as_markdown, outcome_table, track_run
from interp_shortcuts.errors import ConfigError


def main(paths: tyro.conf.Positional[tuple[Path, ...]], *, csv: bool = False) -> int:
    """Prints the outcomes of runs; those that are not tracked yet are tracked first.

    Args:
        paths: Run folders, or folders of run folders.
        csv: CSV instead of a Markdown table.
    """
    try:
        folders = run_folders(
            paths, on_skip=lambda path: print(f"left out: {path}", file=sys.stderr)
        )
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    runs = [track_run(folder) for folder in folders]
    table = outcome_table(runs)
    print(table.to_csv(index=False).rstrip() if csv else as_markdown(table))
    return 1 if any(run.error for run in runs) else 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
