"""What a run is trained towards: the seam between the training loop and the kinds of task.

The loop, what it writes and what it resumes from know the members of `Objective` alone.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.any_model import AnyModel
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.tasks.base import AnswerTask, Task, is_answered
from interp_shortcuts.tasks.config import TaskConfig
from interp_shortcuts.tasks.described import task_of
from interp_shortcuts.tasks.digits import Digits
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.tasks.noisy_task import is_noisy_task
from interp_shortcuts.tasks.sequences import SequenceTask
from interp_shortcuts.tasks.task import ShortcutTask
from interp_shortcuts.training.classification import Classification
from interp_shortcuts.training.evaluation import Scores
from interp_shortcuts.training.fresh_sequences import FreshSequences
from interp_shortcuts.training.noisy_classification import NoisyClassification
from interp_shortcuts.training.optim import check_optimizer


@runtime_checkable
class Objective(Protocol):
    """How a step's gradient comes about, what is evaluated, and when it is enough."""

    def backward(self) -> float:
        """Take the next batch, add the gradient of its mean loss to the parameters' `grad`.

        Returns:
            The mean loss, in nats.
        """
        ...

    def evaluate(self) -> Scores:
        """The scores on every split; neither the model nor the next batches change by it."""
        ...

    @property
    def patience(self) -> int | None:
        """After how many evaluations in a row at the goal training stops; None: never."""
        ...

    def is_reached(self, scores: Scores) -> bool:
        """Whether an evaluation is at the goal."""
        ...

    def shown(self, scores: Scores) -> dict[str, float]:
        """What a progress bar shows of an evaluation."""
        ...

    def outcome(self, scores: Scores) -> dict[str, Any]:
        """What the manifest says of the last evaluation of a finished run, fit for JSON."""
        ...

    def state(self) -> dict[str, Tensor]:
        """What the next batches depend on, the random state under `generator`."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state()`.

        Raises:
            StorageError: If something is missing.
        """
        ...


def objective_of(config: RunConfig, task: Task, model: AnyModel) -> Objective:
    """The objective of a run.

    Args:
        config: The run.
        task: Its task, from `the_task`.
        model: The model in training, whose parameters receive the gradients.

    Raises:
        ConfigError: If the model cannot be trained on a task of this kind.
    """
    if is_noisy_task(task):
        return NoisyClassification(config, task, model)
    if not isinstance(model, HookedTransformer):
        raise ConfigError(
            f"`model` must be a HookedTransformer for the task {task.name}; got "
            f"{type(model).__name__}."
        )
    if isinstance(task, SequenceTask):
        return FreshSequences(config, task, model)
    return Classification(config, _answered(task), model)


def the_task(config: RunConfig, task: Task | None) -> Task:
    """The config's task, or the given one if it is what the config describes.

    Raises:
        ConfigError: If it is not, or cannot be trained.
    """
    if task is None:
        task = task_of(config.task, seed=config.seed)
    else:
        _check_described(config, task)
    _ = task.splits  # drawn now: a task whose examples do not exist says so itself
    if is_noisy_task(task):
        NoisyClassification.check(config, task)
    elif not isinstance(task, SequenceTask):
        Classification.check(config, _answered(task))
    check_optimizer(config.optim, config.spec)
    return task


def _check_described(config: RunConfig, task: Task) -> None:
    """A user's task of another make is taken as it is; those of this package are compared."""
    ours = isinstance(task, SequenceTask | ModularArithmetic | Digits)
    if ours or not isinstance(config.task, TaskConfig):
        described: Task = task_of(config.task, seed=config.seed)
    elif isinstance(task, ShortcutTask):
        described = ShortcutTask.from_config(config.task, seed=config.seed, rule=task.rule)
    else:
        return
    if described.fingerprint == task.fingerprint:
        return
    wanted, given = _fields_of(described), _fields_of(task)
    differing = ", ".join(
        f"`{name}` (={wanted.get(name)!r} in the config, {given.get(name)!r} in the task)"
        for name in dict.fromkeys([*wanted, *given])
        if wanted.get(name) != given.get(name)
    )
    raise ConfigError(
        f"`task` is not what `config.task` describes; they differ in {differing}. "
        "Use `config.replace(task=task.config)`."
    )


def _fields_of(task: Task) -> dict[str, Any]:
    config = getattr(task, "config", None)
    return {"name": task.name} if config is None else config.model_dump(exclude={"stop_at"})


def _answered(task: Task) -> AnswerTask:
    if not is_answered(task):
        raise ConfigError(
            "`task` must be a SequenceTask, or have the members of an AnswerTask or a NoisyTask; "
            f"got {type(task).__name__}."
        )
    return task
