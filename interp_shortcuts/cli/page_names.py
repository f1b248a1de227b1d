"""Which page over runs each run of a folder belongs to.

Runs with a shortcut share the index. Runs of a sequence task that differ in nothing but the seed
share a page (`gap_pages`); runs under label noise share one for each kind of task, whatever they
differ in (`noise_pages`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from interp_shortcuts.canonical import canonical_json
from interp_shortcuts.errors import InterpShortcutsError
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.run import Run
from interp_shortcuts.tasks.any_config import NOISY_CONFIGS
from interp_shortcuts.tasks.modular_config import ModularConfig
from interp_shortcuts.tasks.sequence_config import SequenceConfig

INDEX = "index.html"


def is_of_sequences(config: RunConfig | None) -> bool:
    """Whether a run is one of a sequence task."""
    return config is not None and isinstance(config.task, SequenceConfig)


def is_under_noise(config: RunConfig | None) -> bool:
    """Whether a run is one of a task with wrong training labels."""
    return config is not None and isinstance(config.task, NOISY_CONFIGS)


def page_names(paths: Sequence[Path]) -> dict[Path, str]:
    """The page over runs that each run belongs to, by its folder.

    Returns:
        `index.html` for runs that cannot be read, for those with a shortcut, and, if there are none
        of these, for the runs of the first other page; `sorting.html`, `sorting-2.html` and so on
        for sequence settings; `modular.html` and `digits.html` for runs under label noise.
    """
    configs = {path: _config(path) for path in paths}
    known = [config for config in configs.values() if config is not None]
    with_shortcut = any(not _page_key(config) for config in known)
    names: dict[str, str] = {"": INDEX}
    for config in known:
        key = _page_key(config)
        if key in names:
            continue
        stem = _stem(config)
        number = 1 + sum(name.startswith(stem) for name in names.values())
        suffix = "" if number == 1 else f"-{number}"
        first = len(names) == 1 and not with_shortcut
        names[key] = INDEX if first else f"{stem}{suffix}.html"
    return {
        path: names[_page_key(config) if config is not None else ""]
        for path, config in configs.items()
    }


def relative(target: Path, start: Path) -> str:
    """The address of a page as seen from a folder."""
    return Path(os.path.relpath(target, start)).as_posix()


def _page_key(config: RunConfig) -> str:
    """Equal for runs that share a page; empty for those with a shortcut."""
    if is_of_sequences(config):
        return canonical_json(config.model_copy(update={"seed": 0, "name": ""}))
    return _stem(config) if is_under_noise(config) else ""


def _stem(config: RunConfig) -> str:
    task = config.task
    if isinstance(task, SequenceConfig):
        return task.operation
    return "modular" if isinstance(task, ModularConfig) else "digits"


def _config(path: Path) -> RunConfig | None:
    try:
        return Run.open(path).config
    except (InterpShortcutsError, OSError):
        return None
