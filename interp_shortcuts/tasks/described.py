"""From the written-down form of a task, of whichever kind, to the task.

The kinds themselves are `task.py` and `sequences.py`.
"""

from __future__ import annotations

from interp_shortcuts.tasks.config import TaskConfig
from interp_shortcuts.tasks.sequence_config import SequenceConfig
from interp_shortcuts.tasks.sequences import SequenceTask
from interp_shortcuts.tasks.task import ShortcutTask


def task_of(config: TaskConfig | SequenceConfig, *, seed: int) -> ShortcutTask | SequenceTask:
    """The task that a config describes.

    Args:
        config: The config, e.g. of a run.
        seed: Seed of the examples, unless the config has a `data_seed`.

    Raises:
        ConfigError: If the config's rule is not registered.
        TaskError: If the rule is not the one that the config was made with.
    """
    if isinstance(config, SequenceConfig):
        return SequenceTask.from_config(config, seed=seed)
    return ShortcutTask.from_config(config, seed=seed)
