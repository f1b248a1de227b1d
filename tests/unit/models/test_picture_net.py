"""The network on pictures: hand-computed outputs, a plain reference, weights in and out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from interp_shortcuts import models
from interp_shortcuts.errors import ConfigError, MeasureError, StorageError
from interp_shortcuts.models import any_model
from interp_shortcuts.models.picture_net import (
    PictureNet,
    build_picture_net,
    initial_picture_weights,
    load_picture_weights,
    picture_net_of,
    picture_weights,
    read_picture_logits,
)
from interp_shortcuts.models.picture_spec import PictureArchitecture, PictureSpec
from interp_shortcuts.models.two_layer import build_two_layer
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.tasks.digits import Digits, Pictures

IMAGES = torch.rand(11, 6, generator=torch.Generator().manual_seed(0))
PARAMETERS = ["W_1", "b_1", "W_2", "b_2", "W_3", "b_3"]
PLAIN = {
    "relu": lambda x: max(x, 0.0),
    "quadratic": lambda x: x * x,
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "leaky_relu": lambda x: x if x > 0 else 0.01 * x,
    "reverse_relu": lambda x: max(-x, 0.0),
    "abs": abs,
}


def spec(**changes):
    return PictureSpec(**{"n_pixels": 6, "n_classes": 3, "hidden_widths": (5, 4), **changes})


def test_a_hand_built_network():
    """pre_1 = 2 - 3 + 1 = 0 and 6, post_1 = 0, 6; pre_2 = -6 + 1 = -5, |pre_2| = 5; 5 w + b."""
    net = build_picture_net(
        PictureSpec(n_pixels=2, n_classes=2, hidden_widths=(2, 1), activation="abs")
    )
    weights = {
        "W_1": torch.tensor([[2.0, 4.0], [-3.0, 2.0]]),
        "b_1": torch.tensor([1.0, 0.0]),
        "W_2": torch.tensor([[10.0], [-1.0]]),
        "b_2": torch.tensor([1.0]),
        "W_3": torch.tensor([[1.0, -2.0]]),
        "b_3": torch.tensor([0.5, 0.0]),
    }
    load_picture_weights(net, weights)
    assert net(torch.tensor([[1.0, 1.0]])).tolist() == [[5.5, -10.0]]


@pytest.mark.parametrize("activation", PLAIN)
def test_the_forward_pass_is_the_formula(activation):
    net = build_picture_net(spec(activation=activation), seed=3).double()
    with torch.no_grad():
        for index, name in enumerate(("b_1", "b_2", "b_3")):
            net.get_parameter(name).copy_(torch.linspace(-1, 1 + index, len(getattr(net, name))))
    weights = {name: tensor.numpy() for name, tensor in picture_weights(net).items()}
    for image in IMAGES.double().numpy():
        layer = image
        for number in (1, 2):
            pre = [
                sum(layer[i] * weights[f"W_{number}"][i, m] for i in range(len(layer)))
                + weights[f"b_{number}"][m]
                for m in range(len(weights[f"b_{number}"]))
            ]
            layer = np.array([PLAIN[activation](value) for value in pre])
        expected = layer @ weights["W_3"] + weights["b_3"]
        got = net(torch.from_numpy(image)[None])[0].detach().numpy()
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_hook_points_read_and_edit():
    net = build_picture_net(spec(), seed=0)
    logits, cache = net.run_with_cache(IMAGES)
    names = ["hook_pre_1", "hook_post_1", "hook_pre_2", "hook_post_2", "hook_logits"]
    assert sorted(net.hook_dict) == sorted(names)
    torch.testing.assert_close(cache["hook_pre_1"], IMAGES @ net.W_1 + net.b_1)
    assert torch.equal(cache["hook_post_1"], cache["hook_pre_1"].relu())
    torch.testing.assert_close(cache["hook_pre_2"], cache["hook_post_1"] @ net.W_2 + net.b_2)
    assert torch.equal(cache["hook_post_2"], cache["hook_pre_2"].relu())
    assert torch.equal(cache["hook_logits"], logits)
    silenced = net.run_with_hooks(
        IMAGES, fwd_hooks=[("hook_post_2", lambda values, hook: torch.zeros_like(values))]
    )
    assert torch.equal(silenced, net.b_3.expand_as(silenced))
    assert torch.equal(net(IMAGES), logits)


def test_every_parameter_learns():
    net = build_picture_net(spec(activation="gelu"), seed=0)
    net(IMAGES).square().sum().backward()
    assert [name for name, _ in net.named_parameters()] == PARAMETERS
    assert all(bool(parameter.grad.any()) for parameter in net.parameters())


def test_a_seed_means_the_same_weights_and_leaves_random_state_alone():
    before = torch.get_rng_state()
    one, again, other = (build_picture_net(spec(), seed=seed) for seed in (7, 7, 8))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), again.parameters(), strict=True))
    assert not torch.equal(one.W_1, other.W_1)
    assert one.W_1[0, 0].item() == pytest.approx(-0.67661023, abs=1e-6)


def test_the_scale_of_the_initial_weights():
    """3,000 and more draws: the standard deviation is within 5% of s / sqrt(inputs)."""
    weights = initial_picture_weights(
        PictureSpec(n_pixels=100, n_classes=50, hidden_widths=(400, 64), init_scale=2.0), seed=0
    )
    for name, inputs in (("W_1", 100), ("W_2", 400), ("W_3", 64)):
        assert weights[name].std().item() == pytest.approx(2 / math.sqrt(inputs), rel=0.05)
        assert abs(weights[name].mean().item()) < 0.02
    assert not any(weights[name].any() for name in ("b_1", "b_2", "b_3"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop("b_3"), "The weights lack `b_3`"),
        (lambda weights: weights.update(W_4=torch.zeros(1)), "The weights hold `W_4`, which the"),
        (
            lambda weights: weights.update(W_3=torch.zeros(3, 4)),
            r"`W_3` must have shape \[4, 3\]; got \[3, 4\]",
        ),
        (
            lambda weights: weights["W_1"].fill_(torch.nan),
            "`W_1` must be finite; 30 of its 30 values are not",
        ),
    ],
)
def test_weights_that_do_not_fit_change_nothing(change, message):
    net = build_picture_net(spec(), seed=0)
    before = picture_weights(net)
    weights = picture_weights(build_picture_net(spec(), seed=1))
    change(weights)
    with pytest.raises(StorageError, match=message):
        load_picture_weights(net, weights)
    assert all(torch.equal(tensor, before[name]) for name, tensor in picture_weights(net).items())


def test_weights_are_copies_and_round_trip():
    net = build_picture_net(spec(), seed=0)
    weights = picture_weights(net)
    weights["W_1"].zero_()
    assert bool(net.W_1.any())
    other = build_picture_net(spec())
    assert not any(bool(parameter.any()) for parameter in other.parameters())
    load_picture_weights(other, torch.compile(net, backend="eager").state_dict())
    assert torch.equal(other(IMAGES), net(IMAGES))


def test_logits_are_read_in_chunks_without_gradients():
    net = build_picture_net(spec(), seed=0)
    logits = read_picture_logits(net, IMAGES, chunk=4)
    torch.testing.assert_close(logits, net(IMAGES).detach())
    assert not logits.requires_grad
    assert read_picture_logits(net, IMAGES[:0]).shape == (0, 3)
    with pytest.raises(MeasureError, match="`images` must have 6 pixels each; got 5"):
        read_picture_logits(net, IMAGES[:, :5])


def test_half_precision_is_read_in_float32_and_double_in_double():
    net = build_picture_net(spec(), seed=0).to(torch.bfloat16)
    wide = build_picture_net(spec())
    load_picture_weights(wide, {k: v.float() for k, v in picture_weights(net).items()})
    assert torch.equal(read_picture_logits(net, IMAGES), read_picture_logits(wide, IMAGES))
    assert net.W_1.dtype == torch.bfloat16
    assert read_picture_logits(wide.double(), IMAGES).dtype == torch.float64


def test_a_swapped_activation_is_put_back_also_after_an_error():
    net = build_picture_net(spec(), seed=0)
    before = net(IMAGES)
    with net.acting_with("abs") as same:
        assert same is net
        assert not torch.equal(net(IMAGES), before)
    with pytest.raises(RuntimeError, match="stop"), net.acting_with("abs"):
        raise RuntimeError("stop")
    assert net.activation == "relu"
    assert torch.equal(net(IMAGES), before)


def test_a_compiled_network_is_unwrapped_and_others_are_refused():
    net = build_picture_net(spec(), seed=0)
    assert picture_net_of(torch.compile(net, backend="eager")) is net
    two_layer = build_two_layer(TwoLayerSpec(n_tokens=3, n_classes=3, width=2))
    for other, name in ((nn.Linear(2, 2), "Linear"), (two_layer, "TwoLayerNet")):
        with pytest.raises(ConfigError, match=f"`model` must be a PictureNet; got {name}"):
            picture_net_of(other)


def test_it_is_one_of_the_kinds_of_model():
    net = any_model.build_any(spec(), seed=2)
    assert isinstance(net, PictureNet)
    assert any_model.spec_of(torch.compile(net, backend="eager")) == spec()
    copied = any_model.build_any(spec())
    any_model.load_any(copied, any_model.weights_of_any(net))
    torch.testing.assert_close(any_model.answer_logits(copied, IMAGES), net(IMAGES).detach())


def test_what_task_it_fits():
    pixels = np.zeros((10, 2, 3), dtype=np.uint8)
    pictures = Pictures(pixels, np.arange(10, dtype=np.uint8))
    task = Digits(source="test", trained=pictures, tested=pictures, brightest=9)
    assert any_model.misfit(spec(n_classes=10), task) is None
    assert "`n_pixels` (=7) must equal" in str(any_model.misfit(spec(n_pixels=7), task))
    assert "`n_classes` (=3) must equal" in str(any_model.misfit(spec(), task))


def test_specs_are_told_apart_by_their_hash():
    assert spec().hash == spec().hash
    changes = ({}, {"hidden_widths": (4, 5)}, {"activation": "abs"}, {"n_pixels": 7})
    assert len({spec(**change).hash for change in changes}) == 4
    assert PictureSpec.model_validate_json(spec().model_dump_json()) == spec()
    assert spec().sizes == "6 pixels, 5 and 4 relu neurons"
    for change, name in (
        ({"hidden_widths": (5, 0)}, "hidden_widths"),
        ({"hidden_widths": (5, 4, 3)}, "hidden_widths"),
        ({"activation": "tanh"}, "activation"),
        ({"init_scale": 0}, "init_scale"),
    ):
        with pytest.raises(ValueError, match=name):
            spec(**change)
    for field in PictureArchitecture.model_fields.values():
        assert (field.description or "").endswith(".")


def test_exports():
    names = {"PictureArchitecture", "PictureNet", "PictureSpec", "build_picture_net"}
    assert names <= set(models.__all__)
    assert models.PictureNet is PictureNet
