"""How much label noise does the hidden rule stand? Modular addition with 0 to 80% wrong labels.

The paper (arXiv 2605.18022) has a generalising network inside up to 80% of noise, and much more
training; sizes here are those of the preset `modular-noise-demo`.

    interp-shortcuts sweep train/modular_noise.py
    python analyses/frequency_filtering.py runs/modular-noise
"""

from __future__ import annotations

from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep

sweep = Sweep(
    name="modular-noise",
    base=presets.modular_noise_demo(),
    grid={"noise": [0.0, 0.2, 0.4, 0.6, 0.8]},
    seeds="0-9",
)
