"""Remakes the figures of docs/replication.md from the tables in docs/tables, into docs/figures.

    python analyses/replication_figures.py

Every table of results there gives the figures for which it has data, `<table>-<figure>.html`; with
`<table>_aligned.csv` and `<table>_aligned_runs.csv` beside it (`analyses/sweep_report.py
--aligned-csv`) its aligned timelines too. Prints the line that shows each figure in a page.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import tyro

from interp_shortcuts.errors import InterpShortcutsError
from interp_shortcuts.reports.figure_page import write_figure
from interp_shortcuts.reports.sweep import sweep_figures
from interp_shortcuts.sweeps.alignment import Aligned
from interp_shortcuts.sweeps.columns import COLUMNS
from interp_shortcuts.sweeps.table import read_results

DOCS = Path(__file__).parents[1] / "docs"


def main(*, tables: Path = DOCS / "tables", out: Path = DOCS / "figures") -> int:
    """Writes every figure that the tables have data for.

    Args:
        tables: The folder of the tables.
        out: The folder of the figures.
    """
    try:
        for path in sorted(tables.glob("*.csv")):
            if not set(COLUMNS) <= set(pd.read_csv(path, nrows=0).columns):
                continue  # another table
            table = read_results(path)
            if len(set(table["cell"])) == len(table):
                print(f"{path.name}: no figures (one run a cell)", file=sys.stderr)
                continue
            stem = path.with_name(f"{path.stem}_aligned")
            aligned = Aligned.read(stem) if stem.with_suffix(".csv").exists() else None
            for one in sweep_figures(table, aligned=aligned):
                if one.figure is None:
                    print(f"{path.name}: no {one.name} ({one.missing})", file=sys.stderr)
                    continue
                title = f"{path.stem}: {one.name}".replace("_", " ").replace("-", " ")
                file = write_figure(one.figure, out / f"{path.stem}-{one.name}.html", title=title)
                height = one.height + 12
                print(
                    f'<iframe src="../figures/{file.name}" title="{title}" width="100%" '
                    f'height="{height}" style="border: 0" loading="lazy"></iframe>'
                )
    except InterpShortcutsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
