"""Digits under label noise (arXiv 2605.18022), the image task, at the size that comes along."""

from __future__ import annotations

from typing import Any

from interp_shortcuts.models.picture_spec import PictureArchitecture
from interp_shortcuts.presets.base import configured, registered
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.tasks.digits_config import DigitsConfig

_START = RunConfig(task=DigitsConfig(), model=PictureArchitecture())

# The paper: a network of three layers, 5% noise, full batch. Ours: the 8 x 8 pictures, widths, the
# optimiser's settings, and evaluations at each of the first 11 steps, which are the first epochs;
# with seed 0 the noise is fitted within 800 steps.
_DEMO: dict[str, Any] = {
    "noise": 0.05,
    "hidden_widths": (128, 128),
    "lr": 1e-3,
    "weight_decay": 0.1,
    "n_steps": 1_000,
    "dense_until": 1_000,
    "dense_points": 80,
    "every": 50,
    "resume_every": 250,
}


@registered(
    "5% wrong labels on handwritten digits: are they fitted first? (extra `[digits]`)",
    cost="about 10 seconds (measured)",
)
def digits_noise_demo(seed: int = 0, **overrides: Any) -> RunConfig:
    """The 8 x 8 digits with 5% wrong training labels, full batch, small enough to watch.

    Args:
        seed: The run's seed.
        overrides: Fields of the config by flat name, e.g. `noise=0.2, hidden_widths=(64, 64)`.

    Raises:
        ConfigError: If an override is no field, or breaks a field's rule.
    """
    return configured({**_DEMO, "name": "digits_noise_demo"}, seed, overrides, start=_START)
