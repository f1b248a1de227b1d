"""What measures of sequence answers ask of a task, whichever task it is.

`SequenceTask` is one; a task of your own needs these members and no common parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeGuard, runtime_checkable

import torch

from interp_shortcuts.tasks.base import Task, TokenTask
from interp_shortcuts.tasks.target_split import TargetSplit

_MEMBERS = ("batch", "train_lengths", "heldout_lengths")


@runtime_checkable
class TargetTask(TokenTask, Protocol):
    """A task whose answer is a sequence of tokens, with lengths that are only evaluated.

    The split of each length n is called `length_<n>`.
    """

    @property
    def splits(self) -> Mapping[str, TargetSplit]:
        """The fixed splits by name, `length_<n>`."""
        ...

    def split(self, name: str) -> TargetSplit:
        """The split of that name.

        Raises:
            TaskError: If there is none; the message lists the names.
        """
        ...

    @property
    def train_lengths(self) -> tuple[int, ...]:
        """The lengths that are trained."""
        ...

    @property
    def heldout_lengths(self) -> tuple[int, ...]:
        """The lengths that are only evaluated, from the shortest on."""
        ...

    def batch(
        self, size: int, generator: torch.Generator, length: int | None = None
    ) -> TargetSplit:
        """Fresh sequences of one length."""
        ...


def is_target_task(task: Task) -> TypeGuard[TargetTask]:
    """Whether a task is a `TargetTask`, told by its members; no split is drawn."""
    return all(hasattr(type(task), name) or name in vars(task) for name in _MEMBERS)


def split_name(length: int) -> str:
    """The name of the split of a length."""
    return f"length_{length}"
