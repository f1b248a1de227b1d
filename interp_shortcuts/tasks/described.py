"""From the written-down form of a task, of whichever kind, to the task.

The kinds themselves are `task.py`, `sequences.py`, `modular.py` and `digits.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interp_shortcuts.tasks.any_config import AnyTaskConfig
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.tasks.config import TaskConfig
from interp_shortcuts.tasks.digits import Digits
from interp_shortcuts.tasks.digits_config import DigitsConfig
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.tasks.modular_config import ModularConfig
from interp_shortcuts.tasks.sequence_config import SequenceConfig
from interp_shortcuts.tasks.sequences import SequenceTask
from interp_shortcuts.tasks.task import ShortcutTask

_MAKERS: dict[type, Callable[..., Task]] = {
    TaskConfig: ShortcutTask.from_config,
    SequenceConfig: SequenceTask.from_config,
    ModularConfig: ModularArithmetic.from_config,
    DigitsConfig: Digits.from_config,
}


def task_of(
    config: AnyTaskConfig, *, seed: int
) -> ShortcutTask | SequenceTask | ModularArithmetic | Digits:
    """The task that a config describes.

    Args:
        config: The config, e.g. of a run.
        seed: Seed of the examples, unless the config has a `data_seed`.

    Raises:
        ConfigError: If the config's rule is not registered.
        TaskError: If the rule is not the one that the config was made with.
    """
    make: Any = _MAKERS[type(config)]
    return make(config, seed=seed)
