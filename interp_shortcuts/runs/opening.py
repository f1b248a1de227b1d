"""What is checked before a run folder or a user's checkpoints become a trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from interp_shortcuts.errors import InterpShortcutsError, StorageError
from interp_shortcuts.models.any_model import misfit
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.schedule import kept_steps
from interp_shortcuts.runs.store import TRAIN_ANEW, RunFolder
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.tasks.described import task_of


def check_complete(
    folder: RunFolder,
    config: RunConfig,
    files: Mapping[int, Path],
    listed: Mapping[str, str] | None,
) -> None:
    """Every checkpoint that the run wrote is there, and nothing else."""
    if not files and not listed:
        raise StorageError(
            f"'{folder.checkpoints_path}' holds no checkpoint yet. Wait for the run, or resume it "
            "with `train(config, out=..., resume=True)`."
        )
    if listed is None:
        expected = {step for step in kept_steps(config.schedule) if step <= max(files)}
        source = f"the schedule in '{folder.config_path}'"
    else:
        expected = {int(step) for step in listed}
        source = f"'{folder.manifest_path}'"
    for step in sorted(expected - set(files)):
        raise StorageError(
            f"'{folder.checkpoint_path(step)}' is missing, though {source} lists step {step}. "
            f"Restore it from a copy. Or: {TRAIN_ANEW}"
        )
    if listed is not None:
        for step in sorted(set(files) - expected):
            raise StorageError(
                f"'{files[step]}' does not belong to the run: {source} does not list step {step}. "
                "Move it out of the folder."
            )


def check_task(task: Task, *, spec: AnySpec) -> None:
    """The spec has the classes of the task, and room for what it asks."""
    fault = misfit(spec, task)
    if fault is not None:
        raise StorageError(
            f"The spec does not fit the task: {fault} Give the spec or the task that belongs to "
            "the weights."
        )


def check_fingerprint(task: Task, fingerprint: str | None, folder: RunFolder) -> None:
    """The task is the one that the run was trained on."""
    if fingerprint is not None and task.fingerprint != fingerprint:
        raise StorageError(
            f"The task is not the one that '{folder.path}' was trained on: its fingerprint is "
            f"{task.fingerprint}, and '{folder.manifest_path}' has {fingerprint}. Give the task "
            "with the run's own functions, sizes and seed as `task=`."
        )


def rebuild_task(config: RunConfig, fingerprint: str | None, folder: RunFolder) -> Task:
    """The task that a run's config describes."""
    try:
        task = task_of(config.task, seed=config.seed)
    except InterpShortcutsError as error:
        cure = "" if "`task=`" in str(error) else " Give it as `task=`."
        raise StorageError(
            f"The task of '{folder.path}' cannot be built from '{folder.config_path}': {error}"
            f"{cure}"
        ) from error
    check_fingerprint(task, fingerprint, folder)
    return task
