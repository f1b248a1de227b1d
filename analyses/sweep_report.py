"""The page of a sweep: rates, interaction, onset times, and every run with a link to its own page.

    python analyses/sweep_report.py runs/imbalance-capacity-80
    python analyses/sweep_report.py runs/imbalance-capacity-80 --track
    python analyses/sweep_report.py docs/tables/imbalance_capacity.csv --out page.html

Takes a sweep folder, also while the sweep runs, or a table of results. Runs that were tracked are
aligned at their onset; `--track` tracks those that are finished first, and writes their pages.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tyro

from interp_shortcuts.cli.tracked import causal_cadence, track_run, write_page
from interp_shortcuts.errors import ConfigError, InterpShortcutsError
from interp_shortcuts.reports.sweep import report_links, write_sweep_report
from interp_shortcuts.sweeps.alignment import align, open_timelines
from interp_shortcuts.sweeps.counted import counted
from interp_shortcuts.sweeps.table import read_results, results


def main(
    path: tyro.conf.Positional[Path],
    *,
    out: Path | None = None,
    title: str | None = None,
    track: bool = False,
    threads: int | None = None,
    causal_every: int = 1,
    aligned_csv: Path | None = None,
) -> int:
    """Writes the page of a sweep.

    Args:
        path: The sweep folder, or a results.csv or results.parquet.
        out: The page, or its folder; none: sweep.html beside the runs or the table.
        title: Heading of the page; none: the name of the folder or table.
        track: Track finished runs first, and write the page of each.
        threads: Torch's thread count while tracking; none: torch's own choice.
        causal_every: Track patching and ablations at every k-th checkpoint, the rest at each.
        aligned_csv: Also write the aligned curves to this file, and the runs behind them beside it.
    """
    folder = path if path.is_dir() else path.parent
    page = out or folder / "sweep.html"
    page = page if page.suffix.lower() in (".html", ".htm") else page / "sweep.html"
    problems = 0
    try:
        if path.suffix == ".py":
            raise ConfigError(
                f"`{path}` is a script; give the folder of its sweep, such as runs/{path.stem} "
                "(`interp-shortcuts sweep status` shows it)."
            )
        table = results(path) if path.is_dir() else read_results(path)
        for name in counted(table)["run"] if track else ():
            run = track_run(folder / name, threads=threads, cadence=causal_cadence(causal_every))
            problems += run.error is not None
            done = f"error: {run.path}: {run.problem}" if run.error else write_page(run)
            print(done, file=sys.stderr)
        timelines = open_timelines(table, folder)
        aligned = align(table, timelines) if timelines else None
        write_sweep_report(
            table,
            page,
            title=title or (path.resolve().name if path.is_dir() else path.stem),
            aligned=aligned,
            links=report_links(table, folder, page.parent),
        )
        if aligned_csv is not None and aligned is not None:
            print(*aligned.write(aligned_csv.with_suffix("")), sep="\n", file=sys.stderr)
        elif aligned_csv is not None:
            print("no aligned curves: no run was tracked", file=sys.stderr)
    except InterpShortcutsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(page)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
