"""What the consistent and the anti examples of train each ask of the weights, part by part.

Gradients come from models/differentiate and parts from models/parts. How strongly the examples
still speak at the logits is in `saturation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.base import BOUNDS, PAPER, Measure, axis_labels
from interp_shortcuts.measures.groups import EMPTY, GROUPS
from interp_shortcuts.measures.intervals import mean_with_interval
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.differentiate import example_gradient_norms, mean_gradient
from interp_shortcuts.models.parts import part_vectors, parts

MODEL = "model"
"""The part that is all parts together."""
ROUNDING = 1e-7
"""A part's gradient below this fraction of the whole model's is rounding: it counts as zero."""
CANCELLED = 1e-4
"""A sum below this fraction of its two terms' norms is too small to be divided into shares."""

EITHER_EMPTY = "a group has no example"
ZERO = (
    f"{EITHER_EMPTY}, or its gradient is zero (at most {ROUNDING:g} of the whole model's, which is "
    "rounding)"
)


class Conflict(NamedTuple):
    """What follows from the inner products of the two groups' gradients, for each part."""

    norm: Float[np.ndarray, "part group"]
    cosine: Float[np.ndarray, " part"]
    amplification: Float[np.ndarray, " part"]
    share: Float[np.ndarray, "part group"]


@dataclass(frozen=True)
class GradientConflict(Measure):
    """The gradients g_c and g_a of the mean loss over consistent and over anti training examples.

    Each comes from its own backward passes. The amplification A = |g_a| / |g_c| must be read
    against its floor: at any stationary point of r L_c + (1-r) L_a (weight decay aside)
    r g_c = -(1-r) g_a, so that A = r/(1-r) and cosine = -1 by arithmetic alone. What goes beyond
    is the excess.

    Attributes:
        examples: Examples used of each group, its first ones, which makes g_c and g_a estimates;
            None for all, which makes them exact.
        norm_examples: Examples of each group whose single gradients are taken, its first ones.
    """

    name: ClassVar[str] = "gradient_conflict"
    version: ClassVar[int] = 2  # 2: the loss from logits in float64
    reads: ClassVar[Literal["weights", "activations"]] = "activations"
    constant: ClassVar[frozenset[str]] = frozenset(
        {"gradient_amplification_floor", "gradient_n", "gradient_example_norm_n"}
    )

    examples: int | None = None
    norm_examples: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.examples is not None and self.examples < 1:
            raise MeasureError(f"`examples` (={self.examples}) must be at least 1, or None.")
        if self.norm_examples < 0:
            raise MeasureError(f"`norm_examples` (={self.norm_examples}) must be at least 0.")

    def measure(self, observation: Observation) -> xr.Dataset:
        sizes = np.array([observation.answering.split(group).n for group in GROUPS])
        variables = {
            **self._conflict(observation, sizes),
            **self._example_norms(observation),
        }
        labels = (MODEL, *parts(observation.spec))
        return xr.Dataset(variables, coords=axis_labels(part=labels, group=GROUPS, bound=BOUNDS))

    def _conflict(
        self, observation: Observation, sizes: Int[np.ndarray, " group"]
    ) -> dict[str, xr.Variable]:
        used = sizes if self.examples is None else np.minimum(sizes, self.examples)
        products = inner_products(observation, used)
        floor = sizes[0] / sizes[1] if sizes.all() else np.nan
        found = conflict(products, sizes / max(sizes.sum(), 1))
        source = (
            f"g_c, g_a = gradients of the mean loss over {_first(self.examples)} consistent and "
            f"anti training examples; {PAPER}"
        )
        stationary = (
            "at any stationary point of r L_c + (1-r) L_a (weight decay aside) A = r/(1-r) and "
            "cosine = -1 by arithmetic alone"
        )
        return {
            "gradient_norm": self.described(
                ["part", "group"],
                found.norm,
                long_name="gradient norm",
                units="nats per unit of weight",
                definition=f"Euclidean norm |g_c| or |g_a| over the part's parameters; {source}",
                range="[0, inf)",
                nan_means=EMPTY,
            ),
            "gradient_cosine": self.described(
                ["part"],
                found.cosine,
                long_name="gradient cosine",
                units="cosine",
                definition=f"<g_c, g_a> / (|g_c| |g_a|) over the part's parameters; {source}; "
                + stationary,
                range="[-1, 1]",
                nan_means=ZERO,
            ),
            "gradient_amplification": self.described(
                ["part"],
                found.amplification,
                long_name="gradient amplification",
                units="ratio",
                definition=f"A = |g_a| / |g_c| over the part's parameters; {source}; {stationary}, "
                "so A is evidence only where it exceeds that floor",
                range="[0, inf)",
                nan_means=ZERO,
            ),
            "gradient_amplification_floor": self.described(
                [],
                np.asarray(floor),
                long_name="gradient amplification, floor",
                units="ratio",
                definition="r/(1-r), with r the achieved fraction of consistent examples in "
                f"train; {stationary}",
                range="(0, inf)",
                nan_means=EITHER_EMPTY,
            ),
            "gradient_excess": self.described(
                ["part"],
                found.amplification / floor,
                long_name="gradient excess",
                units="ratio",
                definition="A (1-r)/r: the amplification A = |g_a| / |g_c| over its floor "
                f"r/(1-r), which is 1 wherever the step vanishes; {source}",
                range="[0, inf)",
                nan_means=ZERO,
            ),
            "gradient_share": self.described(
                ["part", "group"],
                found.share,
                long_name="share of the gradient",
                units="fraction",
                definition="<w_g g_g, g> / |g|^2 over the part's parameters, with g = r g_c + "
                "(1-r) g_a and w_g = r or 1-r: the projection of the group's weighted gradient "
                f"on the total; the two sum to 1, and one is negative if it opposes; {source}",
                range="(-inf, inf)",
                nan_means=f"{EITHER_EMPTY}, or the weighted gradients cancel: |g| is at most "
                f"{CANCELLED:g} of r |g_c| + (1-r) |g_a|",
            ),
            "gradient_n": self.described(
                ["group"],
                used,
                long_name="examples behind the gradients",
                units="examples",
                definition="number of training examples over which g_c and g_a are means",
                range="[0, inf)",
            ),
        }

    def _example_norms(self, observation: Observation) -> dict[str, xr.Variable]:
        found = []
        for group in GROUPS:
            split = observation.answering.split(group)
            norms = example_gradient_norms(
                observation.model,
                split.tokens[: self.norm_examples],
                split.labels[: self.norm_examples],
                observation.answering.loss,
                position=observation.answering.read_position,
            )
            found.append(mean_with_interval(norms.numpy()))
        over = f"the first {self.norm_examples} training examples of the group"
        return {
            "gradient_example_norm": self.described(
                ["group"],
                np.array([mean.value for mean in found]),
                long_name="gradient norm of single examples",
                units="nats per unit of weight",
                definition="mean of the Euclidean norm of each example's own gradient with "
                f"respect to all parameters, over {over}; {PAPER}",
                range="[0, inf)",
                nan_means=f"{EMPTY}, or none was asked for",
            ),
            "gradient_example_norm_interval": self.described(
                ["group", "bound"],
                np.array([mean.interval for mean in found]),
                long_name="gradient norm of single examples, 95% interval",
                units="nats per unit of weight",
                definition=f"mean -+ 1.96 standard errors over {over}",
                range="(-inf, inf)",
                nan_means="fewer than two examples",
            ),
            "gradient_example_norm_n": self.described(
                ["group"],
                np.array([int(mean.n) for mean in found], dtype=np.int64),
                long_name="examples behind the norm of single gradients",
                units="examples",
                definition=f"number of examples averaged: {over}, if there are as many",
                range="[0, inf)",
            ),
        }


def inner_products(
    observation: Observation, used: Int[np.ndarray, " group"]
) -> Float[np.ndarray, "part group other"]:
    """<g, g'> of the groups' mean gradients over each part, in float64; the model comes first.

    Args:
        observation: The model and the task.
        used: How many examples of each group, its first ones; NaN is given for a group without.
    """
    labels = parts(observation.spec)
    products = np.full((1 + len(labels), len(used), len(used)), np.nan)
    vectors = {}
    for group, n in enumerate(used):
        if n:
            split = observation.answering.split(GROUPS[group])
            gradient = mean_gradient(
                observation.model,
                split.tokens[:n],
                split.labels[:n],
                observation.answering.loss,
                position=observation.answering.read_position,
            )
            vectors[group] = part_vectors(gradient, observation.spec)
    for (first, mine), (second, others) in (
        (one, two) for one in vectors.items() for two in vectors.items()
    ):
        products[1:, first, second] = [
            float(torch.dot(mine[label], others[label])) for label in labels
        ]
    products[0] = products[1:].sum(axis=0)
    return products


def conflict(
    products: Float[np.ndarray, "part group other"], weight: Float[np.ndarray, " group"]
) -> Conflict:
    """Norms, cosine, amplification and shares from inner products of gradients.

    Args:
        products: <g, g'> of each part, the whole model's first; consistent before anti.
        weight: The fraction of train that each group is.
    """
    norm = np.sqrt(np.diagonal(products, axis1=1, axis2=2))
    some = norm > ROUNDING * norm[:1]  # False for NaN too, and for a model without any gradient
    defined = np.where(some, norm, np.nan)
    cosine = np.clip(products[:, 0, 1] / defined.prod(axis=1), -1, 1)
    amplification = norm[:, 1] / defined[:, 0]
    along = (products * weight[:, None] * weight).sum(axis=2)  # <w_g g_g, g>
    total = along.sum(axis=1, keepdims=True)  # |g|^2
    smallest = CANCELLED * (norm * weight).sum(axis=1, keepdims=True)
    share = along / np.where(total > smallest**2, total, np.nan)
    return Conflict(norm, cosine, amplification, share)


def _first(examples: int | None) -> str:
    return "all" if examples is None else f"the first {examples}"
