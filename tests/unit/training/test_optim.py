"""The optimisers and the learning rate: Muon by what it must do, schedules by hand."""

from __future__ import annotations

import math
from copy import deepcopy

import pytest
import torch
from torch import nn

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.runs.config import OptimConfig
from interp_shortcuts.training.optim import (
    check_optimizer,
    learning_rate,
    make_optimizer,
    set_learning_rate,
)

needs_muon = pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="torch has no Muon")
MUON = OptimConfig(optimizer="muon", lr=0.1, weight_decay=0.0)


def parameters(seed: int = 0) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((12, 5), (7,), (5, 9))
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]


def with_gradients(some: list[nn.Parameter], step: int) -> None:
    generator = torch.Generator().manual_seed(step)
    for parameter in some:
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def steps(optimizer: torch.optim.Optimizer, some: list[nn.Parameter], first: int, last: int):
    for step in range(first, last):
        with_gradients(some, step)
        optimizer.step()


# --- Muon --------------------------------------------------------------------------------------


@needs_muon
def test_muon_moves_matrices_by_a_nearly_orthogonal_step_and_vectors_as_adamw():
    some = parameters()
    before = [parameter.detach().clone() for parameter in some]
    steps(make_optimizer(MUON, some), some, 0, 1)
    matrix, vector, wide = [
        (then - now.detach()) / 0.1 for then, now in zip(before, some, strict=True)
    ]
    for moved, scale in ((matrix, math.sqrt(12 / 5)), (wide, 1.0)):  # torch's own adjustment
        values = torch.linalg.svdvals(moved) / scale
        assert 0.5 < values.min() <= values.max() < 1.3
    assert vector.abs().numpy() == pytest.approx(1.0, abs=1e-5)  # Adam's first step: the sign


@needs_muon
def test_muon_is_torchs_with_adamw_for_the_rest():
    config = OptimConfig(optimizer="muon", lr=0.03, weight_decay=0.2, momentum=0.8, beta2=0.9)
    ours, plain = parameters(), parameters()
    steps(make_optimizer(config, ours), ours, 0, 6)
    muon = torch.optim.Muon([plain[0], plain[2]], lr=0.03, weight_decay=0.2, momentum=0.8)
    adamw = torch.optim.AdamW([plain[1]], lr=0.03, weight_decay=0.2, betas=(0.9, 0.9), fused=True)
    for step in range(6):
        with_gradients(plain, step)
        muon.step()
        adamw.step()
    for one, other in zip(ours, plain, strict=True):
        assert torch.equal(one, other)


@needs_muon
def test_its_state_goes_on_to_the_same_bits():
    whole = parameters()
    optimizer = make_optimizer(MUON, whole)
    steps(optimizer, whole, 0, 3)
    halves = [nn.Parameter(parameter.detach().clone()) for parameter in whole]
    resumed = make_optimizer(MUON, halves)
    resumed.load_state_dict(deepcopy(optimizer.state_dict()))  # as a file would give it
    for some, one in ((whole, optimizer), (halves, resumed)):
        set_learning_rate(one, 0.02)  # reaches both parts, also after loading
        steps(one, some, 3, 6)
    for one, other in zip(whole, halves, strict=True):
        assert torch.equal(one, other)


@needs_muon
def test_a_learning_rate_of_nothing_moves_nothing():
    some = parameters()
    before = [parameter.detach().clone() for parameter in some]
    optimizer = make_optimizer(MUON, some)
    set_learning_rate(optimizer, 0.0)
    steps(optimizer, some, 0, 1)
    assert all(torch.equal(one, other) for one, other in zip(before, some, strict=True))


def test_muon_is_refused_for_a_transformer(monkeypatch: pytest.MonkeyPatch):
    transformer = ModelSpec(d_vocab=7, d_vocab_out=7, n_ctx=2)
    net = TwoLayerSpec(n_tokens=7, n_classes=7)
    with pytest.raises(ConfigError, match=r"`optimizer` 'muon' .* use 'adamw', 'adam' or 'sgd'"):
        check_optimizer(MUON, transformer)
    check_optimizer(OptimConfig(), transformer)
    monkeypatch.setattr(torch.optim, "Muon", None, raising=False)
    monkeypatch.delattr(torch.optim, "Muon")
    with pytest.raises(ConfigError, match=r"'muon' needs a torch that has it"):
        check_optimizer(MUON, net)
    with pytest.raises(ValueError, match="must be matrices and vectors"):
        make_optimizer(MUON, [nn.Parameter(torch.zeros(2, 3, 4))])


# --- the learning rate -------------------------------------------------------------------------


def rates(schedule: str, *, warmup: int = 0, n_steps: int = 8) -> list[float]:
    config = OptimConfig.model_validate(
        {"lr": 2.0, "lr_schedule": schedule, "warmup_steps": warmup}
    )
    return [learning_rate(config, step, n_steps=n_steps) for step in range(n_steps)]


def test_schedules_by_hand():
    assert rates("constant") == [2.0] * 8
    assert rates("constant", warmup=4) == [0.5, 1.0, 1.5, 2.0, 2.0, 2.0, 2.0, 2.0]
    assert rates("linear", n_steps=4) == [2.0, 1.5, 1.0, 0.5]
    assert rates("linear", warmup=2, n_steps=6) == [1.0, 2.0, 2.0, 1.5, 1.0, 0.5]
    half = math.sqrt(0.5)
    assert rates("cosine", n_steps=4) == pytest.approx([2.0, 1 + half, 1.0, 1 - half])


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_a_warm_up_through_all_steps_is_possible(schedule: str):
    assert rates(schedule, warmup=4, n_steps=4) == [0.5, 1.0, 1.5, 2.0]
