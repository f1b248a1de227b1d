"""The training step against the plain one: the HookedTransformer's own forward and backward."""

from __future__ import annotations

import pytest
import torch

from interp_shortcuts import presets
from interp_shortcuts.models import chunks
from interp_shortcuts.models.build import build
from interp_shortcuts.models.chunks import ChunkedSequences
from interp_shortcuts.tasks.task import ShortcutTask
from interp_shortcuts.training.evaluation import chunked_splits, evaluate
from interp_shortcuts.training.gradient import MeanLoss
from interp_shortcuts.training.optim import make_optimizer

SETTINGS = [
    {"normalization": "none", "attention": "causal", "n_layers": 2, "n_heads": 2},
    {"normalization": "LN", "attention": "causal", "n_layers": 1, "n_heads": 1},
    {"normalization": "LNPre", "attention": "bidirectional", "n_layers": 2, "n_heads": 4},
    {"normalization": "RMS", "attention": "causal", "n_layers": 3, "n_heads": 2},
    {"normalization": "RMSPre", "attention": "bidirectional", "n_layers": 1, "n_heads": 2},
]


def parts(**changes):
    config = presets.smoke(n_train=400, length=4, d_model=32, lr=3e-3, **changes)
    task = ShortcutTask.from_config(config.task, seed=0)
    model = build(config.spec, seed=0)
    train = chunked_splits(model, task)["train"]
    return config, task, model, MeanLoss(model, task, train, precision=config.optim.precision)


def plain_backward(model, task, batch=None):
    split = task.split("train")
    rows = torch.arange(split.n) if batch is None else batch
    loss = task.loss(model(split.tokens[rows])[:, task.read_position], split.labels[rows]).mean()
    loss.backward()
    return loss.item()


def gradients(model):
    found = {name: weight.grad for name, weight in model.named_parameters()}
    model.zero_grad(set_to_none=True)
    # a parameter that nothing depends on has a gradient of zero or none
    return {name: grad for name, grad in found.items() if grad is not None and grad.any()}


@pytest.mark.parametrize("at_once", [600, 2**15])
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_gradient_is_the_plain_one(setting, at_once, monkeypatch):
    monkeypatch.setattr(chunks, "POSITIONS_AT_ONCE", at_once)
    _, task, model, loss = parts(**setting)
    for batch in (None, torch.tensor([7, 3, 11, 399, 20])):
        expected_loss, expected = plain_backward(model, task, batch), gradients(model)
        found_loss, found = loss.backward(batch), gradients(model)
        assert found_loss == pytest.approx(expected_loss, abs=1e-6)
        assert set(found) >= set(expected)
        for name, gradient in found.items():
            plain = expected.get(name, torch.zeros_like(gradient))
            torch.testing.assert_close(gradient, plain, atol=1e-6, rtol=1e-5, msg=name)


@pytest.mark.parametrize("setting", SETTINGS)
def test_fifty_steps_follow_the_plain_loss_curve(setting):
    curves = []
    for fast in (True, False):
        config, task, model, loss = parts(**setting)
        optimizer = make_optimizer(config.optim, model.parameters())
        curve = []
        for _ in range(50):
            optimizer.zero_grad(set_to_none=True)
            curve.append(loss.backward() if fast else plain_backward(model, task))
            optimizer.step()
        curves.append(curve)
    assert curves[0] == pytest.approx(curves[1], abs=1e-4)
    assert curves[0][-1] < curves[0][0] - 0.05  # it learns something, so there is a curve


def test_bfloat16_products_leave_weights_and_gradients_in_float32():
    _, task, model, loss = parts(precision="bfloat16")
    exact = plain_backward(model, task), gradients(model)
    value, found = loss.backward(), gradients(model)
    assert value == pytest.approx(exact[0], abs=5e-3)
    assert value != exact[0]
    assert {gradient.dtype for gradient in found.values()} == {torch.float32}
    apart = torch.cat([(found[name] - exact[1][name]).flatten() for name in exact[1]])
    whole = torch.cat([gradient.flatten() for gradient in exact[1].values()])
    assert apart.norm() < 0.05 * whole.norm()


def test_hooks_act_on_the_model_between_steps():
    _, task, model, loss = parts()
    before = model(task.split("train").tokens)[:, -1]
    seen = []
    model.blocks[0].hook_resid_post.add_hook(lambda value, hook: seen.append(value.shape))
    loss.backward()
    assert not seen  # the step runs its own forward
    assert torch.equal(model(task.split("train").tokens)[:, -1], before)
    assert len(seen) == 1


def test_evaluating_is_the_same_with_and_without_prepared_splits():
    _, task, model, _ = parts()
    expected = evaluate(model, task)
    assert evaluate(model, task, chunked_splits(model, task)) == expected
    split = task.split("validation")
    with torch.no_grad():
        logits = model(split.tokens)[:, -1]
    assert expected["validation"]["loss"] == pytest.approx(
        float(task.loss(logits, split.labels).mean()), abs=1e-6
    )
    assert isinstance(chunked_splits(model, task)["train"], ChunkedSequences)
