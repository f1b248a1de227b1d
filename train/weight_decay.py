"""Does weight decay make generalisation transient? Weight decay at ratio 0.9, 2 layers.

The paper (arXiv 2607.10116) says of its range, 0.1 to 0.4, that with more of it generalising basins
are found but often left again. The sizes are those of `imbalance_capacity.py`, without the early
stop, so that what is found can be lost again.

    interp-shortcuts sweep train/weight_decay.py
"""

from __future__ import annotations

from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep

sweep = Sweep(
    name="weight-decay",
    base=presets.max_parity_lab(early_stop=None),
    grid={"weight_decay": [0.1, 0.2, 0.3, 0.4]},
    seeds="0-9",
)
