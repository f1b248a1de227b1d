"""Where a run's measurements are kept, so that tracking again measures only what is new.

`timeline.nc` is always whole: every measure in it at every step in it, or, if the measure is
thinned, at those that its cadence asks for. What is measured but not (yet) part of it, after a kill
or of measures that were asked about fewer steps, waits in `timeline.partial.nc`. A result is
identified by the measure's key, the task's fingerprint, the spec and the hash of the weights;
anything else is measured anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import xarray as xr

from interp_shortcuts.runs.checkpoint import checkpoint_hash
from interp_shortcuts.runs.store import RunFolder
from interp_shortcuts.timelines.cadence import cadence_of, due, marked
from interp_shortcuts.timelines.layout import put_together, take_apart
from interp_shortcuts.timelines.measured import HASH, at_steps, fresh
from interp_shortcuts.timelines.netcdf import read_dataset, write_dataset
from interp_shortcuts.timelines.timeline import FILE_NAME, KIND, Timeline

PARTIAL_NAME = "timeline.partial.nc"
PARTIAL_KIND = "partial timeline 1"
IDENTITY = ("task_fingerprint", "spec")
"""The attributes that must be equal for a measurement to be used again."""
_SEPARATOR = "__of_"


@dataclass(frozen=True)
class Kept:
    """What a run folder holds that is still right.

    Attributes:
        parts: Results by measure key.
        inside: The steps at which the timeline has each measure, by key.
        outdated: Whether something in the timeline is of weights that have changed since.
        created: When the timeline was made; empty without one.
    """

    parts: Mapping[str, xr.Dataset] = field(default_factory=dict)
    inside: Mapping[str, set[int]] = field(default_factory=dict)
    outdated: bool = False
    created: str = ""

    def has(self, asked: Mapping[str, Sequence[int]]) -> bool:
        """Whether the timeline as it lies there has these measures at these steps."""
        return not self.outdated and all(
            key in self.inside and self.inside[key].issuperset(steps)
            for key, steps in asked.items()
        )


@dataclass(frozen=True)
class MeasureCache:
    """The measurements in a run folder.

    Attributes:
        folder: The run folder.
        attrs: The attributes of the timeline that is being tracked.
    """

    folder: Path
    attrs: Mapping[str, str | int | float]

    @property
    def path(self) -> Path:
        """The run's timeline."""
        return self.folder / FILE_NAME

    @property
    def partial_path(self) -> Path:
        """What is measured and not in the timeline."""
        return self.folder / PARTIAL_NAME

    def read(self) -> Kept:
        """All results that still hold.

        Raises:
            StorageError: If a file there is damaged; the message says what to do.
        """
        files = RunFolder(self.folder).checkpoint_files()
        hashes = {step: checkpoint_hash(file) for step, file in files.items()}
        timeline = self._read(self.path, kind=KIND)
        partial = self._read(self.partial_path, kind=PARTIAL_KIND)
        inside = {} if timeline is None else take_apart(timeline)
        found = inside | ({} if partial is None else _unpack(partial))
        still = {key: fresh(part, hashes) for key, part in found.items()}
        steps = {key: _steps(part) for key, part in inside.items()}
        return Kept(
            parts={key: part for key, part in still.items() if part is not None},
            inside=steps,
            outdated=any(_steps(fresh(part, hashes)) != steps[key] for key, part in inside.items()),
            created="" if timeline is None else str(timeline.attrs.get("created", "")),
        )

    def write_partial(self, parts: Mapping[str, xr.Dataset]) -> None:
        """Keeps results beside the timeline; without any, the file goes."""
        if not parts:
            self.partial_path.unlink(missing_ok=True)
            return
        data = _pack(parts).assign_attrs({name: self.attrs[name] for name in IDENTITY})
        write_dataset(data, self.partial_path, kind=PARTIAL_KIND)

    def write(
        self, wanted: Mapping[str, int], parts: Mapping[str, xr.Dataset], *, steps: Sequence[int]
    ) -> None:
        """Writes the timeline: all wanted measures, and others that fit beside them.

        Args:
            wanted: The cadence of each measure that was asked for, by key.
            parts: All results, by measure key.
            steps: The steps of the trajectory.
        """
        steps = _widest(wanted, parts, steps)
        cadence = dict(wanted)
        names = {name for key in wanted for name in parts[key].data_vars}
        for key, part in parts.items():
            every = cadence_of(part)
            fits = _steps(part).issuperset(due(steps, every))
            if key not in wanted and fits and names.isdisjoint(part.data_vars):
                cadence[key] = every
                names |= set(part.data_vars)
        inside = {
            key: marked(at_steps(parts[key], due(steps, every)), every)
            for key, every in cadence.items()
        }
        data = put_together(list(inside.values())).assign_attrs(self.attrs)
        Timeline(data).save(self.path)
        self.write_partial(
            {
                key: marked(part, cadence.get(key, cadence_of(part)))
                for key, part in parts.items()
                if key not in inside or _steps(part) - _steps(inside[key])
            }
        )

    def _read(self, path: Path, *, kind: str) -> xr.Dataset | None:
        """The dataset in a file, if it is there and about the same task and spec."""
        if not path.exists():
            return None
        data = read_dataset(path, kind=kind)
        same = all(data.attrs.get(name) == self.attrs[name] for name in IDENTITY)
        return data if same else None


def _widest(
    wanted: Mapping[str, int], parts: Mapping[str, xr.Dataset], asked: Sequence[int]
) -> Sequence[int]:
    """The steps that the wanted measures share, which may be more than were asked for now."""
    everywhere = [_steps(parts[key]) for key, every in wanted.items() if every == 1]
    if not everywhere:
        return asked
    shared = sorted(set.intersection(*everywhere))
    fit = all(_steps(parts[key]).issuperset(due(shared, every)) for key, every in wanted.items())
    return shared if fit else asked


def _steps(part: xr.Dataset | None) -> set[int]:
    return set() if part is None else {int(step) for step in part["step"].to_numpy()}


def _pack(parts: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Parts of different steps and labels in one dataset: each with names of its own."""
    packed = xr.Dataset()
    for key, part in parts.items():
        names = {str(name): f"{name}{_SEPARATOR}{key}" for name in {*part.variables, *part.dims}}
        packed = packed.merge(part.rename(names))
    return packed


def _unpack(data: xr.Dataset) -> dict[str, xr.Dataset]:
    found = {}
    for key in dict.fromkeys(str(name).rsplit(_SEPARATOR, 1)[1] for name in data.variables):
        ending = f"{_SEPARATOR}{key}"
        own = [str(name) for name in data.variables if str(name).endswith(ending)]
        part = data.drop_vars([name for name in data.variables if name not in own])
        names = {name: name.removesuffix(ending) for name in {*own, *map(str, part.dims)}}
        part = part.rename(names)
        part.attrs = {}
        found[key] = part.set_coords(HASH) if HASH in part else part
    return found
