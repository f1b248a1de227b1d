"""Does a ratio at chance suppress generalisation, and bias either way promote it? Sum mod 2 and 3.

The paper (arXiv 2607.10116) says so of both tasks: chance is 1/2 for the sum modulo 2, 1/3 modulo
3. Ratios lie below, at and above it. The sizes are those of `imbalance_capacity.py`.

    interp-shortcuts sweep train/unifying_principle.py
"""

from __future__ import annotations

from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep

RATIOS = {"max_parity": [0.1, 0.3, 0.5, 0.7, 0.9], "max_mod3": [0.1, 1 / 3, 0.9]}

sweeps = [
    Sweep(
        name=f"unifying-principle-{rule.replace('_', '-')}",
        base=presets.max_parity_lab(rule=rule),
        grid={"ratio": ratios},
        seeds="0-9",
    )
    for rule, ratios in RATIOS.items()
]
