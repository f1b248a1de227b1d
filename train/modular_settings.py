"""Does the hidden rule depend on regularisation, activation, optimiser or operation?

Each is changed alone, from the preset `modular-noise-demo`; the paper (arXiv 2605.18022) reports
AdamW with weight decay 0.1, other activations and other optimisers at far longer training.

    interp-shortcuts sweep train/modular_settings.py
    python analyses/frequency_filtering.py runs/modular-weight-decay
"""

from __future__ import annotations

from interp_shortcuts import presets
from interp_shortcuts.sweeps import Sweep

CHANGES = {
    "weight-decay": {"weight_decay": [0.0, 0.1, 0.5, 1.0]},
    "activation": {"activation": ["relu", "quadratic", "gelu", "leaky_relu"]},
    "arithmetic": {"arithmetic": ["add", "subtract", "multiply"]},
    # each at a learning rate and a weight decay of its own, since they mean different things:
    # Adam's and SGD's decay is an L2 gradient, Muon's steps have a size that is set by lr alone
    "optimizer": [
        {"optimizer": "adamw"},
        {"optimizer": "adam", "weight_decay": 1e-4},
        {"optimizer": "sgd", "lr": 1.0, "momentum": 0.9, "weight_decay": 1e-4},
        {"optimizer": "muon", "lr": 1e-2},
    ],
}

sweeps = [
    Sweep(name=f"modular-{name}", base=presets.modular_noise_demo(), grid=grid, seeds="0-2")
    for name, grid in CHANGES.items()
]
