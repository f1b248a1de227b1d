"""`Timeline`: the measures of a run over its steps, as one labelled dataset that shows itself.

It holds and stores results. What they mean is read in `phases`, pictures are drawn in `plots/`,
pages made in `reports/`, and the measuring is done by `tracker`. Nothing here needs torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from interp_shortcuts.errors import MeasureError, StorageError
from interp_shortcuts.timelines import timeline_text
from interp_shortcuts.timelines.layout import measured_part
from interp_shortcuts.timelines.netcdf import plain, read_dataset, write_dataset
from interp_shortcuts.timelines.phase_rules import PhaseRules
from interp_shortcuts.timelines.phases import Phases, find_phases
from interp_shortcuts.timelines.table import tidy_table

if TYPE_CHECKING:
    import plotly.graph_objects as go

FILE_NAME = "timeline.nc"
KIND = "timeline 1"


@dataclass(frozen=True, eq=False, repr=False)
class Timeline:
    """The measures of one run at its kept steps.

    Attributes:
        data: Dims `step`, `layer`, `head`, `split`, `feature` and so on; each variable has its
            unit, definition, range and the meaning of NaN in `attrs`. Where a variable was
            measured for some labels of a dim only, or at some steps, `covers` says which, and
            `array` returns only those. The attrs of the dataset say which run, task and spec it is
            about.
    """

    data: xr.Dataset

    def __post_init__(self) -> None:
        if "step" not in self.data.dims:
            raise MeasureError(
                "A timeline's dataset must have the dim `step`; it has "
                f"{', '.join(map(str, self.data.dims)) or 'none'}."
            )
        object.__setattr__(self, "data", plain(self.data))

    @classmethod
    def load(cls, path: str | Path) -> Timeline:
        """The timeline in a file that `save` wrote.

        Raises:
            StorageError: If the file is missing, damaged or something else.
        """
        return cls(read_dataset(Path(path), kind=KIND))

    @classmethod
    def open(cls, path: str | Path) -> Timeline:
        """The timeline of a run folder (`timeline.nc` in it), as it was last tracked.

        Raises:
            StorageError: If the folder has none, or the file is damaged.
        """
        path = Path(path)
        file = path / FILE_NAME if path.is_dir() else path
        if not file.exists():
            raise StorageError(
                f"'{file}' is missing: the run was not tracked yet, or not to the end. Track it "
                "with `CircuitTracker(Trajectory.open(path)).track()`."
            )
        return cls.load(file)

    def save(self, path: str | Path) -> Path:
        """Writes one NetCDF file: in full or not at all; an existing one is replaced.

        Args:
            path: The file, or an existing folder, where it is called `timeline.nc`.

        Returns:
            The file.
        """
        path = Path(path)
        file = path / FILE_NAME if path.is_dir() else path
        write_dataset(self.data, file, kind=KIND)
        return file

    @property
    def steps(self) -> tuple[int, ...]:
        """The training steps, increasing."""
        return tuple(int(step) for step in self.data["step"].to_numpy())

    def components(self) -> tuple[str, ...]:
        """The heads, by layer: `("L0.H0", "L0.H1", ...)`."""
        if not {"layer", "head"} <= set(self.data.coords):
            return ()
        layers, heads = self.data["layer"].to_numpy(), self.data["head"].to_numpy()
        return tuple(f"L{layer}.H{head}" for layer in layers for head in heads)

    def array(self, name: str) -> xr.DataArray:
        """One variable, without the labels and the steps that it was not measured for.

        Raises:
            MeasureError: If it was not measured; the message lists what was.
        """
        if name not in self.data.data_vars:
            raise MeasureError(
                f"`{name}` was not measured; the timeline has "
                f"{', '.join(map(str, self.data.data_vars))}."
            )
        return measured_part(self.data[name])

    def phases(self, rules: PhaseRules | None = None) -> Phases:
        """Events, outcome and hand-over order of the run.

        Args:
            rules: Thresholds; the defaults of `PhaseRules` without them.

        Raises:
            MeasureError: If the run is one under label noise, which has no shortcut.
        """
        from interp_shortcuts.timelines.hidden_progress import about_label_noise

        if about_label_noise(self.data):
            raise MeasureError(
                "`phases()` is about runs with a shortcut; of a run under label noise, ask "
                "`interp_shortcuts.timelines.find_hidden_progress(timeline)`."
            )
        return find_phases(self.data, rules)

    def to_dataframe(self) -> pd.DataFrame:
        """A tidy table: one row for each step, variable and label, with its 95% interval."""
        return tidy_table(self.data)

    def figure(self, **options: Any) -> go.Figure:
        """The interactive circuit timeline; options are those of `plots.timeline_figure`.

        Of a run of a sequence task: attribution against importance over training, with the options
        of `timelines.find_gap`, and `step_scale`. Of a run under label noise: hidden progress, with
        the options of `timelines.find_hidden_progress`, and `step_scale`.
        """
        from interp_shortcuts.plots import gap_course_figure, progress_figure, timeline_figure
        from interp_shortcuts.timelines.attribution_gap import about_the_gap, find_gap
        from interp_shortcuts.timelines.hidden_progress import (
            about_label_noise,
            find_hidden_progress,
        )

        if about_label_noise(self.data):
            scale = options.pop("step_scale", "log")
            found = find_hidden_progress(self, **options)
            return progress_figure(self, found, step_scale=scale)
        if about_the_gap(self.data):
            scale = options.pop("step_scale", "linear")
            return gap_course_figure(find_gap(self, **options), step_scale=scale)
        return timeline_figure(self, **options)

    def checkpoint_figure(self, **options: Any) -> go.Figure:
        """The heads at one step, with a slider; options are those of `plots.checkpoint_figure`."""
        from interp_shortcuts.plots import checkpoint_figure

        return checkpoint_figure(self, **options)

    def report(self, path: str | Path, **options: Any) -> Path:
        """Writes the run's report: one HTML page that works offline.

        Args:
            path: The HTML file, or a folder, where it is called `report.html`.
            options: Those of `reports.write_report`; of a run of a sequence task, those of
                `reports.write_gap_report`; of a run under label noise, those of
                `reports.write_modular_report`.
        """
        from interp_shortcuts.reports import write_gap_report, write_modular_report, write_report
        from interp_shortcuts.timelines.attribution_gap import about_the_gap
        from interp_shortcuts.timelines.hidden_progress import about_label_noise

        if about_label_noise(self.data):
            return write_modular_report(self, path, **options)
        if about_the_gap(self.data):
            return write_gap_report(self, path, **options)
        return write_report(self, path, **options)

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        return timeline_text.as_text(self)

    def _repr_html_(self) -> str:
        return timeline_text.as_html(self)
