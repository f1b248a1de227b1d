"""The phase-2 report of many seeds: a page per run, an index over them, and the outcome table.

    python analyses/phase2_report.py runs/max-parity
    python analyses/phase2_report.py runs/*

Runs that are not tracked yet are tracked first. The table goes to standard output, the rest to
standard error; the exit code is 1 if a run could not be tracked, and the others are shown.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tyro

from interp_shortcuts.cli.folders import index_folder, run_folders
from interp_shortcuts.cli.tracked import (
    as_markdown,
    outcome_table,
    track_run,
    write_page,
    write_run_index,
)
from interp_shortcuts.errors import ConfigError


def main(paths: tyro.conf.Positional[tuple[Path, ...]], *, out: Path | None = None) -> int:
    """Tracks runs where needed, writes their pages and an index, and prints the outcomes.

    Args:
        paths: Run folders, or folders of run folders.
        out: The folder of the index page; none: the folder that the runs lie in.
    """
    try:
        folders = run_folders(
            paths, on_skip=lambda path: print(f"left out: {path}", file=sys.stderr)
        )
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    index = out or index_folder(paths, folders)
    runs = []
    for folder in folders:
        run = track_run(folder)
        runs.append(run)
        page = write_page(run, index=index) if run.timeline is not None else None
        print(page or f"error: {folder}: {run.problem}", file=sys.stderr)
    if index is not None:
        print(write_run_index(runs, index), file=sys.stderr)
    print(as_markdown(outcome_table(runs)))
    return 1 if any(run.error for run in runs) else 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
