"""Gradients of the two groups of training examples, and of single examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.func import functional_call, grad, vmap

from plain_tracking.reading import N_HEADS, N_LAYERS, Numbers, Read, mean_and_interval


def part_slices() -> list[list[tuple[str, Any]]]:
    """Pieces of parameters that make up each part: the name, and the index on the first axis."""
    everything = slice(None)
    parts: list[list[tuple[str, Any]]] = [
        [("embed.W_E", everything)],
        [("pos_embed.W_pos", everything)],
    ]
    for layer in range(N_LAYERS):
        at = f"blocks.{layer}"
        for head in range(N_HEADS):
            for letter in "QKV":
                parts.append([(f"{at}.attn.W_{letter}", head), (f"{at}.attn.b_{letter}", head)])
            parts.append([(f"{at}.attn.W_O", head)])
        parts.append([(f"{at}.attn.b_O", everything)])
        mlp = ("W_in", "b_in", "W_out", "b_out")
        parts.append([(f"{at}.mlp.{name}", everything) for name in mlp])
    parts.append([("unembed.W_U", everything), ("unembed.b_U", everything)])
    return parts


def gradient_conflict(read: Read) -> Numbers:
    model, task = read.model, read.task
    weights = dict(model.named_parameters())
    vectors: list[list[Tensor]] = []
    norms, intervals = [], []

    def loss_of_one(parameters: dict[str, Tensor], tokens: Tensor, label: Tensor) -> Tensor:
        logits = functional_call(model, parameters, (tokens[None],))
        return F.cross_entropy(logits[:, -1].double(), label[None])

    for group in ("consistent", "anti"):
        split = task.split(group)
        loss = F.cross_entropy(model(split.tokens)[:, -1].double(), split.labels)
        found = torch.autograd.grad(loss, list(weights.values()))
        gradient = dict(zip(weights, found, strict=True))
        vectors.append(
            [
                torch.cat([gradient[name][index].flatten() for name, index in part]).double()
                for part in part_slices()
            ]
        )
        each = vmap(grad(loss_of_one), in_dims=(None, 0, 0))(
            {name: weight.detach() for name, weight in weights.items()},
            split.tokens[: read.sizes.norm_examples],
            split.labels[: read.sizes.norm_examples],
        )
        squared = sum(g.double().flatten(1).square().sum(1) for g in each.values())
        mean, interval, _ = mean_and_interval(torch.as_tensor(squared).sqrt().numpy())
        norms.append(mean)
        intervals.append(interval)
    c, a = ([torch.cat(vector), *vector] for vector in vectors)  # the whole model comes first
    cc, aa, ca = (
        np.array([float(one @ other) for one, other in zip(first, second, strict=True)])
        for first, second in ((c, c), (a, a), (c, a))
    )
    n_c, n_a = task.split("consistent").n, task.split("anti").n
    r = n_c / (n_c + n_a)
    amplification = np.sqrt(aa / cc)
    along_c, along_a = r * r * cc + r * (1 - r) * ca, (1 - r) ** 2 * aa + r * (1 - r) * ca
    share = np.stack([along_c, along_a], -1) / (along_c + along_a)[:, None]
    return {
        "gradient_norm": np.sqrt(np.stack([cc, aa], -1)),
        "gradient_cosine": ca / np.sqrt(cc * aa),
        "gradient_amplification": amplification,
        "gradient_excess": amplification * n_a / n_c,
        "gradient_share": share,
        "gradient_example_norm": np.array(norms),
        "gradient_example_norm_interval": np.array(intervals),
    }
