"""A run that trains in a moment, shared by the tests of tracking."""

from __future__ import annotations

import shutil
from pathlib import Path

from interp_shortcuts.models.spec import Architecture
from interp_shortcuts.runs.checkpoint import load_checkpoint, save_checkpoint
from interp_shortcuts.runs.config import OptimConfig, RunConfig, ScheduleConfig
from interp_shortcuts.runs.run import Run
from interp_shortcuts.runs.store import RunFolder
from interp_shortcuts.tasks.config import TaskConfig
from interp_shortcuts.training.loop import train


def tiny_config(**schedule: int) -> RunConfig:
    return RunConfig(
        task=TaskConfig(n_train=64, n_validation=16, n_adversarial=16, n_integers=6, length=3),
        model=Architecture(d_model=8, d_mlp=8),
        optim=OptimConfig(lr=1e-2),
        schedule=ScheduleConfig.model_validate(
            {"n_steps": 8, "every": 2, "dense_until": 0, **schedule}
        ),
    )


def trained(folder: Path, **schedule: int) -> Run:
    return train(tiny_config(**schedule), out=folder, progress=False, threads=1)


def copied(run: Path, folder: Path) -> Path:
    """A copy of a run folder for one test to change."""
    return Path(shutil.copytree(run, folder))


def alter_checkpoint(folder: Path, step: int) -> None:
    """Replaces the weights at a step, as retraining the run would."""
    run = RunFolder(folder)
    spec = run.read_config().spec
    path = run.checkpoint_path(step)
    weights = {name: value + 0.1 for name, value in load_checkpoint(path, spec=spec).items()}
    digest = save_checkpoint(path, weights, step=step, spec=spec)
    manifest = run.read_manifest()
    if "checkpoints" in manifest:
        manifest["checkpoints"][str(step)] = digest
        run.write_manifest(manifest)


def drop_last_checkpoints(folder: Path, n: int) -> None:
    """Makes the run as it was before its last `n` checkpoints were written."""
    run = RunFolder(folder)
    manifest = run.read_manifest()
    for step in list(run.checkpoint_files())[-n:]:
        run.checkpoint_path(step).unlink()
        manifest.get("checkpoints", {}).pop(str(step), None)
    run.write_manifest(manifest)
