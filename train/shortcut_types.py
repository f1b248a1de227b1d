"""The four tasks at one setting: maximum or first element as shortcut, sum modulo 2 or 3 as rule.

The paper (arXiv 2607.10116) has the same four; the shortcut label for modulo 3 (maximum or first
element modulo 3) is ours. Each at chance and at ratio 0.9; sizes are those of
`imbalance_capacity.py`.

    interp-shortcuts sweep train/shortcut_types.py
"""

from __future__ import annotations

from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep

CHANCE = {"max_parity": 1 / 2, "first_parity": 1 / 2, "max_mod3": 1 / 3, "first_mod3": 1 / 3}

sweep = Sweep(
    name="shortcut-types",
    base=presets.max_parity_lab(),
    grid=[
        {"rule": rule, "ratio": ratio} for rule, chance in CHANCE.items() for ratio in (chance, 0.9)
    ],
    seeds="0-9",
)
