"""One run as a piece of work for any process: what is asked, how it is done, how it ended.

Engines decide where and when. Torch is imported with the first run, so that a process that takes
many of them imports it once.
"""

from __future__ import annotations

import pickle
import runpy
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.lock import is_being_trained
from interp_shortcuts.runs.store import MANIFEST_FORMAT, RunFolder

SECONDS_FOR_A_DYING_PROCESS = 30.0
"""How long a run waits for a process that was told to end, and still holds the run's lock."""


@dataclass(frozen=True)
class Assignment:
    """One run to train, as it is handed to a worker."""

    config: RunConfig
    path: Path
    threads: int | None = 1
    device: str = "cpu"
    resume: bool = True
    progress: bool = False
    script: Path | None = None
    """A script to be run before, for the rules that it registers."""


@dataclass(frozen=True)
class Ending:
    """How an attempt at a run ended."""

    status: str
    """`finished`, `diverged`, `failed`, `stopped` or `lost` (its worker died)."""
    seconds: float = 0.0
    """How long it trained."""
    error: Exception | None = None
    """What was raised, if it failed or was lost."""
    reason: str = ""
    """Why it diverged."""

    @property
    def text(self) -> str:
        """Why it did not finish, as it is recorded."""
        return f"{type(self.error).__name__}: {self.error}" if self.error else self.reason


def perform(assignment: Assignment) -> Ending:
    """Trains the run in this process; what goes wrong is part of how it ended.

    Raises:
        KeyboardInterrupt: If it was told to stop; the run is marked `stopped`.
    """
    began = time.monotonic()
    try:
        if assignment.script is not None:
            run_script(assignment.script)

        from interp_shortcuts.training.loop import train

        _wait_until_free(assignment.path)
        began = time.monotonic()
        run = train(
            assignment.config,
            out=assignment.path,
            resume=assignment.resume,
            threads=assignment.threads,
            device=assignment.device,
            progress=assignment.progress,
        )
        reason = str(run.manifest.get("error") or "")
        return Ending(run.status, time.monotonic() - began, reason=reason)
    except Exception as error:  # whatever went wrong: the other runs go on
        _record_failure(assignment, error)
        return Ending("failed", time.monotonic() - began, _sendable(error))


def run_script(path: Path) -> dict[str, Any]:
    """The names that a script defines; it is run once in a process, until it is changed.

    It finds the modules beside it, as it does under `python`.
    """
    return _run_script(path, path.read_bytes())


@cache
def _run_script(path: Path, content: bytes) -> dict[str, Any]:  # noqa: ARG001 - part of the key
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return runpy.run_path(str(path), run_name=f"sweep_script_{path.stem}")


def _wait_until_free(path: Path) -> None:
    """A killed driver's workers end within moments; until then their runs are locked."""
    deadline = time.monotonic() + SECONDS_FOR_A_DYING_PROCESS
    while is_being_trained(path) and time.monotonic() < deadline:
        time.sleep(0.1)


def _record_failure(assignment: Assignment, error: Exception) -> None:
    """Leaves a folder that says `failed` where training stopped before it made one itself."""
    folder = RunFolder(assignment.path)
    if not folder.is_empty:
        return  # training wrote its own status, or the folder is not ours
    folder.create()
    folder.write_config(assignment.config)
    folder.write_manifest(
        {
            "format": MANIFEST_FORMAT,
            "run_id": assignment.config.run_id,
            "status": "failed",
            "error": f"{type(error).__name__}: {error}",
        }
    )


def _sendable(error: Exception) -> Exception:
    """The error, or its text where it cannot be sent to another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
