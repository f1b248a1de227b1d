"""Gradient conflict against plain autograd, and at a stationary point, where theory tells it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pytest
import torch

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.gradients import GradientConflict, conflict
from interp_shortcuts.models.build import build
from interp_shortcuts.models.parts import part_vectors
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.tasks.split import Split
from interp_shortcuts.tasks.task import ShortcutTask

SPEC = ModelSpec(d_model=8, d_mlp=8, d_vocab=11, d_vocab_out=2, n_ctx=5, normalization="LN")


def make_task(ratio=0.8):
    return ShortcutTask.named(
        "max_parity", ratio=ratio, n_train=50, n_validation=10, n_adversarial=10
    )


def group_gradient(model, task, group):
    """By parameter, through the model's own forward."""
    split = task.split(group)
    losses = torch.nn.functional.cross_entropy(model(split.tokens)[:, -1], split.labels)
    weights = dict(model.named_parameters())
    return dict(zip(weights, torch.autograd.grad(losses, list(weights.values())), strict=True))


def test_equals_autograd_on_each_group_alone():
    model, task = build(SPEC, seed=3).double(), make_task()
    vectors = {
        group: part_vectors(group_gradient(model, task, group), SPEC)
        for group in ("consistent", "anti")
    }
    for found in vectors.values():
        found["model"] = torch.cat(list(found.values()))
    data = GradientConflict()(model, task)
    assert data.gradient_n.values.tolist() == [40, 10]
    assert float(data.gradient_amplification_floor) == pytest.approx(4)
    for part in data.part.values.tolist():
        c, a = (vectors[group][part] for group in ("consistent", "anti"))
        at = data.sel(part=part)
        norms = [float(c.norm()), float(a.norm())]
        np.testing.assert_allclose(at.gradient_norm, norms, rtol=1e-6)
        assert float(at.gradient_amplification) == pytest.approx(norms[1] / norms[0], rel=1e-6)
        assert float(at.gradient_excess) == pytest.approx(norms[1] / norms[0] / 4, rel=1e-6)
        cosine = float(c @ a) / (norms[0] * norms[1])
        assert float(at.gradient_cosine) == pytest.approx(cosine, abs=1e-6)
        total = 0.8 * c + 0.2 * a
        share = [float(0.8 * c @ total / (total @ total)), float(0.2 * a @ total / (total @ total))]
        np.testing.assert_allclose(at.gradient_share, share, rtol=1e-5, atol=1e-5)


def test_parts_add_up_to_the_model():
    data = GradientConflict()(build(SPEC, seed=0), make_task())
    norms = data.gradient_norm
    squares = (norms.drop_sel(part="model") ** 2).sum("part")
    np.testing.assert_allclose(squares, norms.sel(part="model") ** 2, rtol=1e-5)
    np.testing.assert_allclose(data.gradient_share.sum("group"), 1, rtol=1e-4)


def test_the_norm_of_single_examples_is_a_loops():
    model, task = build(SPEC, seed=1), make_task()
    data = GradientConflict(norm_examples=7)(model, task)
    assert data.gradient_example_norm_n.values.tolist() == [7, 7]
    for group in ("consistent", "anti"):
        split = task.split(group)
        norms = []
        for i in range(7):
            loss = task.loss(model(split.tokens[i : i + 1])[:, -1], split.labels[i : i + 1]).sum()
            found = torch.autograd.grad(loss, list(model.parameters()))
            norms.append(sum(float(g.double().square().sum()) for g in found) ** 0.5)
        at = data.sel(group=group)
        assert float(at.gradient_example_norm) == pytest.approx(np.mean(norms), rel=1e-5)
        half = 1.959964 * np.std(norms, ddof=1) / np.sqrt(7)
        np.testing.assert_allclose(
            at.gradient_example_norm_interval,
            [np.mean(norms) - half, np.mean(norms) + half],
            rtol=1e-5,
        )


def test_examples_limits_both_groups_and_leaves_the_floor():
    model, task = build(SPEC, seed=0), make_task()
    data = GradientConflict(examples=20)(model, task)
    assert data.gradient_n.values.tolist() == [20, 10]
    assert float(data.gradient_amplification_floor) == pytest.approx(4)
    exact = GradientConflict()(model, task)
    at_anti = {"part": "model", "group": "anti"}
    assert data.gradient_norm.sel(at_anti) == exact.gradient_norm.sel(at_anti)
    at_consistent = {"part": "model", "group": "consistent"}
    assert data.gradient_norm.sel(at_consistent) != exact.gradient_norm.sel(at_consistent)


class Contradictory(ShortcutTask):
    """Every sequence carries both labels, so that the loss has a minimum which is not at 0."""

    @cached_property
    def splits(self):
        tokens = torch.cartesian_prod(torch.arange(3), torch.arange(3), torch.tensor([3]))
        shortcut = tokens[:, 0] % 2
        times = 3 + torch.arange(9) % 4  # another ratio for each sequence
        consistent = Split(
            "consistent",
            tokens.repeat_interleave(times, 0),
            shortcut.repeat_interleave(times),
            shortcut.repeat_interleave(times),
        )
        anti = Split("anti", tokens, 1 - shortcut, shortcut)
        train = Split(
            "train",
            torch.cat([consistent.tokens, anti.tokens]),
            torch.cat([consistent.labels, anti.labels]),
            torch.cat([consistent.shortcut_labels, anti.shortcut_labels]),
        )
        return {"train": train, "consistent": consistent, "anti": anti}


def minimise(model, task):
    """To a stationary point of the mean loss over train, without weight decay.

    The search is begun anew until it is there: where a single one stalls depends on rounding,
    and so on the processor.
    """
    split = task.split("train")
    largest = float("inf")
    for _ in range(10):
        optimizer = torch.optim.LBFGS(
            model.parameters(),
            max_iter=3000,
            tolerance_grad=1e-12,
            tolerance_change=0,
            history_size=50,
            line_search_fn="strong_wolfe",
        )

        def closure(optimizer=optimizer):
            optimizer.zero_grad()
            loss = task.loss(model(split.tokens)[:, -1], split.labels).mean()
            loss.backward()
            return loss

        optimizer.step(closure)
        largest = max(float(weight.grad.abs().max()) for weight in model.parameters())
        if largest < 1e-8:
            break
    return largest


def test_at_a_stationary_point_arithmetic_alone_gives_the_floor():
    task = Contradictory.named(
        "first_parity", length=2, n_integers=3, n_train=4, n_validation=1, n_adversarial=1
    )
    spec = ModelSpec(
        n_layers=1,
        n_heads=1,
        d_model=4,
        d_mlp=4,
        activation="silu",
        d_vocab=4,
        d_vocab_out=2,
        n_ctx=3,
    )
    model = build(spec, seed=0).double()
    before = GradientConflict()(model, task)
    assert minimise(model, task) < 1e-7
    data = GradientConflict()(model, task)
    n = data.gradient_n.values
    floor = n[0] / n[1]
    assert float(data.gradient_amplification_floor) == pytest.approx(floor)
    whole, whole_before = data.sel(part="model"), before.sel(part="model")
    assert float(whole.gradient_norm.min()) > 1e-2
    assert float(whole.gradient_cosine) == pytest.approx(-1, abs=1e-6)
    assert float(whole.gradient_amplification) == pytest.approx(floor, rel=1e-5)
    assert float(whole.gradient_excess) == pytest.approx(1, rel=1e-5)
    assert np.isnan(whole.gradient_share).all()  # nothing is left to share
    assert abs(float(whole_before.gradient_excess) - 1) > 0.1
    assert np.isfinite(whole_before.gradient_share).all()
    assert "stationary point" in data.gradient_amplification.attrs["definition"]
    assert "arithmetic alone" in data.gradient_amplification.attrs["definition"]
    # each part too, as far as its gradient is above what the search left over
    parts = data.where(data.gradient_norm.min("group") > 1e-3, drop=True)
    assert parts.sizes["part"] > 5
    np.testing.assert_allclose(parts.gradient_cosine, -1, atol=1e-5)
    np.testing.assert_allclose(parts.gradient_amplification, floor, rtol=1e-3)


@pytest.mark.parametrize(
    ("ratio", "there", "empty"), [(1.0, "consistent", "anti"), (0.0, "anti", "consistent")]
)
def test_an_empty_group_is_undefined_with_a_reason(ratio, there, empty):
    data = GradientConflict()(build(SPEC, seed=0), make_task(ratio))
    assert np.isfinite(data.gradient_norm.sel(group=there)).all()
    assert np.isfinite(data.gradient_example_norm.sel(group=there)).all()
    assert data.gradient_n.sel(group=empty) == 0
    assert data.gradient_example_norm_n.sel(group=empty) == 0
    for name, array in data.data_vars.items():
        if array.dtype.kind == "f":
            undefined = array.sel(group=empty) if "norm" in name else array
            assert np.isnan(undefined).all(), name
            assert "no example" in array.attrs["nan_means"] or "interval" in name, name


def test_a_gradient_of_zero_is_undefined_with_a_reason():
    model = build(SPEC, seed=0)
    with torch.no_grad():
        for weight in (model.blocks[1].attn.W_O, model.blocks[1].mlp.W_out):
            weight.zero_()  # nothing before these two matrices has a gradient within their layer
    data = GradientConflict()(model, make_task())
    assert (data.gradient_norm.sel(part="L1.H0.V") == 0).all()
    for name in ("gradient_cosine", "gradient_amplification", "gradient_excess"):
        assert np.isnan(data[name].sel(part="L1.H0.V")), name
        assert np.isfinite(data[name].sel(part=["model", "L1.H0.O", "L1.mlp"])).all(), name
        assert "is zero" in data[name].attrs["nan_means"]
    assert np.isnan(data.gradient_share.sel(part="L1.H0.V")).all()


def test_conflict_of_vectors_in_the_plane():
    c, a = np.array([3.0, 4.0]), np.array([0.0, 10.0])
    products = np.array([[[c @ c, c @ a], [c @ a, a @ a]]])
    found = conflict(products, np.array([0.9, 0.1]))
    np.testing.assert_allclose(found.norm, [[5, 10]])
    np.testing.assert_allclose(found.cosine, [0.8])
    np.testing.assert_allclose(found.amplification, [2])
    g = 0.9 * c + 0.1 * a
    np.testing.assert_allclose(found.share, [[0.9 * c @ g / (g @ g), 0.1 * a @ g / (g @ g)]])


def test_the_users_gradients_stay():
    model = build(SPEC, seed=0).requires_grad_(False)
    model.embed.W_E.grad = torch.full_like(model.embed.W_E, 7)
    GradientConflict(norm_examples=2)(model, make_task())
    assert (model.embed.W_E.grad == 7).all()
    assert all(
        weight.grad is None for name, weight in model.named_parameters() if "W_E" not in name
    )
    assert not any(weight.requires_grad for weight in model.parameters())


def test_parameters_are_checked():
    with pytest.raises(MeasureError, match=r"`examples` \(=0\) must be at least 1, or None"):
        GradientConflict(examples=0)
    with pytest.raises(MeasureError, match=r"`norm_examples` \(=-1\) must be at least 0"):
        GradientConflict(norm_examples=-1)
    data = GradientConflict(norm_examples=0)(build(SPEC, seed=0), make_task())
    assert np.isnan(data.gradient_example_norm).all()
