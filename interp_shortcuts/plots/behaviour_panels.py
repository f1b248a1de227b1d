"""Panels of behaviour: accuracy and loss of the splits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from interp_shortcuts.plots.panel import Choice, Panel, Reference
from interp_shortcuts.plots.panel_lines import by_split, measured, why_missing

LOSS_SPLITS = ("consistent", "anti", "validation", "adversarial")


def accuracy_panel(data: xr.Dataset, _: Choice) -> Panel:
    """Accuracy by split, with the level of guessing."""
    panel = Panel(
        "accuracy",
        "Accuracy by split",
        "adversarial: the shortcut is always wrong",
        "accuracy",
        span=(-0.04, 1.04),
        legend="split",
    )
    if reason := why_missing(data, "accuracy"):
        return replace(panel, missing=reason)
    drawn = by_split(data, "accuracy", measured(data["accuracy"], "split"), panel)
    if drawn.missing or "chance" not in data.attrs:
        return drawn
    chance = np.full(data.sizes["step"], float(data.attrs["chance"]))
    return replace(drawn, references=(Reference("guessing", chance),))


def loss_panel(data: xr.Dataset, _: Choice) -> Panel:
    """Mean loss of the two groups of training examples and of the held-out splits."""
    panel = Panel(
        "loss",
        "Loss by group (nats, log scale)",
        "saturation: the consistent group has little left",
        "loss (nats)",
        log=True,
        legend="split",
    )
    if reason := why_missing(data, "loss"):
        return replace(panel, missing=reason)
    return by_split(data, "loss", LOSS_SPLITS, panel)
