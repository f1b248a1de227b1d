"""The two tasks of the paper on hidden heroes and gradient bloats (arXiv 2602.01442).

Sequences to be sorted or reversed, each at a size for a demo and at the paper's size.
"""

from __future__ import annotations

from typing import Any

from interp_shortcuts.presets.base import configured, registered
from interp_shortcuts.runs.config import OptimConfig, RunConfig
from interp_shortcuts.tasks.sequence_config import SequenceConfig

# The paper's code: integers 1 to 99, lengths 3 to 7 trained and 8 to 11 held out, 4 layers, 4
# heads, width 128, LayerNorm, GELU, Adam without weight decay, batches of 64 fresh sequences,
# at most 15,000 steps, asked every 500 steps whether 90% of the answers are right in full.
# Positions: the paper says learned, its code has none. None here: with learned ones the positions
# of held-out lengths are never trained, so that hardly an answer there is right and every seed
# would be excluded. Ours: evaluations are denser up to step 500; any of them ends the run at 90%.
_SEQUENCE_START = RunConfig(
    task=SequenceConfig(operation="sorting"), optim=OptimConfig(batch_size=64)
)
_SEQUENCE_PAPER: dict[str, Any] = {
    "n_integers": 99,
    "train_min": 3,
    "train_max": 7,
    "heldout_max": 11,
    "n_layers": 4,
    "n_heads": 4,
    "d_model": 128,
    "d_mlp": 512,
    "activation": "gelu",
    "normalization": "LN",
    "positions": "none",
    "optimizer": "adam",
    "lr": 1e-3,
    "weight_decay": 0.0,
    "n_steps": 15_000,
    "dense_until": 500,
    "dense_points": 20,
    "every": 500,
    "resume_every": 250,
}


# Small enough to train in seconds: 20 integers, lengths 3 to 5 trained and 6 to 8 held out, a
# smaller model. With 2 layers reversal stayed below 90% for 3,000 steps.
_SEQUENCE_DEMO: dict[str, Any] = {
    **_SEQUENCE_PAPER,
    "n_integers": 20,
    "train_max": 5,
    "heldout_max": 8,
    "n_layers": 3,
    "d_model": 64,
    "d_mlp": 256,
    "n_steps": 3_000,
    "dense_until": 100,
    "dense_points": 16,
    "every": 50,
    "resume_every": 100,
}


@registered(
    "integers to be sorted, at demo size; trained until 90% of the answers are right",
    cost="about 15 seconds (measured)",
)
def sequence_sorting_demo(seed: int = 0, **overrides: Any) -> RunConfig:
    """Sequences to be sorted, small enough to watch; see `sequence_sorting_paper`."""
    base = {**_SEQUENCE_DEMO, "operation": "sorting", "name": "sequence_sorting_demo"}
    return configured(base, seed, overrides, start=_SEQUENCE_START)


@registered(
    "integers to be reversed, at demo size; trained until 90% of the answers are right",
    cost="about 15 seconds (measured)",
)
def sequence_reversal_demo(seed: int = 0, **overrides: Any) -> RunConfig:
    """Sequences to be reversed, small enough to watch; see `sequence_sorting_paper`."""
    base = {**_SEQUENCE_DEMO, "operation": "reversal", "name": "sequence_reversal_demo"}
    return configured(base, seed, overrides, start=_SEQUENCE_START)


@registered(
    "integers to be sorted, at the paper's size; trained until 90% of the answers are right",
    cost="about 2 minutes (measured)",
)
def sequence_sorting_paper(seed: int = 0, **overrides: Any) -> RunConfig:
    """Sequences to be sorted, at the paper's size (arXiv 2602.01442).

    Without positional embeddings, as in the paper's code; `positions="learned"` is its text.

    Args:
        seed: The run's seed.
        overrides: Fields of the config by flat name, e.g. `stop_at=None, n_layers=2`.

    Raises:
        ConfigError: If an override is no field, or breaks a field's rule.
    """
    base = {**_SEQUENCE_PAPER, "operation": "sorting", "name": "sequence_sorting_paper"}
    return configured(base, seed, overrides, start=_SEQUENCE_START)


@registered(
    "integers to be reversed, at the paper's size; trained until 90% of the answers are right",
    cost="about 2 minutes (measured)",
)
def sequence_reversal_paper(seed: int = 0, **overrides: Any) -> RunConfig:
    """Sequences to be reversed, at the paper's size; see `sequence_sorting_paper`."""
    base = {**_SEQUENCE_PAPER, "operation": "reversal", "name": "sequence_reversal_paper"}
    return configured(base, seed, overrides, start=_SEQUENCE_START)
