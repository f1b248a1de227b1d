"""What a run costs: its floating-point operations by a formula, and seconds by timing real steps.

The formula counts matrix products of the forward that training uses (`models/staged`), a
multiply-add as 2 operations. Per example, with T = length + 1 positions, d = d_model, m = d_mlp, H
heads and C classes:

- each layer but the last: 2 (4 T d^2 + 2 T^2 d + 2 T d m);
- the last layer, computed at the read position alone: 2 (4 d^2 + 2 H T d + 2 d m);
- the unembedding: 2 d C.

A training step costs three forwards of its batch (the backward counts two), an evaluation one
forward of the training, validation and adversarial examples. A sequence task has T = 2 n + 2
positions at length n, of which n + 1 are asked in the last layer and unembedded, averaged over the
training lengths; it is evaluated at every length. Under label noise, evaluations are of the
training and the test examples. A two-layer network of width M costs 2 M C an example, since its
embedding is looked up; one on pictures, 2 for each entry of its matrices. Norms, softmax, the
optimiser and the writing of checkpoints are left out.

Seconds are the operations divided by a device's rate, which comes from timing some real steps of
one setting there. Small models reach less than that rate: theirs is an underestimate.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from math import prod

from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.schedule import evaluation_steps
from interp_shortcuts.tasks.config import TaskConfig
from interp_shortcuts.tasks.modular_config import ModularConfig
from interp_shortcuts.tasks.sequence_config import SequenceConfig

TIMED_STEPS = 8
MOST_TIMED_STEPS = 2048
_SHOWS = 0.5  # steps that take less than this share of starting and ending a run drown in its noise


@dataclass(frozen=True)
class Timing:
    """Some real steps of one setting on one device."""

    device: str
    """In words, such as `1 CPU thread`."""
    seconds_per_step: float
    flops_per_step: int

    @property
    def rate(self) -> float:
        """Operations per second that training reached."""
        return self.flops_per_step / self.seconds_per_step

    def seconds(self, flops: int) -> float:
        """How long that many operations take at this rate."""
        return flops / self.rate


def forward_flops(config: RunConfig) -> int:
    """Operations of the forward of one example; see the module for the formula."""
    task, spec = config.task, config.spec
    if isinstance(task, SequenceConfig):
        flops = [_sequence_flops(config, length) for length in task.train_lengths]
        return round(sum(flops) / len(flops))
    if isinstance(spec, TwoLayerSpec):
        return 2 * spec.width * spec.n_classes
    if not isinstance(spec, ModelSpec):
        return 2 * sum(prod(shape) for shape in spec.shapes.values() if len(shape) == 2)
    d, m, positions = spec.d_model, spec.d_mlp, spec.n_ctx
    last = 2 * (4 * d**2 + 2 * spec.n_heads * positions * d + 2 * d * m)
    return _layers_flops(config, positions) + last + 2 * d * spec.d_vocab_out


def _layers_flops(config: RunConfig, positions: int) -> int:
    """Operations of all layers but the last."""
    model = config.transformer_spec
    d, m = model.d_model, model.d_mlp
    layer = 2 * (4 * positions * d**2 + 2 * positions**2 * d + 2 * positions * d * m)
    return (model.n_layers - 1) * layer


def _sequence_flops(config: RunConfig, length: int) -> int:
    """Operations of the forward of one sequence."""
    model = config.transformer_spec
    d, m = model.d_model, model.d_mlp
    positions, asked = 2 * length + 2, length + 1
    last = 2 * (2 * (positions + asked) * d**2 + 2 * asked * positions * d + 2 * asked * d * m)
    unembedding = 2 * asked * d * model.d_vocab_out
    return _layers_flops(config, positions) + last + unembedding


def step_flops(config: RunConfig) -> int:
    """Operations of one training step."""
    task, size = config.task, config.optim.batch_size
    if size is None:  # the full batch, which a sequence task does not have
        assert not isinstance(task, SequenceConfig)
        size = task.n_train
    return 3 * forward_flops(config) * size


def run_flops(config: RunConfig) -> int:
    """Operations of a whole run: all its steps and evaluations; an early stop would save some."""
    n_evaluations = len(evaluation_steps(config.schedule))
    return config.schedule.n_steps * step_flops(config) + n_evaluations * _evaluation_flops(config)


def _evaluation_flops(config: RunConfig) -> int:
    task = config.task
    if isinstance(task, SequenceConfig):
        lengths = (*task.train_lengths, *task.heldout_lengths)
        return task.n_per_length * sum(_sequence_flops(config, length) for length in lengths)
    if isinstance(task, ModularConfig):
        return forward_flops(config) * task.n_pairs
    if isinstance(task, TaskConfig):
        return forward_flops(config) * (task.n_train + task.n_validation + task.n_adversarial)
    return forward_flops(config) * (task.n_train + task.n_test)


def time_steps(config: RunConfig, *, device: str = "cpu", threads: int = 1) -> Timing:
    """Times some real training steps: a longer run less a shorter one, both after a warm-up.

    Steps that are short beside what it takes to start and end a run are timed in larger numbers.

    Args:
        config: The setting.
        device: `"cpu"` or `"cuda"`.
        threads: Torch's thread count.
    """

    def seconds(n_steps: int) -> float:
        short = config.replace(
            n_steps=n_steps,
            warmup_steps=0,
            dense_until=0,
            every=10**6,
            resume_every=10**6,
            **_unstopped(config),
        )
        return _seconds(short, device=device, threads=threads)

    seconds(2)  # warms up
    rest, n_steps = seconds(2), TIMED_STEPS
    taken = seconds(2 + n_steps) - rest
    while taken < _SHOWS * rest and n_steps < MOST_TIMED_STEPS:
        n_steps = min(8 * n_steps, MOST_TIMED_STEPS)
        taken = seconds(2 + n_steps) - rest
    return Timing(_words(device, threads), max(taken, 1e-6) / n_steps, step_flops(config))


def _unstopped(config: RunConfig) -> dict[str, None]:
    """The field that stops runs early, switched off."""
    return {"stop_at" if isinstance(config.task, SequenceConfig) else "early_stop": None}


def _seconds(config: RunConfig, *, device: str, threads: int) -> float:
    from interp_shortcuts.training.loop import train

    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        train(config, out=folder, device=device, threads=threads, progress=False)
        return time.perf_counter() - began


def _words(device: str, threads: int) -> str:
    if device == "cpu":
        return f"{threads} CPU thread{'s' if threads > 1 else ''}"
    import torch

    return torch.cuda.get_device_name(device)
