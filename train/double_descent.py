"""Test accuracy over the width of the network, for several fractions of wrong labels.

The paper (arXiv 2605.18022) has widths 2^k + 1, k = 4 to 12, at modulus 113. Here k is 4 to 9;
modulus and steps are those of the preset `modular-noise-demo`.

    interp-shortcuts sweep train/double_descent.py
    python analyses/double_descent.py runs/double-descent
"""

from __future__ import annotations

from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep

sweep = Sweep(
    name="double-descent",
    base=presets.modular_noise_demo(),
    grid={"noise": [0.0, 0.2, 0.4], "width": [2**k + 1 for k in range(4, 10)]},
    seeds="0-2",
)
