"""The network that solves modular arithmetic by construction, from arXiv 2605.18022.

Each neuron has one frequency k and cosines u, v, w of it round the circle of the residues, with
phases phi_u + phi_v = phi_w. With the quadratic activation a neuron adds
cos(2 pi k (a o b - c) / n) / 2 to the logit of c, and terms whose random phases average out over
neurons; so accuracy rises with the width.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.spectrum import places_of
from interp_shortcuts.models.two_layer import (
    TwoLayerNet,
    build_two_layer,
    load_two_layer_weights,
)
from interp_shortcuts.models.two_layer_spec import PairActivation, TwoLayerSpec
from interp_shortcuts.residues import Arithmetic, turn
from interp_shortcuts.streams import numpy_stream


def analytic_network(
    modulus: int,
    *,
    width: int,
    activation: PairActivation = "quadratic",
    arithmetic: Arithmetic = "add",
    seed: int = 0,
) -> TwoLayerNet:
    """The analytic solution with random frequencies and phases; mu is zero.

    Frequencies are uniform over the whole ones strictly between 0 and n / 2, phases over the full
    turn, from the streams `("analytic", "frequencies")` and `("analytic", "phases")`. For
    multiplication the circle is that of the powers of a primitive root, and the rows and the
    column of zero are zero.

    Args:
        modulus: The modulus P.
        width: Number M of neurons.
        activation: What the neurons do; the weights do not depend on it.
        arithmetic: The operation.
        seed: Seed of frequencies and phases.

    Raises:
        ConfigError: If the operation has no circle at this modulus, or the circle is so small
            that it has no such frequency.
    """
    places = places_of(arithmetic, modulus)
    n = len(places)
    n_frequencies = (n - 1) // 2
    if not n_frequencies:
        raise ConfigError(
            f"`modulus` (={modulus}) must give a circle of at least 3 residues; for `arithmetic` "
            f"{arithmetic!r} it has {n}."
        )
    frequencies = numpy_stream(seed, "analytic", "frequencies").integers(
        1, n_frequencies + 1, size=width
    )
    first, second = numpy_stream(seed, "analytic", "phases").uniform(0, 2 * math.pi, (2, width))
    out = first + turn(arithmetic) * second
    angles = 2 * math.pi * frequencies[:, None] * np.arange(n) / n
    vectors = torch.zeros(3, width, modulus, dtype=torch.float64)
    for vector, phase in enumerate((first, second, out)):
        vectors[vector][:, places] = torch.from_numpy(np.cos(angles + phase[:, None]))
    u, v, w = vectors.float()
    spec = TwoLayerSpec(n_tokens=modulus, n_classes=modulus, width=width, activation=activation)
    net = build_two_layer(spec)
    load_two_layer_weights(net, {"U": u.T, "V": v.T, "W": w, "mu": torch.zeros(modulus)})
    return net
