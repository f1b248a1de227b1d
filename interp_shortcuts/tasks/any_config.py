"""The kinds of task that there are, by their written-down forms. Loads no torch.

A new kind is one member of the union, one line of the table, and one line in `described.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel

from interp_shortcuts.tasks.config import TaskConfig
from interp_shortcuts.tasks.digits_config import DigitsConfig
from interp_shortcuts.tasks.modular_config import ModularConfig
from interp_shortcuts.tasks.sequence_config import SequenceConfig

AnyTaskConfig: TypeAlias = TaskConfig | SequenceConfig | ModularConfig | DigitsConfig
"""What a run says of its task."""

TASK_MARKS: dict[type[BaseModel], tuple[str, ...]] = {
    SequenceConfig: ("operation",),
    ModularConfig: ("arithmetic", "modulus"),
    DigitsConfig: ("folder",),
    TaskConfig: ("rule",),
}
"""The fields by which each kind is known."""

NOISY_CONFIGS: tuple[type[BaseModel], ...] = (ModularConfig, DigitsConfig)
"""The kinds of task that have wrong training labels and no adversarial examples."""

NOISE_GROUPS = ("train", "clean", "noisy", "noisy_true", "test")
"""The splits of those kinds, in order; `noisy_true` is `noisy` with its true labels."""


def task_kind(fields: Mapping[str, Any]) -> type[BaseModel]:
    """The kind of task that has these fields: by its mark, else the first that has all of them.

    Without either it is a `TaskConfig`.
    """
    for kind, marks in TASK_MARKS.items():
        if any(mark in fields for mark in marks):
            return kind
    kinds = (TaskConfig, *TASK_MARKS)
    return next((kind for kind in kinds if fields.keys() <= kind.model_fields.keys()), TaskConfig)
