"""All measures of one checkpoint, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable

from transformer_lens import HookedTransformer

from interp_shortcuts.tasks.task import ShortcutTask
from plain_tracking import ablations, gradients, observed, patching
from plain_tracking.reading import SPLITS, Numbers, Read, Sizes, cached

CACHED = ("hook_pattern", "hook_attn_scores", "hook_z", "hook_v", "hook_mlp_out")


def measure_checkpoint(
    model: HookedTransformer, task: ShortcutTask, sizes: Sizes
) -> tuple[Numbers, dict[str, float]]:
    """All numbers of one checkpoint, and the CPU seconds that each measure took."""
    start = time.process_time()
    passes = {}
    for name in ("train", *SPLITS):
        passes[name] = cached(model, task.split(name).tokens, CACHED)
    read = Read(model, task, sizes, passes)
    seconds = {"forward pass": time.process_time() - start}
    numbers: Numbers = {}
    for name, measure in MEASURES.items():
        start = time.process_time()
        numbers |= measure(read)
        seconds[name] = time.process_time() - start
    return numbers, seconds


MEASURES: dict[str, Callable[[Read], Numbers]] = {
    "behaviour": observed.behaviour,
    "qk_spearman": observed.qk_spearman,
    "attention": observed.attention,
    "ov_spearman": observed.ov_spearman,
    "ov_class_fraction": observed.ov_class_fraction,
    "ablation": ablations.ablation,
    "qk_ablation": ablations.qk_ablation,
    "ov_ablation": ablations.ov_ablation,
    "cross_split_patching": patching.cross_split_patching,
    "gradient_conflict": gradients.gradient_conflict,
    "saturation": observed.saturation,
}
"""By the name of the package's measure."""
