"""Which labels are fitted first, the clean or the noisy ones? A table over seeds, and a figure.

    python analyses/noise_first.py runs/digits-noise
    python analyses/noise_first.py runs/digits-noise --csv digits_noise.csv --out noise_first.html

Takes the runs of a sweep, or run folders, of a task with wrong training labels; reads their
learning curves alone. `blind` is the accuracy that noisy labels have when none is fitted.
"""

from __future__ import annotations

import sys
from pathlib import Path

import plotly
import tyro

from interp_shortcuts.cli.folders import run_folders
from interp_shortcuts.cli.tracked import as_markdown
from interp_shortcuts.errors import InterpShortcutsError
from interp_shortcuts.plots.noise_order import noise_order_figure
from interp_shortcuts.reports.figure_page import PLOTLY_FILE, write_figure
from interp_shortcuts.runs.run import Run
from interp_shortcuts.sweeps.noise_order import (
    event_summary,
    first_steps,
    noise_course,
    noise_curves,
    noise_events,
)


def main(
    paths: tyro.conf.Positional[tuple[Path, ...]],
    *,
    steps: int = 6,
    csv: Path | None = None,
    out: Path | None = None,
) -> int:
    """Prints accuracies at the first steps, and when each group is learned, as Markdown.

    Args:
        paths: Run folders, or folders of run folders.
        steps: How many of the first evaluations are printed.
        csv: Also write the table of all evaluations here, and that of the events by run beside it,
            as <name>_events.csv.
        out: Also write a figure here (HTML, with plotly.min.js beside it).
    """
    try:
        folders = run_folders(
            paths, on_skip=lambda path: print(f"left out: {path}", file=sys.stderr)
        )
        curves = noise_curves([Run.open(folder) for folder in folders])
        course, events = noise_course(curves), noise_events(curves)
        print(as_markdown(first_steps(course, steps)))
        print()
        print(as_markdown(event_summary(events)))
        if csv is not None:
            course.round(5).to_csv(csv, index=False)
            events.to_csv(csv.with_name(f"{csv.stem}_events.csv"), index=False)
        if out is not None:
            figure = noise_order_figure(course, chance=float(curves["chance"].iloc[0]))
            write_figure(figure, out, title="Which labels are fitted first")
            source = Path(plotly.__file__).parent / "package_data" / PLOTLY_FILE
            (out.parent / PLOTLY_FILE).write_bytes(source.read_bytes())
    except InterpShortcutsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
