"""Does imbalance open the way to the rule, and for which depth? Spurious ratio x layers, 10 seeds.

The paper (arXiv 2607.10116) reports the fraction of seeds that generalise: 2 layers 0% at ratio 0.5
and 77% at 0.9; 1 layer 33% at 0.5 and 0% at 0.9. Two sizes of ours: with 80 integers balanced data
are memorised; with 40 integers the question is open for both ratios. The same at the paper's size
is `imbalance_capacity_paper.py`.

    interp-shortcuts sweep train/imbalance_capacity.py
"""

from __future__ import annotations

from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep

CORNERS = {"n_layers": [1, 2], "ratio": [0.5, 0.9]}

sweeps = [
    Sweep(name="imbalance-capacity-80", base=presets.max_parity_lab(), grid=CORNERS, seeds="0-9"),
    Sweep(
        name="imbalance-capacity-40",
        base=presets.max_parity_lab(n_integers=40),
        grid=CORNERS,
        seeds="0-9",
    ),
]
