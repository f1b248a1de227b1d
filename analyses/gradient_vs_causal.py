"""Does a component's gradient say how much it matters? Tables, figures and a page over seeds.

    python analyses/gradient_vs_causal.py runs/sorting
    python analyses/gradient_vs_causal.py runs/sorting --method "integrated gradients"
    python analyses/gradient_vs_causal.py runs/sorting --reference Shapley --out results

Takes folders of runs of sequence tasks. Runs that are not tracked yet are tracked first, and get
pages of their own. For each setting: the page over seeds, its tables as CSV, and its figures as
small HTML files that look for plotly.min.js beside them. Prints their paths; the exit code is 1 if
a run could not be tracked, and the others are shown.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tyro

from interp_shortcuts.cli.folders import index_folder, run_folders
from interp_shortcuts.cli.gap_pages import measured, over_seeds, write_seeds_pages
from interp_shortcuts.cli.page_names import is_of_sequences, page_names
from interp_shortcuts.cli.tracked import track_run, write_page
from interp_shortcuts.errors import InterpShortcutsError
from interp_shortcuts.measures.attribution.gap import THRESHOLD
from interp_shortcuts.reports.figure_page import write_figure
from interp_shortcuts.reports.gap_seeds_report import seeds_figures
from interp_shortcuts.timelines.gap_readings import METHOD, REFERENCE


def main(
    paths: tyro.conf.Positional[tuple[Path, ...]],
    *,
    out: Path | None = None,
    method: str = METHOD,
    reference: str = REFERENCE,
    threshold: float = THRESHOLD,
    n_permutations: int = 10_000,
    threads: int | None = None,
    every: int = 1,
    shapley: float | None = None,
) -> int:
    """Tracks runs where needed, and lays attribution beside causal importance over their seeds.

    Args:
        paths: Run folders, or folders of run folders.
        out: Where pages, tables and figures go; none: the folder that the runs lie in.
        method: The attribution.
        reference: The causal importance.
        threshold: Ranks that make a hero or a bloat.
        n_permutations: Shuffles behind the p-values of roles.
        threads: Torch's thread count while tracking; none: torch's own choice.
        every: Measures are taken at every k-th checkpoint, and at the first and the last.
        shapley: Measure Shapley values too, at the first and the last checkpoint, to this standard
            error (about a minute a run at 0.02).
    """
    also, cadence = measured(every=every, shapley=shapley)
    options = {"method": method, "reference": reference, "threshold": threshold}
    options["n_permutations"] = n_permutations
    try:
        folders = run_folders(
            paths, on_skip=lambda path: print(f"left out: {path}", file=sys.stderr)
        )
        folder = out or index_folder(paths, folders) or folders[0].parent
        names = page_names(folders)
        runs = [track_run(path, threads=threads, cadence=cadence, also=also) for path in folders]
        for run in runs:
            written = write_page(run, index=folder, name=names[run.path]) if run.timeline else None
            print(written or f"error: {run.path}: {run.problem}", file=sys.stderr)
        pages = write_seeds_pages(runs, folder, names, **options)
        for page in pages:
            group = [r for r in runs if names[r.path] == page.name and is_of_sequences(r.config)]
            found = over_seeds(group, **options)
            stem = page.stem if page.stem != "index" else "gap"
            for name, table in found.tables().items():
                file = folder / f"{stem}_{name}.csv"
                table.to_csv(file, index=False)
                print(file)
            for one in seeds_figures(found):
                if one.figure is None:
                    print(f"no figure {one.name}: {one.missing}", file=sys.stderr)
                    continue
                title = f"{stem} {one.name}".replace("-", " ").replace("_", " ")
                print(write_figure(one.figure, folder / f"{stem}-{one.name}.html", title=title))
            print(page)
    except InterpShortcutsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if not pages:
        print("error: none of the runs is one of a sequence task", file=sys.stderr)
        return 2
    return 1 if any(run.error for run in runs) else 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
