"""What is learned: rules, shortcuts, features of the integers, and the splits drawn from them.

The names below load on first use; `config`, `features` and `rules` need no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from interp_shortcuts.tasks.base import Task as Task
    from interp_shortcuts.tasks.config import TaskConfig as TaskConfig
    from interp_shortcuts.tasks.features import FEATURES as FEATURES
    from interp_shortcuts.tasks.features import Feature as Feature
    from interp_shortcuts.tasks.features import feature as feature
    from interp_shortcuts.tasks.rules import RULES as RULES
    from interp_shortcuts.tasks.rules import TaskRule as TaskRule
    from interp_shortcuts.tasks.rules import register_rule as register_rule
    from interp_shortcuts.tasks.rules import rule as rule
    from interp_shortcuts.tasks.split import Split as Split
    from interp_shortcuts.tasks.task import ShortcutTask as ShortcutTask

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "FEATURES": ".features",
        "RULES": ".rules",
        "Feature": ".features",
        "ShortcutTask": ".task",
        "Split": ".split",
        "Task": ".base",
        "TaskConfig": ".config",
        "TaskRule": ".rules",
        "feature": ".features",
        "register_rule": ".rules",
        "rule": ".rules",
    },
)
