"""What is hidden under label noise? Networks G and R over seeds and settings: tables and a page.

    python analyses/frequency_filtering.py runs/modular-noise
    python analyses/frequency_filtering.py runs/modular-noise --every 10 --out modular_noise

Takes folders of runs of a task with wrong training labels, such as a sweep's. Runs that are not
tracked yet are tracked first, and get pages of their own. Writes the page over runs with its tables
as CSV beside it, and its figures as small HTML files that look for plotly.min.js beside them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tyro

from interp_shortcuts.cli.folders import index_folder, run_folders
from interp_shortcuts.cli.noise_pages import over_cells, write_noise_pages
from interp_shortcuts.cli.page_names import is_under_noise, page_names
from interp_shortcuts.cli.tracked import as_markdown, track_run, write_page
from interp_shortcuts.errors import InterpShortcutsError
from interp_shortcuts.reports.figure_page import write_figure
from interp_shortcuts.reports.modular_seeds_report import cell_figures
from interp_shortcuts.sweeps.hidden_cells_text import finals_in_words
from interp_shortcuts.timelines.hidden_progress import THRESHOLD


def main(
    paths: tyro.conf.Positional[tuple[Path, ...]],
    *,
    out: Path | None = None,
    every: int = 1,
    threshold: float = THRESHOLD,
    threads: int | None = None,
) -> int:
    """Tracks runs where needed, and lays their networks G and R side by side.

    Args:
        paths: Run folders, or folders of run folders.
        out: Where pages, tables and figures go; none: the folder that the runs lie in.
        every: Measures are taken at every k-th checkpoint, and at the first and the last.
        threshold: Test accuracy that counts as having generalised.
        threads: Torch's thread count while tracking; none: torch's own choice.
    """
    try:
        folders = run_folders(
            paths, on_skip=lambda path: print(f"left out: {path}", file=sys.stderr)
        )
        folder = out or index_folder(paths, folders) or folders[0].parent
        names = page_names(folders)
        runs = [track_run(path, threads=threads, cadence=every) for path in folders]
        for run in runs:
            written = write_page(run, index=folder, name=names[run.path]) if run.timeline else None
            print(written or f"error: {run.path}: {run.problem}", file=sys.stderr)
        pages = write_noise_pages(runs, folder, names, threshold=threshold)
        for page in pages:
            group = [r for r in runs if names[r.path] == page.name and is_under_noise(r.config)]
            found = over_cells(group, threshold=threshold)
            stem = "cells" if page.stem == "index" else page.stem
            for name, table in found.tables().items():
                table.to_csv(folder / f"{stem}_{name}.csv", index=False, float_format="%.5g")
            for one in cell_figures(found):
                if one.figure is None:
                    print(f"no figure {one.name}: {one.missing}", file=sys.stderr)
                    continue
                title = f"{folder.name}: {one.name}".replace("-", " ").replace("_", " ")
                write_figure(one.figure, folder / f"{stem}-{one.name}.html", title=title)
            print(as_markdown(finals_in_words(found.finals)))
            print(page)
    except InterpShortcutsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if not pages:
        print("error: none of the runs is one with wrong training labels", file=sys.stderr)
        return 2
    return 1 if any(run.error for run in runs) else 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
