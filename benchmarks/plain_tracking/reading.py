"""What the plain measures share: the sizes, cached and hooked passes, means with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor
from transformer_lens import HookedTransformer

from interp_shortcuts.tasks.task import ShortcutTask

N_LAYERS = N_HEADS = 2
SPLITS = ("validation", "adversarial")
HEADS = [(layer, head) for layer in range(N_LAYERS) for head in range(N_HEADS)]
Hook = tuple[str, Callable[..., Tensor]]
Numbers = dict[str, np.ndarray]
Z = 1.959964


@dataclass(frozen=True)
class Sizes:
    """How many examples the causal measures and the gradients of single examples use."""

    examples: int
    reference_examples: int
    n_pairs: int
    n_residual_pairs: int
    norm_examples: int = 32


@dataclass(frozen=True)
class Read:
    """A model at one checkpoint, what it is asked, and its cached passes by split."""

    model: HookedTransformer
    task: ShortcutTask
    sizes: Sizes
    passes: dict[str, tuple[Tensor, Any]]
    """Logits at "=" and cached activations, over all examples."""


def cached(model: HookedTransformer, tokens: Tensor, names: Sequence[str]) -> tuple[Tensor, Any]:
    """Logits at "=", and the activations of hook points whose names end so."""
    with torch.no_grad():
        passed: tuple[Any, Any] = model.run_with_cache(
            tokens, names_filter=lambda name: name.endswith(tuple(names))
        )
    return passed[0][:, -1], passed[1]


def run(model: HookedTransformer, tokens: Tensor, hooks: Sequence[Hook]) -> Tensor:
    """Logits at "=" with hooks."""
    with torch.no_grad():
        return model.run_with_hooks(tokens, fwd_hooks=list(hooks))[:, -1]


def z_name(layer: int) -> str:
    return f"blocks.{layer}.attn.hook_z"


def v_name(layer: int) -> str:
    return f"blocks.{layer}.attn.hook_v"


def mlp_name(layer: int) -> str:
    return f"blocks.{layer}.hook_mlp_out"


def pattern_name(layer: int) -> str:
    return f"blocks.{layer}.attn.hook_pattern"


def mean_and_interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean over the first axis, its 95% interval and n, without the NaN."""
    defined = np.isfinite(values)
    n = defined.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(defined, values, 0).sum(0) / n
        error = np.sqrt(np.where(defined, (values - mean) ** 2, 0).sum(0) / (n - 1) / n)
    return mean, np.stack([mean - Z * error, mean + Z * error], -1), n


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """SciPy's, of two vectors."""
    result: Any = stats.spearmanr(first, second)
    return float(result.statistic)


def fraction_and_interval(k: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """k / n and its Clopper-Pearson interval."""
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.where(k == 0, 0, stats.beta.ppf(0.025, k, n - k + 1))
        high = np.where(k == n, 1, stats.beta.ppf(0.975, k + 1, n - k))
        both = np.where((n > 0)[..., None], np.stack([low, high], -1), np.nan)
        return k / n, both
