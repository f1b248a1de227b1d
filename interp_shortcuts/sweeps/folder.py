"""A sweep on disk: its plan, its runs, the attempts at each of them, and its results.

```
<sweep>/sweep.json        the plan
<sweep>/runs/<run>/       run folders, named after setting and seed
<sweep>/jobs/<run>.jsonl  the attempts at each run: when, on what, and how each ended
<sweep>/results.csv       one row a run; results.parquet is the same
```

What is in a run folder is `runs/store`'s business.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from interp_shortcuts.errors import StorageError
from interp_shortcuts.runs.store import write_text
from interp_shortcuts.sweeps.attempts import AttemptLog
from interp_shortcuts.sweeps.plan import Job, Sweep

SWEEP_FORMAT = 1


@dataclass(frozen=True)
class SweepFolder:
    """The files of one sweep. Creating the object touches nothing on disk."""

    path: Path

    @property
    def plan_path(self) -> Path:
        return self.path / "sweep.json"

    @property
    def runs_path(self) -> Path:
        return self.path / "runs"

    @property
    def csv_path(self) -> Path:
        return self.path / "results.csv"

    @property
    def parquet_path(self) -> Path:
        return self.path / "results.parquet"

    def run_path(self, job: Job) -> Path:
        """Where the run of a job lies, whether or not it is there."""
        return self.runs_path / job.folder_name

    def attempts(self, job: Job) -> AttemptLog:
        """The record of the attempts at a job, which may be empty."""
        return AttemptLog(self.path / "jobs" / f"{job.folder_name}.jsonl")

    def write_sweep(self, sweep: Sweep) -> None:
        """Make the folder and write the plan; the runs of an earlier plan stay where they are.

        Raises:
            StorageError: If the folder holds another sweep, or something else.
        """
        if self.plan_path.exists():
            name = self.read_sweep().name
            if name != sweep.name:
                raise StorageError(
                    f"'{self.path}' holds the sweep {name!r}, not {sweep.name!r}. Choose another "
                    "folder."
                )
        elif self.path.exists() and (not self.path.is_dir() or _shown(self.path)):
            raise StorageError(
                f"'{self.path}' is not empty and not a sweep folder (it has no sweep.json). Choose "
                "another folder."
            )
        self.runs_path.mkdir(parents=True, exist_ok=True)
        data = {"format": SWEEP_FORMAT, "sweep": sweep.model_dump(mode="json")}
        write_text(self.plan_path, json.dumps(data, indent=2) + "\n")

    def read_sweep(self) -> Sweep:
        """The plan.

        Raises:
            StorageError: If the folder is no sweep folder, or its plan is damaged.
        """
        path = self.plan_path
        if not path.is_file():
            raise StorageError(
                f"'{self.path}' is no sweep folder: it has no sweep.json. Give the folder that "
                "`interp-shortcuts sweep` wrote (`--out`)."
            )
        cure = "Start the sweep again: it is written anew, and finished runs are kept."
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != SWEEP_FORMAT:
                raise StorageError(
                    f"'{path}' has `format` (={data['format']}), and this version of the package "
                    f"reads format {SWEEP_FORMAT}. Open it with the version that wrote it."
                )
            return Sweep.model_validate(data["sweep"])
        except ValidationError as error:
            raise StorageError(f"'{path}' is no valid plan: {error}. {cure}") from error
        except (KeyError, TypeError, json.JSONDecodeError, UnicodeDecodeError) as error:
            raise StorageError(f"'{path}' is damaged ({error!r}). {cure}") from error


def _shown(folder: Path) -> bool:
    return any(not entry.name.startswith(".") for entry in folder.iterdir())
