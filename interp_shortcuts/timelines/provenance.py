"""What a timeline says about where it comes from: run, task, spec, versions, time."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from interp_shortcuts.canonical import canonical_json
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.tasks.base import Task

PACKAGES = ("interp-shortcuts", "torch", "transformer-lens", "numpy", "xarray")


def timeline_attrs(
    *,
    task: Task,
    spec: AnySpec,
    run_id: str,
    source: str,
    config: RunConfig | None = None,
    path: Path | None = None,
) -> dict[str, str | int | float]:
    """The global attributes of a timeline's dataset.

    Args:
        task: What was asked.
        spec: The model.
        run_id: Identity of the run.
        source: `"run"`, `"checkpoints"` or `"observed"`.
        config: The run's config, where there is one.
        path: The run folder, of which only the name is kept.
    """
    task_config = getattr(task, "config", None)
    return {
        "run_id": run_id,
        "config": "" if config is None else canonical_json(config),
        "spec": canonical_json(spec),
        "task": "" if task_config is None else canonical_json(task_config),
        "task_fingerprint": task.fingerprint,
        "task_name": task.name,
        "n_classes": task.n_classes,
        "chance": float(task.chance),
        "seed": -1 if config is None else config.seed,
        "versions": canonical_json({name: _version(name) for name in PACKAGES}),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": source,
        "path": "" if path is None else path.resolve().name,
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
