"""What a run folder holds before, during and after training, and in which order it is written.

At any moment a kill leaves a folder that resumes to the same end: checkpoints are written before
the line of the learning curve, both before the state to resume from, and whatever lies beyond that
state is dropped and made again. The arithmetic of training is left to `loop.py`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from torch import Tensor

from interp_shortcuts.errors import StorageError
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.runs.checkpoint import read_header, save_checkpoint
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.curves import append_curve, cut_curves
from interp_shortcuts.runs.schedule import evaluation_steps, kept_steps
from interp_shortcuts.runs.store import ENDED, MANIFEST_FORMAT, RunFolder
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.training.environment import describe_environment
from interp_shortcuts.training.resume import ResumeState, load_resume, save_resume

log = logging.getLogger("interp_shortcuts.training")


def ended_run(folder: RunFolder, config: RunConfig, *, resume: bool) -> bool:
    """Whether the folder holds this very run, ended, so that nothing is left to do.

    Raises:
        StorageError: If the folder holds something that must not be written over.
    """
    if folder.is_empty:
        return False
    if not folder.looks_like_a_run:
        raise StorageError(
            f"'{folder.path}' is not empty and not a run folder. Choose another `out`."
        )
    if not resume:
        raise StorageError(
            f"'{folder.path}' already holds a run. Go on with it by `resume=True`, choose another "
            "`out`, or delete the folder."
        )
    differences = config.differences(folder.read_config())
    if differences:
        listed = ", ".join(
            f"`{name}` (={ours!r}, in the folder {theirs!r})"
            for name, (ours, theirs) in differences.items()
        )
        raise StorageError(
            f"'{folder.path}' holds another run; its config differs in {listed}. Choose another "
            "`out`, or train with the folder's own config."
        )
    return folder.manifest_path.exists() and folder.read_manifest()["status"] in ENDED


@dataclass
class Session:
    """One process's turn at training a run: it writes everything that the folder holds."""

    folder: RunFolder
    config: RunConfig
    spec: AnySpec
    task: Task
    threads: int
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What the run is called on a progress bar."""
        return self.config.name or self.task.name

    def begin(self, state: ResumeState | None, *, device: str, **facts: Any) -> None:
        """Make the folder ready: clean up after a kill, and write config and manifest.

        Args:
            state: What the run goes on from, if anything.
            device: Where it is trained.
            facts: What else the manifest says of this turn.
        """
        step = -1 if state is None else state.step
        self.folder.remove_leftovers()
        self._drop_beyond(step)
        former = self.folder.read_manifest() if self.folder.manifest_path.exists() else {}
        if not self.folder.config_path.exists():
            self.folder.write_config(self.config)
        self.folder.checkpoints_path.mkdir(exist_ok=True)
        self.manifest = {
            "format": MANIFEST_FORMAT,
            "run_id": self.config.run_id,
            "status": "running",
            "step": max(step, 0),
            "started": former.get("started", _now()),
            "finished": None,
            **describe_environment(),
            "device": device,
            "threads": self.threads,
            "task_fingerprint": self.task.fingerprint,
            "task": self.task.record,
            "resumed": former.get("resumed", []),
            "warnings": former.get("warnings", []),
            **facts,
        }
        if former:
            turn = {"step": max(step, 0), "threads": self.threads, "at": _now()}
            self.manifest["resumed"] = [*self.manifest["resumed"], turn]
        if state is not None and state.threads != self.threads:
            self.warn(
                f"Resumed at step {state.step} with {self.threads} threads after {state.threads}: "
                "the rest of the run differs in rounding from an uninterrupted one."
            )
        self.folder.write_manifest(self.manifest)

    def warn(self, message: str) -> None:
        """Log a warning (Python shows it on stderr unless told otherwise) and keep it."""
        log.warning("%s: %s", self.folder.path, message)
        self.manifest["warnings"] = [*self.manifest["warnings"], message]

    def keep(self, step: int, weights: dict[str, Tensor]) -> None:
        """Write a checkpoint."""
        save_checkpoint(self.folder.checkpoint_path(step), weights, step=step, spec=self.spec)

    def record(self, step: int, scores: dict[str, dict[str, Any]]) -> None:
        """Append to the learning curves, once the step's checkpoint is written."""
        append_curve(self.folder.curves_path, {"step": step, **scores})

    def save(self, state: ResumeState) -> None:
        """Write the state to resume from, once all that belongs to its step is written."""
        save_resume(self.folder.resume_path, state)

    def end(self, status: str, *, step: int, **facts: Any) -> None:
        """Write how the run ended; an ended one lists its checkpoints and their hashes."""
        self.manifest |= {"status": status, "step": step, "finished": _now(), **facts}
        if status in ENDED:
            self.manifest["checkpoints"] = {
                str(kept): read_header(path, spec=self.spec).content_hash
                for kept, path in self.folder.checkpoint_files().items()
            }
        self.folder.write_manifest(self.manifest)

    def _drop_beyond(self, step: int) -> None:
        """Delete what a kill left beyond a step, and make sure that the rest is all there."""
        schedule = self.config.schedule
        files = self.folder.checkpoint_files()
        for kept in kept_steps(schedule):
            if kept <= step:
                read_header(files.get(kept, self.folder.checkpoint_path(kept)), spec=self.spec)
        for kept, path in files.items():
            if kept > step:
                path.unlink()
        expected = [one for one in evaluation_steps(schedule) if one <= step]
        cut_curves(self.folder.curves_path, after=step, expected=expected)


def read_state(folder: RunFolder, config: RunConfig, task: Task) -> ResumeState | None:
    """The state to resume from; None if the run was killed before there was one.

    Raises:
        StorageError: If it is damaged, or of another run or task.
    """
    if not folder.resume_path.exists():
        return None
    state = load_resume(folder.resume_path)
    for name, ours, theirs in (
        ("run_id", config.run_id, state.run_id),
        ("task_fingerprint", task.fingerprint, state.task_fingerprint),
    ):
        if ours != theirs:
            raise StorageError(
                f"'{folder.resume_path}' belongs to another run: its `{name}` is {theirs}, "
                f"expected {ours}. Give the task and config that the run began with."
            )
    return state


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
