"""Several seeds of one setting trained in step, their weights stacked into one tensor each.

One vectorised forward and backward serves all seeds, which pays where a single one leaves the
processor waiting: small batches, or a GPU. Every seed keeps its own model (its parameters are views
into the stacks), optimiser, batches, folder and state to resume from, so a stacked seed is resumed
alone and the other way round. It follows the seed trained alone up to rounding, whatever its
neighbours are. When stacking pays is decided by `stacking_pays`; what a run writes is `session`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call, vmap
from tqdm.auto import tqdm

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.build import eager
from interp_shortcuts.models.chunks import POSITIONS_AT_ONCE
from interp_shortcuts.models.staged import ReadPosition
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.lock import training_lock
from interp_shortcuts.runs.run import Run
from interp_shortcuts.runs.store import RunFolder
from interp_shortcuts.tasks.config import TaskConfig
from interp_shortcuts.tasks.sequence_config import SequenceConfig
from interp_shortcuts.training.classification import Classification
from interp_shortcuts.training.environment import training_environment
from interp_shortcuts.training.evaluation import Scores
from interp_shortcuts.training.loop import Trainee, ending, turns
from interp_shortcuts.training.objective import the_task
from interp_shortcuts.training.session import Session, ended_run, read_state

STACKED_POSITIONS = 1024
"""On a CPU, seeds are stacked where a batch has at most so many positions (examples x length)."""


def stacking_pays(config: RunConfig, *, device: str = "cpu") -> bool:
    """Whether several seeds are trained faster in step than one after another, by a fixed rule.

    On a GPU always. On a CPU where a batch is small: at most `STACKED_POSITIONS` positions. A
    full batch shares what its sequences have in common, which stacked seeds, whose examples
    differ, cannot. `benchmarks/seeds.py` measures both sides of the rule. Other kinds of task are
    never stacked: each seed of a sequence task draws a length of its own at every step.
    """
    if not isinstance(config.task, TaskConfig):
        return False
    if torch.device(device).type != "cpu":
        return True
    size = config.optim.batch_size
    return size is not None and size * config.task.context <= STACKED_POSITIONS


def train_stacked(
    configs: Sequence[RunConfig],
    *,
    outs: Sequence[str | Path],
    resume: bool = False,
    progress: bool = True,
    threads: int | None = None,
    device: str = "cpu",
) -> list[Run | Exception]:
    """Trains seeds of one setting together, each into its own folder.

    Losses follow those of the same seeds trained alone up to rounding; on a CPU they do not depend
    on which seeds are stacked with them beyond that either. A seed that diverges or fails leaves
    the stack, and the others go on. Seeds that resume from an earlier step than others catch up
    first.

    Args:
        configs: Runs that differ in `seed` and `name` alone.
        outs: A run folder for each.
        resume: Go on with the runs in the folders; those that have ended are returned at once.
        progress: Whether a bar shows the step that all seeds have reached.
        threads: Torch's thread count for the duration; None: torch's current one.
        device: Where to train, e.g. `"cuda"`.

    Returns:
        For each seed its run, or what its training raised (its folder says `failed`).

    Raises:
        ConfigError: If the configs differ in more than the seed, there are not as many folders, or
            the task is no shortcut task.
        StorageError: If a folder holds something else, or is damaged; nothing is trained then.
        KeyboardInterrupt: After Ctrl-C; every run that was not done is marked `stopped`.
    """
    _check(configs, outs)
    folders = [RunFolder(Path(out)) for out in outs]
    ended = [ended_run(f, c, resume=resume) for f, c in zip(folders, configs, strict=True)]
    failures: dict[int, Exception] = {}
    with ExitStack() as stack:
        threads = torch.get_num_threads() if threads is None else threads
        stack.enter_context(training_environment(threads=threads, device=torch.device(device)))
        going = [index for index in range(len(folders)) if not ended[index]]
        tasks = {index: the_task(configs[index], None) for index in going}
        states = {}
        for index in going:
            folders[index].create()
            stack.enter_context(training_lock(folders[index].path))
            found = read_state(folders[index], configs[index], tasks[index]) if resume else None
            states[index] = found
        members = []
        for index in going:
            config, state = configs[index], states[index]
            session = Session(folders[index], config, config.spec, tasks[index], threads)
            session.begin(state, device=device, stacked=len(going))
            trainee = Trainee.start(config, tasks[index], state, device=device)
            due = turns(session, trainee, resumed=state is not None)
            members.append(_Member(index, session, trainee, due))
        if members:
            _in_step(members, failures, progress=progress)
    return [failures.get(i) or Run.open(folder.path) for i, folder in enumerate(folders)]


class StackedLoss:
    """The mean losses of several models, each on examples of its own, and all their gradients."""

    def __init__(self, trainees: Sequence[Trainee]) -> None:
        """Move the models' parameters into stacks, of which they are views from now on."""
        self.task = _classification(trainees[0]).task
        models = [eager(trainee.model) for trainee in trainees]
        self._read = ReadPosition(models[0], self.task.read_position)
        self._stacks: dict[str, Tensor] = {}
        self._parameters: dict[str, list[nn.Parameter]] = {}
        for name, first in self._read.named_parameters():
            own = [model.get_parameter(name.removeprefix("model.")) for model in models]
            values = torch.stack([parameter.detach() for parameter in own])
            for parameter, value in zip(own, values, strict=True):
                parameter.data = value
            self._stacks[name] = values.requires_grad_(first.requires_grad)
            self._parameters[name] = own
        device = models[0].W_E.device
        splits = [_classification(trainee).task.split("train") for trainee in trainees]
        self._tokens = torch.stack([split.tokens for split in splits]).to(device)
        self._labels = torch.stack([split.labels for split in splits]).to(device)
        self._autocast = trainees[0].config.optim.precision == "bfloat16"

    def backward(self, batches: Sequence[Int[Tensor, " example"] | None]) -> list[float]:
        """Put the gradient of each model's mean loss into its parameters' `grad`.

        Args:
            batches: The training examples of each model, as many for each; None for all of them.

        Returns:
            The mean losses, in nats.
        """
        tokens, labels = self._tokens, self._labels
        if batches[0] is not None:
            rows = torch.stack([batch for batch in batches if batch is not None]).to(labels.device)
            tokens = torch.stack([own[row] for own, row in zip(tokens, rows, strict=True)])
            labels = labels.gather(1, rows)
        n_models, n_examples, n_positions = tokens.shape
        at_once = max(1, POSITIONS_AT_ONCE // (n_models * n_positions))
        for stack in self._stacks.values():
            stack.grad = None
        totals = torch.zeros(n_models, dtype=torch.float64)
        with torch.autocast(labels.device.type, dtype=torch.bfloat16, enabled=self._autocast):
            for part, answers in zip(
                tokens.split(at_once, dim=1), labels.split(at_once, dim=1), strict=True
            ):
                logits = vmap(self._logits)(self._stacks, part)
                each = self.task.loss(logits.float().flatten(0, 1), answers.flatten())
                losses = each.unflatten(0, (n_models, -1)).sum(1) / n_examples
                losses.sum().backward()
                totals += losses.detach().cpu()
        for name, stack in self._stacks.items():
            if stack.grad is not None:
                for parameter, gradient in zip(self._parameters[name], stack.grad, strict=True):
                    parameter.grad = gradient
        return totals.tolist()

    def _logits(
        self, weights: dict[str, Tensor], tokens: Int[Tensor, "example position"]
    ) -> Float[Tensor, "example class"]:
        return functional_call(self._read, weights, (tokens,))


@dataclass(eq=False)
class _Member:
    """A seed in training."""

    index: int
    session: Session
    trainee: Trainee
    turns: Iterator[Scores]


def _in_step(members: list[_Member], failures: dict[int, Exception], *, progress: bool) -> None:
    """Train all members to their ends; those that are behind go first, until all are in step."""
    last = members[0].session.config.schedule.n_steps
    label = f"{members[0].session.label}, {len(members)} seeds"
    waiting = list(members)
    step = min(member.trainee.step for member in members)
    with tqdm(total=last, initial=step, disable=not progress, desc=label, unit="step") as bar:
        try:
            waiting = [member for member in waiting if _turn(member, failures)]
            stacked: list[_Member] = []
            loss: StackedLoss | None = None
            while waiting:
                step = min(member.trainee.step for member in waiting)
                bar.update(step - bar.n)
                group = [member for member in waiting if member.trainee.step == step]
                if loss is None or group != stacked:
                    stacked, loss = group, StackedLoss([member.trainee for member in group])
                losses = loss.backward(
                    [_classification(member.trainee).batches.next() for member in group]
                )
                done = [
                    member
                    for member, value in zip(group, losses, strict=True)
                    if not _turn(member, failures, value)
                ]
                waiting = [member for member in waiting if member not in done]
            bar.update(last - bar.n)
        except KeyboardInterrupt:
            for member in waiting:
                member.session.end("stopped", step=member.trainee.step)
            raise


def _turn(member: _Member, failures: dict[int, Exception], loss: float | None = None) -> bool:
    """Update one seed, if it has a loss, and take its next turn; whether it goes on."""
    going_on = False
    try:
        with ending(member.session, member.trainee):
            if loss is not None:
                member.trainee.update(loss)
            going_on = next(member.turns, None) is not None
    except Exception as error:  # its folder says so; the other seeds go on
        failures[member.index] = error
    return going_on


def _classification(trainee: Trainee) -> Classification:
    """What a stacked seed is trained towards; `_check` has refused all else."""
    assert isinstance(trainee.objective, Classification)
    return trainee.objective


def _next_batch(trainee: Trainee) -> Int[Tensor, " example"] | None:
    return _classification(trainee).batches.next()


def _check(configs: Sequence[RunConfig], outs: Sequence[str | Path]) -> None:
    if len(configs) != len(outs) or not configs:
        raise ConfigError(
            "`outs` must name a folder for each of at least one config; "
            f"got {len(outs)} for {len(configs)}."
        )
    for config in configs:
        if isinstance(config.task, SequenceConfig):
            raise ConfigError(
                "`configs` must be of a shortcut task to be stacked; those of a sequence task "
                f"(`operation` = {config.task.operation!r}) draw batches of different lengths. "
                "Train them one by one, or with `workers`."
            )
        if not isinstance(config.task, TaskConfig):
            raise ConfigError(
                f"`configs` must be of a shortcut task to be stacked; got {config.task.label}. "
                "Train them one by one, or with `workers`."
            )
        apart = sorted(set(configs[0].differences(config)) - {"seed"})
        if apart:
            raise ConfigError(
                f"`configs` must differ in `seed` alone to be stacked; they differ in "
                f"{', '.join(f'`{name}`' for name in apart)}."
            )
    if len({config.seed for config in configs}) < len(configs):
        raise ConfigError("`configs` must have different seeds; two of them are the same run.")
