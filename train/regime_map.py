"""Where do models learn the rule at once, memorise, stay at the shortcut, or hand over? One seed.

A map over length, integers and examples to choose sizes by, not a result: one run for each cell.

    interp-shortcuts sweep train/regime_map.py
"""

from __future__ import annotations

from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep

SIZES = [(3, n_integers, n_train) for n_integers in (20, 40, 60, 80) for n_train in (1024, 2048)]

sweep = Sweep(
    name="regime-map",
    base=presets.max_parity_lab(dense_points=4, every=50, early_stop=4),
    grid=[
        {
            "length": length,
            "n_integers": n_integers,
            "n_train": n_train,
            "n_layers": n_layers,
            "ratio": ratio,
        }
        for length, n_integers, n_train in SIZES
        for n_layers in (1, 2)
        for ratio in (0.5, 0.9)
    ],
    seeds="0",
)
