"""Are noisy labels fitted first? Digits with 5, 20 and 40% wrong labels, full batch, 10 seeds.

The paper (arXiv 2605.18022) says so of a full batch: at 5% noise the accuracy on noisy labels is
10.9% after the first epoch, that on clean ones 2.9%; after the second 6.5% and 46.3%. An epoch is
one step here. The second sweep asks whether the learning rate or the scale of the initial weights
decides it, over the first 12 steps.

    interp-shortcuts sweep train/digits_noise.py
    python analyses/noise_first.py runs/digits-noise
"""

from __future__ import annotations

from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep

sweeps = [
    Sweep(
        name="digits-noise",
        base=presets.digits_noise_demo(),
        grid={"noise": [0.05, 0.2, 0.4]},
        seeds="0-9",
    ),
    Sweep(
        name="digits-noise-start",
        base=presets.digits_noise_demo(n_steps=12, dense_until=0, every=1),
        grid={"lr": [1e-4, 1e-3, 1e-2], "init_scale": [0.3, 1.0, 3.0]},
        seeds="0-9",
    ),
]
