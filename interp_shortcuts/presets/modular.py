"""Modular arithmetic under label noise (arXiv 2605.18022), at a size for a demo and the paper's."""

from __future__ import annotations

from typing import Any

from interp_shortcuts.models.two_layer_spec import TwoLayerArchitecture
from interp_shortcuts.presets.base import configured, registered
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.tasks.modular_config import ModularConfig

_START = RunConfig(task=ModularConfig(), model=TwoLayerArchitecture())

# All sizes are ours, found with seed 0: the noise is fitted within 300 steps, the raw test accuracy
# stays near zero, and the generalising network inside reaches 1.00 with the quadratic activation.
_DEMO: dict[str, Any] = {
    "modulus": 59,
    "noise": 0.4,
    "train_fraction": 0.8,
    "width": 512,
    "lr": 1e-3,
    "weight_decay": 0.5,
    "n_steps": 1_500,
    "dense_until": 100,
    "dense_points": 16,
    "every": 50,
    "resume_every": 100,
}

# The paper: P = 113, widths 2^k + 1 for k = 4 to 12, AdamW with learning rate 1e-3 and weight decay
# 0.1, full batch, 200,000 epochs. It does not say which fraction is trained: 0.8 as in its authors'
# later work. Ours: 40% noise at k = 9, and when it is evaluated.
_PAPER: dict[str, Any] = {
    **_DEMO,
    "modulus": 113,
    "width": 513,
    "weight_decay": 0.1,
    "n_steps": 200_000,
    "dense_until": 2_000,
    "dense_points": 40,
    "every": 2_000,
    "resume_every": 1_000,
}


@registered(
    "40% wrong labels: all are memorised, and addition mod 59 is inside, hidden from testing",
    cost="about 25 seconds (measured)",
)
def modular_noise_demo(seed: int = 0, **overrides: Any) -> RunConfig:
    """Addition modulo 59 with 40% wrong training labels, small enough to watch.

    Args:
        seed: The run's seed.
        overrides: Fields of the config by flat name, e.g. `noise=0.2, width=257`.

    Raises:
        ConfigError: If an override is no field, or breaks a field's rule.
    """
    return configured({**_DEMO, "name": "modular_noise_demo"}, seed, overrides, start=_START)


@registered(
    "40% wrong labels, addition mod 113, at the paper's size",
    cost="about 4 hours (estimated from 10 steps)",
)
def modular_noise_paper(seed: int = 0, **overrides: Any) -> RunConfig:
    """Addition modulo 113 with 40% wrong training labels, at the paper's size (arXiv 2605.18022).

    The paper's widths are 2^k + 1 for k = 4 to 12; `width` is 513. Its fraction of trained pairs is
    not known and 0.8 here.
    """
    return configured({**_PAPER, "name": "modular_noise_paper"}, seed, overrides, start=_START)
