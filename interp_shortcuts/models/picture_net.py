"""`PictureNet`: three fully connected layers on the pixels, with TransformerLens's hook surface.

The network of the image task in arXiv 2605.18022. What it shares with the network on pairs of
tokens is in `dense_net.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.models.activations import activation_function
from interp_shortcuts.models.compiled import unwrapped
from interp_shortcuts.models.dense_net import (
    DenseNet,
    built,
    copy_weights,
    drawn_weights,
    logits_in_chunks,
    weights_in,
)
from interp_shortcuts.models.lens import HookPoint
from interp_shortcuts.models.picture_spec import PictureSpec


class PictureNet(DenseNet[PictureSpec]):
    """Two hidden layers between the pixels and the logits.

    x_1 = phi(x W_1 + b_1), x_2 = phi(x_1 W_2 + b_2), logits = x_2 W_3 + b_3.

    The hook points: `hook_pre_1` and `hook_pre_2` [example neuron], before the activation;
    `hook_post_1` and `hook_post_2` [example neuron], after it; `hook_logits` [example class].

    All weights are zero; `build_picture_net` makes one that can be trained.

    Attributes:
        W_1: From the pixels to the first hidden layer [pixel neuron].
        b_1: Its bias [neuron].
        W_2: From the first to the second hidden layer [neuron neuron].
        b_2: Its bias [neuron].
        W_3: From the second hidden layer to the classes [neuron class].
        b_3: Bias of the classes [class].
    """

    W_1: nn.Parameter
    b_1: nn.Parameter
    W_2: nn.Parameter
    b_2: nn.Parameter
    W_3: nn.Parameter
    b_3: nn.Parameter

    def __init__(self, spec: PictureSpec) -> None:
        super().__init__(spec)
        self.hook_pre_1, self.hook_post_1 = HookPoint(), HookPoint()
        self.hook_pre_2, self.hook_post_2 = HookPoint(), HookPoint()
        self.hook_logits = HookPoint()
        self.setup()

    def forward(self, images: Float[Tensor, "example pixel"]) -> Float[Tensor, "example class"]:
        """The logits of each picture."""
        phi = activation_function(self.activation)
        first = self.hook_post_1(phi(self.hook_pre_1(images @ self.W_1 + self.b_1)))
        second = self.hook_post_2(phi(self.hook_pre_2(first @ self.W_2 + self.b_2)))
        return self.hook_logits(second @ self.W_3 + self.b_3)


def build_picture_net(
    spec: PictureSpec, *, seed: int | None = None, device: str | torch.device = "cpu"
) -> PictureNet:
    """A new network, in float32 and in training mode; global random state stays untouched.

    Args:
        spec: What to build.
        seed: Draws the weights as `initial_picture_weights` does. Without one they are zero: a
            network to load weights into.
        device: Where the parameters live.
    """
    weights = None if seed is None else initial_picture_weights(spec, seed)
    return built(PictureNet, spec, weights, device)


def initial_picture_weights(spec: PictureSpec, seed: int) -> dict[str, Tensor]:
    """The weights that a seed stands for.

    **Ours**, since the paper does not say: each matrix is normal with standard deviation
    s / sqrt(inputs), where s is `init_scale`, and biases are zero. (`torch.nn.Linear` has the
    standard deviation of s = 0.577, and biases that are not zero.) Each matrix has the stream
    `("init", "picture_net", name)`; the draws are NumPy's.

    Returns:
        float32 tensors on the CPU, by name: `W_1`, `b_1`, `W_2`, `b_2`, `W_3`, `b_3`.
    """
    return drawn_weights(spec, seed, stream="picture_net")


def picture_net_of(model: nn.Module) -> PictureNet:
    """The `PictureNet` itself, also when a `torch.compile`d one is handed over.

    Raises:
        ConfigError: If there is no `PictureNet` inside.
    """
    return unwrapped(model, PictureNet)


def picture_weights(model: nn.Module) -> dict[str, Tensor]:
    """A copy of every parameter, on the CPU and in the network's dtype."""
    return weights_in(picture_net_of(model))


def load_picture_weights(model: nn.Module, weights: Mapping[str, Any]) -> None:
    """Copies weights into a network; nothing is changed unless all of them fit.

    Args:
        model: The network, whose dtype and device are kept.
        weights: Exactly its parameters, by name; the prefix of a compiled network is ignored.

    Raises:
        StorageError: If a name is missing or unknown, a shape differs, or a value is not finite.
    """
    copy_weights(picture_net_of(model), weights)


def read_picture_logits(
    model: nn.Module, images: Float[Tensor, "example pixel"], *, chunk: int = 4096
) -> Float[Tensor, "example class"]:
    """The logits of pictures, without gradients, on the CPU, in float32 or float64.

    Hooks that are attached act, and so does a swapped activation. The network is left as it was.

    Args:
        model: A `PictureNet`, also a compiled one.
        images: The pictures, row by row; none is fine.
        chunk: Pictures per forward pass.

    Raises:
        MeasureError: If the pictures have another number of pixels than the network takes.
    """
    net = picture_net_of(model)
    if images.shape[1] != net.spec.n_pixels:
        raise MeasureError(
            f"`images` must have {net.spec.n_pixels} pixels each; got {images.shape[1]}."
        )
    return logits_in_chunks(net, images, chunk=chunk)
