"""`Run`: one trained (or half-trained) run, opened from its folder.

It reads; training writes.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from interp_shortcuts.errors import StorageError
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.curves import check_reached, curves_frame, read_curves
from interp_shortcuts.runs.lock import is_being_trained
from interp_shortcuts.runs.store import ENDED, RunFolder
from interp_shortcuts.tasks.sequence_config import SequenceConfig

if TYPE_CHECKING:
    from interp_shortcuts.runs.trajectory import Trajectory
    from interp_shortcuts.tasks.base import Task
else:  # a run is opened without loading torch; these are checked where they are used
    Task = Trajectory = Any

STATUSES = ("running", "interrupted", "finished", "stopped", "diverged", "failed")
"""What `Run.status` can be; only `interrupted` is never written to disk."""


class Run:
    """One config with one seed, trained once; its files lie in one folder.

    Make one with `train(...)` or `Run.open(path)`.
    """

    def __init__(self, folder: RunFolder, *, config: RunConfig) -> None:
        self._folder = folder
        self._config = config

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """Open a run folder.

        Raises:
            StorageError: If it is no run folder, or its config or manifest is damaged.
        """
        folder = RunFolder(Path(path))
        config = folder.read_config()
        manifest = folder.read_manifest()
        if manifest["run_id"] != config.run_id:
            raise StorageError(
                f"'{folder.config_path}' was changed after the run began: its run id is "
                f"{config.run_id}, and '{folder.manifest_path}' has {manifest['run_id']}. Restore "
                "the config, or train the changed one into another folder."
            )
        return cls(folder, config=config)

    @property
    def path(self) -> Path:
        """The run folder."""
        return self._folder.path

    @property
    def config(self) -> RunConfig:
        """What determined the run."""
        return self._config

    @property
    def run_id(self) -> str:
        """16 hex digits that identify the config."""
        return self._config.run_id

    @property
    def manifest(self) -> dict[str, Any]:
        """What the run was made with and how it ended, read afresh from manifest.json."""
        return self._folder.read_manifest()

    @property
    def status(self) -> str:
        """How the run stands, read afresh from disk.

        `finished`: all steps, or the early stop. `stopped`: by Ctrl-C. `diverged`: the loss was
        not a finite number (`manifest["step"]` says when). `failed`: by an error
        (`manifest["error"]`). `running`: a process is training it. `interrupted`: the manifest
        says running, and its process is dead (where that can be told; else `running`).
        Stopped, interrupted and failed runs go on with `train(config, out=..., resume=True)`.
        """
        status: str = self.manifest["status"]
        if status == "running" and is_being_trained(self.path) is False:
            return "interrupted"
        return status

    @property
    def last_step(self) -> int:
        """The last step that is on disk, read afresh.

        Of a run that has ended, the step at which it did; else the last one that was evaluated or
        kept. Files that are damaged are passed over here, and refused where they are read.
        """
        manifest = self.manifest
        steps = [int(manifest.get("step") or 0)]
        if manifest["status"] == "running":  # the manifest is not written again until the end
            with suppress(StorageError):
                curves = read_curves(self._folder.curves_path, torn_end_allowed=True)
                steps += [int(record["step"]) for record in curves[-1:]]
            with suppress(StorageError):
                steps += self._folder.checkpoint_files()
        return max(steps)

    def curves(self) -> pd.DataFrame:
        """The learning curves: one row per evaluated step and split.

        Returns:
            Columns step, split, loss (nats), accuracy and shortcut_rate (fractions in [0, 1]) and
            n (examples). An empty split has NaN and n = 0. Of a sequence task, accuracy is the
            exact match of the whole answer, and shortcut_rate is NaN, since there is no shortcut.

        Raises:
            StorageError: If a line of curves.jsonl is damaged; or the run has ended, and the file
                is missing, or ends before a finished run did.
        """
        path, manifest = self._folder.curves_path, self.manifest
        status, step = manifest["status"], manifest.get("step")
        records = read_curves(path, torn_end_allowed=status not in ENDED)
        if status == "finished" or (status == "diverged" and step != 0 and not path.exists()):
            last = records[-1]["step"] if step is None and records else step
            check_reached(path, records, step=last or 0)
        return curves_frame(records)

    @property
    def ood_length(self) -> int | None:
        """The held-out length that a finished run of a sequence task is asked about.

        The shortest one whose exact match at the end of training is from 0.2 to 0.75. None: no
        length qualifies, and the run is excluded; `ood_accuracies` say why.

        Raises:
            StorageError: If the run is of another task, or not finished.
        """
        length: int | None = self._of_sequences("ood_length")
        return length

    @property
    def ood_accuracies(self) -> dict[int, float]:
        """The exact match at each held-out length at the end of training, a fraction in [0, 1].

        Each is over `config.task.n_per_length` examples.

        Raises:
            StorageError: If the run is of another task, or not finished.
        """
        found: dict[str, float] = self._of_sequences("ood_accuracies")
        return {int(length): accuracy for length, accuracy in found.items()}

    def _of_sequences(self, name: str) -> Any:
        manifest = self.manifest
        if name not in manifest:
            why = (
                f"its status is {self.status!r}. Train it to its end (`resume=True`)"
                if isinstance(self._config.task, SequenceConfig)
                else "its task has no held-out lengths"
            )
            raise StorageError(f"'{self.path}' has no `{name}`: {why}.")
        return manifest[name]

    def trajectory(self, task: Task | None = None) -> Trajectory:
        """The run's checkpoints as a `Trajectory`.

        Args:
            task: The task, where the run's rule is a function of your own that is not registered.
        """
        from interp_shortcuts.runs.trajectory import Trajectory

        return Trajectory.open(self.path, task=task)

    def __repr__(self) -> str:
        name = f"{self._config.name}, " if self._config.name else ""
        return (
            f"Run({name}{self.status}, step {self.last_step} of "
            f"{self._config.schedule.n_steps}, {self._config.task.label}, "
            f"seed {self._config.seed}, path='{self.path}')"
        )
