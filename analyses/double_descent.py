"""Test accuracy over the width of a network trained on wrong labels: a table and a figure.

    python analyses/double_descent.py runs/double-descent
    python analyses/double_descent.py runs/double-descent --csv double_descent.csv --out page.html

Takes folders of runs that differ in width, and whatever else makes a line. Runs that are not
tracked yet are measured at their first and last checkpoint.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import tyro

from interp_shortcuts.cli.folders import run_folders
from interp_shortcuts.cli.noise_pages import over_cells
from interp_shortcuts.cli.tracked import as_markdown, track_run
from interp_shortcuts.errors import InterpShortcutsError
from interp_shortcuts.plots.modular_descent import descent_figure
from interp_shortcuts.reports.figure_page import write_figure
from interp_shortcuts.timelines.cadence import ONLY_THE_ENDS


def main(
    paths: tyro.conf.Positional[tuple[Path, ...]],
    *,
    csv: Path | None = None,
    out: Path | None = None,
    threads: int | None = None,
) -> int:
    """Prints test accuracy by width, a column for each line, as Markdown.

    Args:
        paths: Run folders, or folders of run folders.
        csv: Also write the table of all networks and groups here.
        out: Also write the figure here (HTML that looks for plotly.min.js beside it).
        threads: Torch's thread count while tracking; none: torch's own choice.
    """
    try:
        folders = run_folders(
            paths, on_skip=lambda path: print(f"left out: {path}", file=sys.stderr)
        )
        runs = [track_run(path, threads=threads, cadence=ONLY_THE_ENDS) for path in folders]
        for run in runs:
            if run.problem:
                print(f"error: {run.path}: {run.problem}", file=sys.stderr)
        table = over_cells(runs).descent
        print(by_width(table))
        if csv is not None:
            table.to_csv(csv, index=False, float_format="%.5g")
        if out is not None:
            write_figure(descent_figure(table), out, title="Accuracy against width")
    except InterpShortcutsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 1 if any(run.error for run in runs) else 0


def by_width(table: pd.DataFrame) -> str:
    """Test accuracy of the network itself and of G with the quadratic activation, as Markdown."""
    parts = {"full": "trained", "G": "quadratic"}
    rows = [
        {"width": row["width"], "line": f"{row['network']}, {row['line']}", "mean": row["mean"]}
        for row in table.to_dict("records")
        if row["group"] == "test" and parts.get(row["network"]) == row["acting"]
    ]
    wide = pd.DataFrame(rows).pivot_table(index="width", columns="line", values="mean", sort=False)
    return as_markdown(wide.sort_index().round(3).reset_index().astype({"width": str}))


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
