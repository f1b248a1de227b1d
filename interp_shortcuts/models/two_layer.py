"""`TwoLayerNet`: one hidden layer on a pair of tokens, with TransformerLens's hook surface.

f(a, b) = W phi(U e_a + V e_b) + mu, the network of arXiv 2605.18022. How it is read by frequency
is left to `spectrum`, the network whose answer is known in advance to `analytic`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call

from interp_shortcuts.errors import ConfigError, MeasureError
from interp_shortcuts.models.activations import activation_function
from interp_shortcuts.models.build import check_weights, without_extras
from interp_shortcuts.models.lens import HookedRootModule, HookPoint
from interp_shortcuts.models.random_state import kept_random_state
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.streams import numpy_stream

_COMPILED = "_orig_mod"


class TwoLayerNet(HookedRootModule):
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

    def __init__(self, spec: TwoLayerSpec) -> None:
        super().__init__()
        self.spec = spec
        self._activation: str = spec.activation
        parameters = {name: nn.Parameter(torch.zeros(shape)) for name, shape in spec.shapes.items()}
        self.U = parameters["U"]
        self.V = parameters.get("V", self.U)
        self.W = parameters["W"]
        self.mu = parameters["mu"]
        self.hook_pre, self.hook_post, self.hook_logits = HookPoint(), HookPoint(), HookPoint()
        self.setup()

    @property
    def activation(self) -> str:
        """The activation that acts now: the spec's, unless it is swapped."""
        return self._activation

    def forward(self, tokens: Int[Tensor, "example 2"]) -> Float[Tensor, "example class"]:
        """The logits of each pair."""
        pre = self.hook_pre(self.U[tokens[:, 0]] + self.V[tokens[:, 1]])
        post = self.hook_post(activation_function(self._activation)(pre))
        return self.hook_logits(post @ self.W + self.mu)

    @contextmanager
    def acting_with(self, activation: str) -> Iterator[TwoLayerNet]:
        """The network with another activation while the block runs; then with the one before.

        Raises:
            ConfigError: If there is no such activation.
        """
        activation_function(activation)  # refuses an unknown one
        before = self._activation
        self._activation = activation
        try:
            yield self
        finally:
            self._activation = before


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
    with kept_random_state():
        net = TwoLayerNet(spec)
    if seed is not None:
        load_two_layer_weights(net, initial_two_layer_weights(spec, seed))
    for parameter in net.parameters():
        parameter.data = parameter.data.to(device)
    return net


def initial_two_layer_weights(spec: TwoLayerSpec, seed: int) -> dict[str, Tensor]:
    """The weights that a seed stands for.

    **Ours**, since the paper does not say: U and V are normal with standard deviation
    s / sqrt(P) and W with s / sqrt(M), where s is `init_scale`: one over the square root of the
    number of columns that a dense layer on one-hot vectors, and on the neurons, would have. mu is
    zero. Each matrix has the stream `("init", "two_layer", name)`; the draws are NumPy's.

    Returns:
        float32 tensors on the CPU, by name: `U`, `V` unless tied, `W`, `mu`.
    """
    weights = {}
    for name, shape in spec.shapes.items():
        weights[name] = torch.zeros(shape)
        if name != "mu":
            draw = numpy_stream(seed, "init", "two_layer", name).standard_normal(shape)
            weights[name].copy_(torch.from_numpy(spec.init_scale / math.sqrt(shape[0]) * draw))
    return weights


def two_layer_of(model: nn.Module) -> TwoLayerNet:
    """The `TwoLayerNet` itself, also when a `torch.compile`d one is handed over.

    Raises:
        ConfigError: If there is no `TwoLayerNet` inside.
    """
    while not isinstance(model, TwoLayerNet) and isinstance(
        inner := getattr(model, _COMPILED, None), nn.Module
    ):
        model = inner
    if not isinstance(model, TwoLayerNet):
        raise ConfigError(f"`model` must be a TwoLayerNet; got {type(model).__name__}.")
    return model


def two_layer_weights(model: nn.Module) -> dict[str, Tensor]:
    """A copy of every parameter, on the CPU and in the network's dtype."""
    return {
        name: parameter.detach().to("cpu", copy=True).contiguous()
        for name, parameter in two_layer_of(model).named_parameters()
    }


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
    given = without_extras(weights)
    if net.spec.tied and given.get("V") is not None and _same(given["V"], given.get("U")):
        del given["V"]
    check_weights(given, net.spec.shapes)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.copy_(given[name])


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
    wide = torch.promote_types(net.mu.dtype, torch.float32)
    weights = {name: parameter.detach().to(wide) for name, parameter in net.named_parameters()}
    with torch.no_grad():
        parts = [
            functional_call(net, weights, (part.to(net.mu.device),)).cpu()
            for part in tokens.split(chunk)
        ]
    return torch.cat(parts)


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, Tensor) and isinstance(other, Tensor) and torch.equal(one, other)
