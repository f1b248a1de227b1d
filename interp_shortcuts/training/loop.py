"""`train`: from a config to a run folder.

The steps themselves are here: gradient, update, evaluation. Which examples a step takes, how their
gradient is computed and what is evaluated is the `objective`'s business; what is written, and in
which order, is `session.py`'s.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from tqdm.auto import tqdm

from interp_shortcuts.errors import ConfigError, DivergedError
from interp_shortcuts.models.any_model import AnyModel, build_any, load_any, weights_of_any
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.lock import training_lock
from interp_shortcuts.runs.run import Run
from interp_shortcuts.runs.schedule import evaluation_steps, kept_steps
from interp_shortcuts.runs.store import RunFolder
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.training.environment import training_environment
from interp_shortcuts.training.evaluation import Scores
from interp_shortcuts.training.objective import Objective, objective_of, the_task
from interp_shortcuts.training.optim import learning_rate, make_optimizer, set_learning_rate
from interp_shortcuts.training.resume import ResumeState
from interp_shortcuts.training.session import Session, ended_run, log, read_state


def train(
    config: RunConfig,
    *,
    out: str | Path,
    task: Task | None = None,
    resume: bool = False,
    progress: bool = True,
    threads: int | None = None,
    device: str = "cpu",
) -> Run:
    """Train one run into a folder, with its checkpoints and learning curves.

    The same config with the same thread count gives the same bits, also when the run is killed
    at any moment and resumed. Global random state is neither read nor changed.

    A loss that is not a finite number ends the run with status `diverged`: `train` logs a
    warning (on stderr, unless logging is set up otherwise) and returns the run with what it
    has. Ctrl-C marks the run `stopped` and any other error marks it `failed`; both are raised
    again, and `resume=True` goes on from the last saved state.

    Args:
        config: What to train.
        out: The run folder: missing, empty or, with `resume`, of the same run.
        task: The task, where the config's rule is a function of your own that is not registered;
            it must be the one that the config describes (`config.replace(task=task.config)`).
        resume: Go on with the run in `out`, if there is one. A run that has ended is returned at
            once.
        progress: Whether a progress bar shows the step and how well the model does: validation
            and adversarial accuracy, or exact match at the training lengths and the first held-out
            one.
        threads: Torch's thread count for the duration; None: the count that the run began with
            when resuming, else torch's current one.
        device: Where to train, e.g. `"cuda"`; bits are only promised on `"cpu"`.

    Returns:
        The run.

    Raises:
        ConfigError: If `config` is no `RunConfig`, the task is not the config's, or a setting is
            impossible.
        StorageError: If the folder holds something else, or is damaged.
    """
    if not isinstance(config, RunConfig):
        raise ConfigError(f"`config` must be a RunConfig; got {type(config).__name__}.")
    if threads is not None and threads < 1:
        raise ConfigError(f"`threads` must be at least 1; got {threads}.")
    folder = RunFolder(Path(out))
    if ended_run(folder, config, resume=resume):
        run = Run.open(folder.path)
        if run.status == "diverged":
            log.warning("%s: the run diverged earlier and is returned as it is", folder.path)
        return run
    task = the_task(config, task)
    folder.create()
    with training_lock(folder.path):
        state = read_state(folder, config, task) if resume else None
        if threads is None:
            threads = torch.get_num_threads() if state is None else state.threads
        with training_environment(threads=threads, device=torch.device(device)):
            session = Session(folder, config, config.spec, task, threads)
            session.begin(state, device=device)
            trainee = Trainee.start(config, task, state, device=device)
            _run_to_the_end(session, trainee, resumed=state is not None, progress=progress)
    return Run.open(folder.path)


@dataclass
class Trainee:
    """The model in training, and all that changes with each step."""

    config: RunConfig
    task: Task
    model: AnyModel
    optimizer: torch.optim.Optimizer
    objective: Objective
    step: int = 0
    perfect: int = 0

    @classmethod
    def start(
        cls, config: RunConfig, task: Task, state: ResumeState | None, *, device: str
    ) -> Trainee:
        """The initial model, or the one that a state holds."""
        model = build_any(config.spec, seed=config.seed, device=device)
        optimizer = make_optimizer(config.optim, model.parameters())
        objective = objective_of(config, task, model)
        trainee = cls(config, task, model, optimizer, objective)
        if state is not None:
            load_any(model, state.weights)
            optimizer.load_state_dict(state.optimizer)
            objective.restore(state.batches)
            trainee.step, trainee.perfect = state.step, state.perfect
        return trainee

    def advance(self) -> None:
        """One optimiser step on the mean loss of one batch.

        Raises:
            DivergedError: If the loss is not a finite number; the weights are then as before.
        """
        self.optimizer.zero_grad(set_to_none=True)
        self.update(self.objective.backward())

    def update(self, loss: float) -> None:
        """The optimiser's part of a step, from the gradients that the parameters hold.

        Args:
            loss: The mean loss that they are the gradients of, in nats.

        Raises:
            DivergedError: If it is not a finite number; the weights are then as before.
        """
        if not math.isfinite(loss):
            raise DivergedError(f"the loss is {loss} at step {self.step}")
        optim, n_steps = self.config.optim, self.config.schedule.n_steps
        if optim.grad_clip is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), optim.grad_clip)
        set_learning_rate(self.optimizer, learning_rate(optim, self.step, n_steps=n_steps))
        self.optimizer.step()
        self.step += 1

    def evaluate(self) -> Scores:
        """The scores on every split.

        Raises:
            DivergedError: If a weight or a loss is not a finite number.
        """
        scores = self.objective.evaluate()
        losses = [score["loss"] for score in scores.values() if score["n"]]
        whole = all(bool(torch.isfinite(weight).all()) for weight in self.model.parameters())
        if not whole or not all(map(math.isfinite, losses)):
            raise DivergedError(f"the model is not finite at step {self.step}")
        self.perfect = self.perfect + 1 if self.objective.is_reached(scores) else 0
        return scores

    @property
    def stops_early(self) -> bool:
        """Whether the early stop is on and reached."""
        wanted = self.objective.patience
        return wanted is not None and self.perfect >= wanted

    def state(self, *, threads: int) -> ResumeState:
        """What the rest of the run depends on."""
        return ResumeState(
            step=self.step,
            run_id=self.config.run_id,
            task_fingerprint=self.task.fingerprint,
            threads=threads,
            perfect=self.perfect,
            weights=weights_of_any(self.model),
            optimizer=self.optimizer.state_dict(),
            batches=self.objective.state(),
        )


def _run_to_the_end(session: Session, trainee: Trainee, *, resumed: bool, progress: bool) -> None:
    """Train to the last step, and write how it ended, however it ended."""
    schedule = session.config.schedule
    with (
        tqdm(
            total=schedule.n_steps,
            initial=trainee.step,
            disable=not progress,
            desc=f"{session.label} seed {session.config.seed}",
            unit="step",
        ) as bar,
        ending(session, trainee),
    ):
        for scores in turns(session, trainee, resumed=resumed):
            if scores:
                shown = trainee.objective.shown(scores)
                bar.set_postfix({name: f"{x:.3f}" for name, x in shown.items()}, refresh=False)
            trainee.advance()
            bar.update()


@contextmanager
def ending(session: Session, trainee: Trainee) -> Iterator[None]:
    """Write how the run ended, if it is an error that ends it; only divergence is not raised."""
    try:
        yield
    except DivergedError as error:
        session.warn(f"Training diverged: {error}. Try a smaller `lr` or a `grad_clip`.")
        session.end("diverged", step=trainee.step, error=str(error))
    except KeyboardInterrupt:
        session.end("stopped", step=trainee.step)
        raise
    except Exception as error:
        text = str(error).replace(str(session.folder.path.resolve()), ".")
        text = text.replace(str(session.folder.path), ".")
        session.end("failed", step=trainee.step, error=f"{type(error).__name__}: {text}")
        raise


def turns(session: Session, trainee: Trainee, *, resumed: bool) -> Iterator[Scores]:
    """All that belongs to a run but its optimiser steps: each turn ends where one is due.

    Gives the scores of an evaluation, empty where the step is none. The step that a run resumed
    from is written already.
    """
    schedule = session.config.schedule
    evaluated, kept = set(evaluation_steps(schedule)), set(kept_steps(schedule))
    while True:
        scores: Scores = {}
        if not resumed:
            if trainee.step in evaluated:
                scores = trainee.evaluate()
                if trainee.step in kept or trainee.stops_early:
                    session.keep(trainee.step, weights_of_any(trainee.model))
                session.record(trainee.step, scores)
            last = trainee.step == schedule.n_steps or trainee.stops_early
            if last or trainee.step % schedule.resume_every == 0:
                session.save(trainee.state(threads=session.threads))
        resumed = False
        if trainee.stops_early or trainee.step == schedule.n_steps:
            ended_by = "early_stop" if trainee.stops_early else "n_steps"
            outcome = trainee.objective.outcome(scores or trainee.objective.evaluate())
            session.end("finished", step=trainee.step, ended_by=ended_by, **outcome)
            return
        yield scores
