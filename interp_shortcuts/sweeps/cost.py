"""What a run costs: its floating-point operations by a formula, and seconds by timing real steps.

The formula counts matrix products of the forward that training uses (`models/staged`), a
multiply-add as 2 operations. Per example, with T = length + 1 positions, d = d_model, m = d_mlp, H
heads and C classes:

- each layer but the last: 2 (4 T d^2 + 2 T^2 d + 2 T d m);
- the last layer, computed at the read position alone: 2 (4 d^2 + 2 H T d + 2 d m);
- the unembedding: 2 d C.

A training step costs three forwards of its batch (the backward counts two), an evaluation one
forward of the training, validation and adversarial examples. Norms, softmax, the optimiser and
the writing of checkpoints are left out.

Seconds are the operations divided by a device's rate, which comes from timing some real steps of
one setting there. Small models reach less than that rate: theirs is an underestimate.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.schedule import evaluation_steps

TIMED_STEPS = 8


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
    model, positions = config.model, config.task.length + 1
    d, m = model.d_model, model.d_mlp
    layer = 2 * (4 * positions * d**2 + 2 * positions**2 * d + 2 * positions * d * m)
    last = 2 * (4 * d**2 + 2 * model.n_heads * positions * d + 2 * d * m)
    return (model.n_layers - 1) * layer + last + 2 * d * config.spec.d_vocab_out


def step_flops(config: RunConfig) -> int:
    """Operations of one training step."""
    return 3 * forward_flops(config) * (config.optim.batch_size or config.task.n_train)


def run_flops(config: RunConfig) -> int:
    """Operations of a whole run: all its steps and evaluations; an early stop would save some."""
    task = config.task
    asked = task.n_train + task.n_validation + task.n_adversarial
    evaluations = len(evaluation_steps(config.schedule)) * forward_flops(config) * asked
    return config.schedule.n_steps * step_flops(config) + evaluations


def time_steps(config: RunConfig, *, device: str = "cpu", threads: int = 1) -> Timing:
    """Times some real training steps: a longer run less a shorter one, both after a warm-up.

    Args:
        config: The setting.
        device: `"cpu"` or `"cuda"`.
        threads: Torch's thread count.
    """
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, n_steps in (("warm-up", 2), ("short", 2), ("long", 2 + TIMED_STEPS)):
            short = config.replace(
                n_steps=n_steps, dense_until=0, every=10**6, resume_every=10**6, early_stop=None
            )
            seconds[name] = _seconds(short, Path(folder) / name, device=device, threads=threads)
    taken = max(seconds["long"] - seconds["short"], 1e-6) / TIMED_STEPS
    return Timing(_words(device, threads), taken, step_flops(config))


def _seconds(config: RunConfig, out: Path, *, device: str, threads: int) -> float:
    from interp_shortcuts.training.loop import train

    began = time.perf_counter()
    train(config, out=out, device=device, threads=threads, progress=False)
    return time.perf_counter() - began


def _words(device: str, threads: int) -> str:
    if device == "cpu":
        return f"{threads} CPU thread{'s' if threads > 1 else ''}"
    import torch

    return torch.cuda.get_device_name(device)
