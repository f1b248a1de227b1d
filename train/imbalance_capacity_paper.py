"""The imbalance x capacity cells at the paper's size (arXiv 2607.10116), for a cluster or patience.

16,384 examples, 15,000 steps, 100 seeds a cell. What it would cost here, per device:

    interp-shortcuts sweep train/imbalance_capacity_paper.py --dry-run

and on a Ray cluster:

    interp-shortcuts sweep train/imbalance_capacity_paper.py --engine ray --ray-address auto
"""

from __future__ import annotations

from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep

sweep = Sweep(
    name="imbalance-capacity-paper",
    base=presets.max_parity_paper(),
    grid={"n_layers": [1, 2], "ratio": [0.5, 0.9]},
    seeds="0-99",
)
