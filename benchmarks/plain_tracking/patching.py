"""Interchange interventions, one hooked pass for each component or site, pairing and direction."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from interp_shortcuts.measures.pairs import Pairs, pairs_of
from plain_tracking.ablations import component_sets, replacing
from plain_tracking.reading import (
    N_LAYERS,
    Numbers,
    Read,
    cached,
    fraction_and_interval,
    mean_and_interval,
    run,
)

MIN_DIFFERENCE = 0.5
FRACTIONS = {"rule": "rule_transfer", "shortcut": "shortcut_transfer", "control": "disruption"}
RESIDUAL = [
    *(f"blocks.{layer}.hook_resid_pre" for layer in range(N_LAYERS)),
    f"blocks.{N_LAYERS - 1}.hook_resid_post",
]


def put_position(value: Tensor, position: int) -> Callable[..., Tensor]:
    def write(activation: Tensor, hook: Any) -> Tensor:
        del hook
        activation[:, position] = value[:, position]
        return activation

    return write


def cross_split_patching(read: Read) -> Numbers:
    sizes, n_positions = read.sizes, read.task.context
    # a difference of logits is divided by: float32 would leave it too few digits
    exact = deepcopy(read.model).to(torch.float64, print_details=False)
    found: list[Numbers] = []
    for pairs in pairs_of(read.task, n_pairs=sizes.n_pairs):
        target = pairs.target.tokens
        first = target[: sizes.n_residual_pairs]
        plain = run(read.model, target, [])
        numbers: Numbers = {}
        for pairing, source in pairs.sources.items():
            names = ("hook_z", "hook_mlp_out", "hook_resid_pre", "hook_resid_post")
            cache = cached(read.model, source.tokens, names)[1]
            patched = [
                run(read.model, target, replacing(heads, mlps, cache))
                for heads, mlps in component_sets(mlps=True)
            ]
            residual = [
                run(read.model, first, [(site, put_position(cache[site][: len(first)], position))])
                for site in RESIDUAL
                for position in range(n_positions)
            ]
            name = FRACTIONS[pairing]
            patched = torch.stack(patched)
            numbers |= moved(name, pairs, pairing, plain, patched)
            numbers |= moved(
                f"residual_{name}",
                pairs.first(len(first)),
                pairing,
                plain[: len(first)],
                torch.stack(residual),
                shape=(len(RESIDUAL), n_positions),
            )
            if pairing != "control":
                source_logits = run(exact, source.tokens, [])
                numbers |= recovered(pairs, pairing, run(exact, target, []), source_logits, patched)
        found.append(numbers)
    return {
        name: np.stack([one[name] for one in found], -2 if name.endswith("interval") else -1)
        for name in found[0]
    }


def changed_labels(pairs: Pairs, pairing: str) -> tuple[Tensor, Tensor]:
    source = pairs.sources[pairing]
    if pairing == "rule":
        return pairs.target.labels, source.labels
    return pairs.target.shortcut_labels, source.shortcut_labels


def moved(
    name: str,
    pairs: Pairs,
    pairing: str,
    plain: Tensor,
    patched: Tensor,
    *,
    shape: tuple[int, ...] = (-1,),
) -> Numbers:
    before, after = plain.argmax(-1), patched.argmax(-1)
    counts = pairs.found[pairing]
    if pairing == "control":
        k = (after != before) & counts
    else:
        wanted = changed_labels(pairs, pairing)[1]
        counts = counts & (before != wanted)
        k = (after == wanted) & counts
    n = np.full(len(patched), int(counts.sum()))
    fraction, interval = fraction_and_interval(k.sum(-1).numpy(), n)
    return {
        name: fraction.reshape(shape),
        f"{name}_interval": interval.reshape(*shape, 2),
        f"{name}_n": n.reshape(shape),
    }


def recovered(
    pairs: Pairs, pairing: str, plain: Tensor, source: Tensor, patched: Tensor
) -> Numbers:
    of_target, of_source = changed_labels(pairs, pairing)

    def difference(logits: Tensor) -> Tensor:
        def at(labels: Tensor) -> Tensor:
            return logits.double().gather(-1, labels.expand(logits.shape[:-1])[..., None])[..., 0]

        return at(of_source) - at(of_target)

    whole = difference(source) - difference(plain)
    counts = pairs.found[pairing] & (whole.abs() >= MIN_DIFFERENCE)
    fraction = (difference(patched) - difference(plain)) / torch.where(counts, whole, torch.nan)
    mean, interval, n = mean_and_interval(fraction.T.numpy())
    name = f"{pairing}_recovered"
    left_out = np.full_like(n, int((pairs.found[pairing] & ~counts).sum()))
    return {name: mean, f"{name}_interval": interval, f"{name}_n": n, f"{name}_left_out": left_out}
