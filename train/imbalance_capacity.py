"""Does imbalance open the way to the rule, and for which depth? Spurious ratio x layers, 10 seeds.

The paper (arXiv 2607.10116) reports the fraction of seeds that generalise: 2 layers 0% at ratio 0.5
and 77% at 0.9; 1 layer 33% at 0.5 and 0% at 0.9. The sizes are ours.

    interp-shortcuts sweep train/imbalance_capacity.py
"""

from __future__ import annotations

from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep

sweep = Sweep(
    name="imbalance-capacity",
    base=presets.max_parity_demo(n_integers=40, n_train=4096, n_steps=1500),
    grid={"n_layers": [1, 2], "ratio": [0.5, 0.9]},
    seeds="0-9",
)
