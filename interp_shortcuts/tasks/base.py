"""What training and measures ask of a task, whichever task it is.

A new kind of task needs no common parent: it has these members, and that is all. `Task` is what
every task has; a `TokenTask` is asked by tokens; `AnswerTask` is one whose answer is a single
class, read at one position. Tasks with wrong labels are in `noisy_task.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeGuard, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor

from interp_shortcuts.tasks.examples import Examples
from interp_shortcuts.tasks.split import Split


@runtime_checkable
class Task(Protocol):
    """A rule to learn, and its splits."""

    @property
    def name(self) -> str:
        """What the task is called in titles and file names."""
        ...

    @property
    def splits(self) -> Mapping[str, Examples]:
        """The fixed splits by name."""
        ...

    def split(self, name: str) -> Examples:
        """The split of that name.

        Raises:
            TaskError: If there is none; the message lists the names.
        """
        ...

    @property
    def n_classes(self) -> int:
        """Number of classes, and of logits that the loss takes."""
        ...

    @property
    def chance(self) -> float:
        """Accuracy of guessing a class uniformly, a fraction in (0, 1)."""
        ...

    @property
    def fingerprint(self) -> str:
        """Hash of everything that determines the splits (16 hex digits)."""
        ...

    @property
    def record(self) -> dict[str, Any]:
        """What the run's manifest says about the examples; fit for JSON."""
        ...


@runtime_checkable
class TokenTask(Task, Protocol):
    """A task whose examples are sequences of tokens."""

    @property
    def n_tokens(self) -> int:
        """Size of the input vocabulary."""
        ...

    @property
    def context(self) -> int:
        """Number of tokens in the longest example."""
        ...


@runtime_checkable
class AnswerTask(TokenTask, Protocol):
    """A task whose answer is one class, read at one position."""

    @property
    def splits(self) -> Mapping[str, Split]:
        """The fixed splits by name, `"train"` first."""
        ...

    def split(self, name: str) -> Split:
        """The split of that name.

        Raises:
            TaskError: If there is none; the message lists the names.
        """
        ...

    @property
    def read_position(self) -> int:
        """The position whose logits are the model's answer."""
        ...

    def loss(
        self, logits: Float[Tensor, "example class"], labels: Int[Tensor, " example"]
    ) -> Float[Tensor, " example"]:
        """Loss of each example, in nats, in float32 at least."""
        ...

    def predictions(self, logits: Float[Tensor, "example class"]) -> Int[Tensor, " example"]:
        """The predicted class of each example."""
        ...

    def correct(
        self, logits: Float[Tensor, "example class"], labels: Int[Tensor, " example"]
    ) -> Bool[Tensor, " example"]:
        """Whether each example is predicted right."""
        ...


def is_answered(task: Task) -> TypeGuard[AnswerTask]:
    """Whether a task is an `AnswerTask`, told by its `read_position`; nothing else is touched."""
    return hasattr(task, "read_position")
