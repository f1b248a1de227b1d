"""`TwoLayerNet`: one hidden layer on a pair of tokens, with TransformerLens's hook surface.

f(a, b) = W phi(U e_a + V e_b) + mu, the network of arXiv 2605.18022. How it is read by frequency
is left to `spectrum`, the network whose answer is known in advance to `analytic`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.models.activations import activation_function
from interp_shortcuts.models.build import without_extras
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
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec


class TwoLayerNet(DenseNet[TwoLayerSpec]):
    """A hidden layer of M neurons between two embedded tokens and the logits.

    Row a of `U` is U e_a, so that the forward pass looks rows up and multiplies no one-hot
    vectors. Column m of `U` is u_m, column m of `V` is v_m, and row m of `W` is w_m.

    The hook points: `hook_pre` [example neuron], U e_a + V e_b before the activation; `hook_post`
    [example neuron], after it; `hook_logits` [example class], with mu.

    All weights are zero; `build_two_layer` makes one that can be trained.

    Attributes:
        spec: What it was built from.
        U: Embeds the first token [token neuron].
        V: Embeds the second token [token neuron]; the same parameter as `U` when the spec is tied.
        W: From the neurons to the classes [neuron class].
        mu: Bias of the classes [class].
    """

    U: nn.Parameter
    V: nn.Parameter
    W: nn.Parameter
    mu: nn.Parameter

    def __init__(self, spec: TwoLayerSpec) -> None:
        super().__init__(spec)
        if spec.tied:
            self.V = self.U
        self.hook_pre, self.hook_post, self.hook_logits = HookPoint(), HookPoint(), HookPoint()
        self.setup()

    def forward(self, tokens: Int[Tensor, "example 2"]) -> Float[Tensor, "example class"]:
        """The logits of each pair."""
        pre = self.hook_pre(self.U[tokens[:, 0]] + self.V[tokens[:, 1]])
        post = self.hook_post(activation_function(self.activation)(pre))
        return self.hook_logits(post @ self.W + self.mu)


def build_two_layer(
    spec: TwoLayerSpec, *, seed: int | None = None, device: str | torch.device = "cpu"
) -> TwoLayerNet:
    """A new network, in float32 and in training mode; global random state stays untouched.

    Args:
        spec: What to build.
        seed: Draws the weights as `initial_two_layer_weights` does. Without one they are zero: a
            network to load weights into.
        device: Where the parameters live.
    """
    weights = None if seed is None else initial_two_layer_weights(spec, seed)
    return built(TwoLayerNet, spec, weights, device)


def initial_two_layer_weights(spec: TwoLayerSpec, seed: int) -> dict[str, Tensor]:
    """The weights that a seed stands for.

    **Ours**, since the paper does not say: U and V are normal with standard deviation
    s / sqrt(P) and W with s / sqrt(M), where s is `init_scale`: one over the square root of the
    number of columns that a dense layer on one-hot vectors, and on the neurons, would have. mu is
    zero. Each matrix has the stream `("init", "two_layer", name)`; the draws are NumPy's.

    Returns:
        float32 tensors on the CPU, by name: `U`, `V` unless tied, `W`, `mu`.
    """
    return drawn_weights(spec, seed, stream="two_layer")


def two_layer_of(model: nn.Module) -> TwoLayerNet:
    """The `TwoLayerNet` itself, also when a `torch.compile`d one is handed over.

    Raises:
        ConfigError: If there is no `TwoLayerNet` inside.
    """
    return unwrapped(model, TwoLayerNet)


def two_layer_weights(model: nn.Module) -> dict[str, Tensor]:
    """A copy of every parameter, on the CPU and in the network's dtype."""
    return weights_in(two_layer_of(model))


def load_two_layer_weights(model: nn.Module, weights: Mapping[str, Any]) -> None:
    """Copies weights into a network; nothing is changed unless all of them fit.

    Args:
        model: The network, whose dtype and device are kept.
        weights: Exactly its parameters, by name. The prefix of a compiled network, and the second
            name that a `state_dict` gives to a tied matrix, are ignored.

    Raises:
        StorageError: If a name is missing or unknown, a shape differs, or a value is not finite.
    """
    net = two_layer_of(model)
    copy_weights(net, without_second_name(weights, net.spec))


def without_second_name(weights: Mapping[str, Any], spec: TwoLayerSpec) -> dict[str, Any]:
    """A state dict without the prefix of a compiled network and the second name of a tied matrix.

    A `V` that differs from `U` stays, to be refused.
    """
    given = without_extras(weights)
    if spec.tied and given.get("V") is not None and _same(given["V"], given.get("U")):
        del given["V"]
    return given


def read_pair_logits(
    model: nn.Module, tokens: Int[Tensor, "example 2"], *, chunk: int = 4096
) -> Float[Tensor, "example class"]:
    """The logits of pairs, without gradients, on the CPU, in float32 or float64.

    Hooks that are attached act, and so does a swapped activation. The network is left as it was.

    Args:
        model: A `TwoLayerNet`, also a compiled one.
        tokens: The pairs; none is fine.
        chunk: Pairs per forward pass.

    Raises:
        MeasureError: If a token is not one of the network's.
    """
    net = two_layer_of(model)
    if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < net.spec.n_tokens:
        raise MeasureError(
            f"`tokens` must be from 0 to {net.spec.n_tokens - 1}; got {int(tokens.min())} to "
            f"{int(tokens.max())}."
        )
    return logits_in_chunks(net, tokens, chunk=chunk)


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, Tensor) and isinstance(other, Tensor) and torch.equal(one, other)
