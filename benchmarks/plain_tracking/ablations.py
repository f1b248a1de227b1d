"""Ablations, one hooked pass for each component or set, way to ablate, and split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from interp_shortcuts.streams import derive_seed, torch_stream
from interp_shortcuts.tasks.split import Split
from plain_tracking.reading import (
    HEADS,
    N_HEADS,
    N_LAYERS,
    SPLITS,
    Hook,
    Numbers,
    Read,
    mean_and_interval,
    mlp_name,
    pattern_name,
    run,
    v_name,
    z_name,
)

Head = tuple[int, int]


def component_sets(*, mlps: bool) -> list[tuple[list[Head], list[int]]]:
    """Heads and MLPs of each set: the components, then the heads of each layer, all heads and
    all MLPs. The components of a layer stand together."""
    singles: list[tuple[list[Head], list[int]]] = []
    for layer in range(N_LAYERS):
        singles += [([(layer, head)], []) for head in range(N_HEADS)]
        if mlps:
            singles.append(([], [layer]))
    layers = [([one for one in HEADS if one[0] == layer], []) for layer in range(N_LAYERS)]
    sets = [*singles, *layers, (HEADS, [])]
    return [*sets, ([], list(range(N_LAYERS)))] if mlps else sets


def replacing(heads: list[Head], mlps: list[int], cache: Any) -> list[Hook]:
    """Hooks that put in what a cache (or its mean) holds."""
    return [
        (z_name(layer), put(cache[z_name(layer)][..., head, :], head)) for layer, head in heads
    ] + [(mlp_name(layer), put(cache[mlp_name(layer)])) for layer in mlps]


def put(value: Tensor, head: int | None = None) -> Callable[..., Tensor]:
    """A hook that writes a value: into one head of [example position head d_head], or all over."""

    def write(activation: Tensor, hook: Any) -> Tensor:
        del hook
        if head is None:
            activation[:] = value
        else:
            activation[:, :, head] = value
        return activation

    return write


def put_pattern(value: Tensor, head: int) -> Callable[..., Tensor]:
    def write(pattern: Tensor, hook: Any) -> Tensor:
        del hook
        pattern[:, head] = value
        return pattern

    return write


def effects(split: Split, plain: Tensor, ablated: Tensor) -> list[Any]:
    """Paired differences of runs [run example class], for each outcome."""
    labels = split.labels

    def outcomes(logits: Tensor) -> np.ndarray:
        n_runs = len(logits)
        correct = (logits.argmax(-1) == labels).double()
        flat = logits.flatten(0, 1)
        loss = F.cross_entropy(flat, labels.repeat(n_runs), reduction="none").view(n_runs, -1)
        true = logits.double().gather(-1, labels.expand(n_runs, -1)[..., None])[..., 0]
        difference = 2 * true - logits.double().sum(-1)  # two classes
        return torch.stack([correct, -loss.double(), difference]).numpy()

    drops = outcomes(plain[None]) - outcomes(ablated)
    return [mean_and_interval(drop.T) for drop in drops]


def ablated(
    read: Read, name: str, kinds: int, hooks_of: Callable[[str, int], list[list[Hook]]]
) -> Numbers:
    """The effects of ablations on both splits.

    Args:
        read: The checkpoint.
        name: How its variables begin.
        kinds: How many ways to ablate; 0 if they are no dimension.
        hooks_of: Hooks of each run, sets first and ways within, from a split's name and size.
    """
    found: list[list[Any]] = []
    for split_name in SPLITS:
        whole = read.task.split(split_name)
        split = whole.take(torch.arange(min(read.sizes.examples, whole.n)))
        runs = [
            run(read.model, split.tokens, hooks)
            for hooks in hooks_of(split_name, len(split.labels))
        ]
        plain = read.passes[split_name][0][: split.n]
        found.append(effects(split, plain, torch.stack(runs)))
    numbers = {}
    shape = (-1, kinds) if kinds else (-1,)
    for index, outcome in enumerate(("accuracy_drop", "loss_increase", "logit_difference_drop")):
        means = [of_split[index][0].reshape(*shape) for of_split in found]
        intervals = [of_split[index][1].reshape(*shape, 2) for of_split in found]
        numbers[f"{name}_{outcome}"] = np.stack(means, -1)
        numbers[f"{name}_{outcome}_interval"] = np.stack(intervals, -2)
    return numbers


def reference(read: Read) -> dict[str, Tensor]:
    """Activations of the first training examples, by hook name."""
    cache = read.passes["train"][1]
    return {name: cache[name][: read.sizes.reference_examples] for name in cache}


def ablation(read: Read) -> Numbers:
    own = reference(read)
    n_reference = len(own[z_name(0)])
    zero = {name: torch.zeros_like(value[0]) for name, value in own.items()}
    mean = {name: value.double().mean(0).float() for name, value in own.items()}

    def hooks_of(split: str, n: int) -> list[list[Hook]]:
        stream = torch_stream(derive_seed(0, "ablation", split), "ablate", "resample")
        drawn = torch.randint(n_reference, (n,), generator=stream)
        donors = {name: own[name][drawn] for name in own if name.endswith(("hook_z", "mlp_out"))}
        return [
            replacing(heads, mlps, values)
            for heads, mlps in component_sets(mlps=True)
            for values in (zero, mean, donors)
        ]

    return ablated(read, "ablation", 3, hooks_of)


def qk_ablation(read: Read) -> Numbers:
    own = reference(read)
    allowed = torch.ones(read.task.context, read.task.context).tril()
    uniform = allowed / allowed.sum(-1, keepdim=True)
    means = [own[pattern_name(layer)].double().mean(0).float() for layer in range(N_LAYERS)]

    def hooks_of(split: str, n: int) -> list[list[Hook]]:
        del split, n
        runs = []
        for heads, _ in component_sets(mlps=False):
            runs.append([(pattern_name(at), put_pattern(uniform, head)) for at, head in heads])
            runs.append(
                [(pattern_name(at), put_pattern(means[at][head], head)) for at, head in heads]
            )
        return runs

    return ablated(read, "qk_ablation", 2, hooks_of)


def ov_ablation(read: Read) -> Numbers:
    own = reference(read)
    means = [own[v_name(layer)].double().mean(0).float() for layer in range(N_LAYERS)]

    def hooks_of(split: str, n: int) -> list[list[Hook]]:
        del split, n
        return [
            [(v_name(layer), put(means[layer][:, head], head)) for layer, head in heads]
            for heads, _ in component_sets(mlps=False)
        ]

    return ablated(read, "ov_ablation", 0, hooks_of)
