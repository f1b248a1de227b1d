"""Does weight decay make generalisation transient? Weight decay x layers at ratio 0.9.

The paper (arXiv 2607.10116) says of its range, 0.1 to 0.4, that with more of it generalising basins
are found but often left again. The sizes are those of `imbalance_capacity.py`.

    interp-shortcuts sweep train/weight_decay.py
"""

from __future__ import annotations

from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep

sweep = Sweep(
    name="weight-decay",
    base=presets.max_parity_demo(n_integers=40, n_train=4096, n_steps=1500, ratio=0.9),
    grid={"n_layers": [1, 2], "weight_decay": [0.1, 0.2, 0.3, 0.4]},
    seeds="0-9",
)
