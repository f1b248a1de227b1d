"""Saturation against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax

from interp_shortcuts.measures.behaviour import Behaviour
from interp_shortcuts.measures.saturation import Saturation
from interp_shortcuts.models.build import build
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.tasks.task import ShortcutTask

SPEC = ModelSpec(d_model=8, d_mlp=8, d_vocab=11, d_vocab_out=3, n_ctx=5)


def make_task(ratio=0.8):
    return ShortcutTask.named(
        "max_mod3", ratio=ratio, n_train=50, n_validation=10, n_adversarial=10
    )


@pytest.mark.parametrize("scale", [1.0, 60.0])
def test_against_numpy(scale):
    model, task = build(SPEC, seed=0), make_task()
    with torch.no_grad():
        model.unembed.W_U.mul_(scale)  # some examples saturate far below what float32 resolves
        losses, pulls = [], []
        for group in ("consistent", "anti"):
            split = task.split(group)
            logits = model(split.tokens)[:, -1].double().numpy()
            labels = split.labels.numpy()
            losses.append(-log_softmax(logits, axis=1)[np.arange(len(labels)), labels])
            slopes = softmax(logits, axis=1) - np.eye(3)[labels]
            pulls.append(np.linalg.norm(slopes, axis=1).sum())
    data = Saturation()(model, task)
    np.testing.assert_allclose(data.group_loss, [loss.mean() for loss in losses], rtol=1e-5)
    half = [1.959964 * loss.std(ddof=1) / np.sqrt(len(loss)) for loss in losses]
    np.testing.assert_allclose(
        data.group_loss_interval.sel(bound="low"), data.group_loss - half, rtol=1e-4
    )
    np.testing.assert_allclose(
        data.group_loss_interval.sel(bound="high"), data.group_loss + half, rtol=1e-4
    )
    np.testing.assert_allclose(data.group_gradient_share, np.array(pulls) / sum(pulls), rtol=1e-5)
    assert data.group_loss_n.values.tolist() == [40, 10]


def test_the_loss_is_behaviours():
    model, task = build(SPEC, seed=1), make_task()
    behaviour = Behaviour(splits=("consistent", "anti"))(model, task)
    np.testing.assert_allclose(Saturation()(model, task).group_loss, behaviour.loss, rtol=1e-6)


def test_a_saturated_loss_is_not_zero():
    model, task = build(SPEC, seed=0), make_task()
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        model.unembed.b_U.copy_(torch.tensor([20.0, 0.0, 0.0]))
    split = task.split("consistent")
    split = split.take(torch.nonzero(split.labels == 0).flatten())

    class OnlyClassZero(ShortcutTask):
        @property
        def splits(self):
            return {"train": split, "consistent": split, "anti": split.take(torch.tensor([0]))}

    data = Saturation()(model, OnlyClassZero.named("max_mod3"))
    np.testing.assert_allclose(data.group_loss, 2 * np.exp(-20), rtol=1e-5)
    np.testing.assert_allclose(
        data.group_gradient_share, np.array([split.n, 1]) / (split.n + 1), rtol=1e-5
    )


@pytest.mark.parametrize(
    ("ratio", "there", "empty"), [(1.0, "consistent", "anti"), (0.0, "anti", "consistent")]
)
def test_an_empty_group_is_undefined_with_a_reason(ratio, there, empty):
    data = Saturation()(build(SPEC, seed=0), make_task(ratio))
    assert data.group_loss_n.sel(group=[there, empty]).values.tolist() == [50, 0]
    assert data.group_gradient_share.sel(group=there) == 1
    for name in ("group_loss", "group_loss_interval", "group_gradient_share"):
        assert np.isfinite(data[name].sel(group=there)).all()
        assert np.isnan(data[name].sel(group=empty)).all()
        assert "the group has" in data[name].attrs["nan_means"]
