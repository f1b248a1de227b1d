"""Does phase 2 start earlier with more heads? Heads at ratio 0.9, 2 layers.

The paper (arXiv 2607.10116) says so of its onset. The sizes are those of `imbalance_capacity.py`.

    interp-shortcuts sweep train/heads.py
"""

from __future__ import annotations

from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep

sweep = Sweep(
    name="heads",
    base=presets.max_parity_lab(),
    grid={"n_heads": [1, 2, 4]},
    seeds="0-9",
)
