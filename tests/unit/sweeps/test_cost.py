"""The cost of runs: the formula against what torch counts, and the time that is left."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from interp_shortcuts.models.build import build
from interp_shortcuts.models.spec import Architecture
from interp_shortcuts.models.staged import read_logits_pruned
from interp_shortcuts.models.tail import tail_logits
from interp_shortcuts.models.two_layer import build_two_layer
from interp_shortcuts.presets import (
    max_parity_demo,
    modular_noise_demo,
    sequence_sorting_demo,
    smoke,
)
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.schedule import evaluation_steps
from interp_shortcuts.streams import torch_stream
from interp_shortcuts.sweeps.cost import Timing, forward_flops, run_flops, step_flops, time_steps
from interp_shortcuts.sweeps.progress import Progress
from interp_shortcuts.sweeps.worker import Assignment, Ending
from interp_shortcuts.tasks.modular_config import ModularConfig
from interp_shortcuts.tasks.sequences import SequenceTask
from interp_shortcuts.training.sequence_scores import sequence_scores


@pytest.mark.parametrize(
    "fields",
    [{}, {"n_layers": 1}, {"n_layers": 3, "n_heads": 4, "length": 7}, {"d_mlp": 40, "d_model": 24}],
)
def test_the_formula_is_what_torch_counts(fields: dict[str, int]):
    config = max_parity_demo(**fields)
    model = build(config.spec, seed=0)
    tokens = torch.zeros(5, config.task.length + 1, dtype=torch.int64)
    with FlopCounterMode(display=False) as counted:
        read_logits_pruned(model, tokens)
    assert counted.get_total_flops() == 5 * forward_flops(config)


@pytest.mark.parametrize("fields", [{}, {"n_layers": 1}, {"n_heads": 2, "train_max": 3}])
def test_the_formula_for_sequences_is_what_torch_counts(fields: dict[str, int]):
    config = sequence_sorting_demo(**fields)
    task, model = SequenceTask.from_config(config.task, seed=0), build(config.spec, seed=0)
    generator, lengths = torch_stream(0, "test"), task.train_lengths
    with FlopCounterMode(display=False) as counted:
        for length in lengths:
            batch = task.batch(5, generator, length=length)
            tail_logits(model, batch.tokens, first=batch.first_scored)
    assert counted.get_total_flops() == pytest.approx(
        5 * len(lengths) * forward_flops(config), rel=1e-6
    )
    with FlopCounterMode(display=False) as counted:
        sequence_scores(model, task)
    steps, evaluations = config.schedule.n_steps, len(evaluation_steps(config.schedule))
    assert run_flops(config) == steps * step_flops(config) + evaluations * counted.get_total_flops()


def test_a_two_layer_network_costs_its_products_with_the_unembedding():
    config = modular_noise_demo(modulus=7, width=12)
    net = build_two_layer(config.spec, seed=0)
    with FlopCounterMode(display=False) as counted:
        net(torch.zeros(5, 2, dtype=torch.int64))
    assert counted.get_total_flops() == 5 * forward_flops(config) == 5 * 2 * 12 * 7
    assert step_flops(config) == 3 * 39 * forward_flops(config)
    evaluations = len(evaluation_steps(config.schedule))
    steps = config.schedule.n_steps
    assert run_flops(config) == steps * step_flops(config) + evaluations * 49 * 168


def test_a_transformer_on_pairs_costs_what_torch_counts():
    config = RunConfig(
        task=ModularConfig(modulus=7), model=Architecture(n_layers=2, d_model=16, d_mlp=24)
    )
    model = build(config.transformer_spec, seed=0)
    with FlopCounterMode(display=False) as counted:
        read_logits_pruned(model, torch.zeros(5, 2, dtype=torch.int64))
    assert counted.get_total_flops() == 5 * forward_flops(config)


def test_steps_under_label_noise_are_timed():
    config = modular_noise_demo(modulus=7, width=12, warmup_steps=100)
    assert time_steps(config).seconds_per_step > 0


def test_a_run_is_its_steps_and_its_evaluations():
    config = smoke(batch_size=8)
    assert step_flops(config) == 3 * 8 * forward_flops(config)
    assert step_flops(smoke()) == 3 * 96 * forward_flops(config)
    asked = (96 + 32 + 32) * len(evaluation_steps(config.schedule))
    assert run_flops(config) == 12 * step_flops(config) + asked * forward_flops(config)


def test_seconds_are_operations_over_the_rate():
    timing = Timing("a device", seconds_per_step=0.5, flops_per_step=100)
    assert (timing.rate, timing.seconds(1000)) == (200, 5)


@pytest.mark.parametrize(
    "config", [smoke(), sequence_sorting_demo(n_layers=1, d_model=16, d_mlp=16, n_per_length=2)]
)
def test_real_steps_are_timed(config: RunConfig):
    timing = time_steps(config)
    assert timing.device == "1 CPU thread"
    assert timing.seconds_per_step > 0
    assert timing.flops_per_step == step_flops(config)


def test_the_time_left_is_the_work_left_at_the_pace_so_far(monkeypatch: pytest.MonkeyPatch):
    assignments = {key: Assignment(smoke(0), Path(key)) for key in "abcd"}
    progress = Progress(assignments, label="s", done=0, shown=False)
    share = dict.fromkeys("abcd", 0.0)
    monkeypatch.setattr(progress, "_share_done", lambda key: share[key])
    monkeypatch.setattr("interp_shortcuts.sweeps.progress.SECONDS_BETWEEN_LOOKS", 0)
    progress.began("a")
    progress.began("b")
    assert progress.line(2, now=100.0) == "2 running, 0 failed"
    share |= {"a": 0.5, "b": 0.5}
    progress.tick("ab")
    progress.line(2, now=200.0)  # the pace counts from here: a run of work is done
    progress.ended("a", Ending("finished"), again=False)
    progress.ended("b", Ending("failed"), again=False)
    since = progress._paced
    assert since is not None
    assert progress.line(0, now=since[0] + 60.0) == "0 running, 1 failed, 0:02:00 left"
    progress.close()
