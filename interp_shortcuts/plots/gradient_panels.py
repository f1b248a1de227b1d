"""Panels of the conflict between the gradients of consistent and of anti training examples.

The levels that arithmetic alone gives are drawn beside what was measured: at any stationary point
of the mixed loss the ratio of the two norms is r / (1 - r) and their cosine -1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from interp_shortcuts.plots.markup import plain
from interp_shortcuts.plots.palette import INK, Style, split_style
from interp_shortcuts.plots.panel import Choice, Line, Panel, Reference
from interp_shortcuts.plots.panel_lines import (
    curve,
    finish,
    measured,
    reason_undefined,
    why_missing,
)

GRADIENTS = "GradientConflict"


def amplification_panel(data: xr.Dataset, choice: Choice) -> Panel:
    """How much larger the gradient of anti examples is, with the floor that arithmetic sets."""
    panel = Panel(
        "gradient_amplification",
        "Gradient amplification, anti over consistent",
        "the floor is arithmetic: only an excess over it is evidence",
        "gradient amplification",
        log=True,
        legend=None,
    )
    floor = "gradient_amplification_floor"
    references = []
    if floor in data and bool(np.isfinite(data[floor])):
        level = float(data[floor])
        steps = np.full(data.sizes["step"], level)
        references.append(Reference(f"floor r/(1−r) = {level:.3g}", steps))
    return _of_part(data, choice, "gradient_amplification", panel, references)


def cosine_panel(data: xr.Dataset, choice: Choice) -> Panel:
    """Whether the two groups ask for the same change of the weights."""
    panel = Panel(
        "gradient_cosine",
        "Gradient cosine, consistent against anti",
        "−1 is arithmetic too, wherever training stands still",
        "gradient cosine",
        span=(-1.12, 1.08),
        legend=None,
    )
    zero = np.zeros(data.sizes["step"])
    references = [Reference("", zero), Reference("where training stands still: −1", zero - 1)]
    return _of_part(data, choice, "gradient_cosine", panel, references)


def share_panel(data: xr.Dataset, choice: Choice) -> Panel:
    """Which group drives the step: its part of the total gradient."""
    name = "gradient_share"
    panel = Panel(
        "gradient_share",
        "Share of the step that each group drives",
        "the two sum to 1; below 0: the group opposes the step",
        "share of the step",
        legend="split",
    )
    reason = why_missing(data, name, GRADIENTS) or _part_missing(data, name, choice)
    if reason:
        return replace(panel, missing=reason)
    lines = []
    for group in measured(data[name], "group"):
        found = curve(data, name, {"part": choice.part, "group": group})
        lines.append(Line(plain(group), plain(group), split_style(group), **found))
    levels = [Reference("", np.full(data.sizes["step"], level)) for level in (0.0, 1.0)]
    return finish(panel, lines, reason_undefined(data, name), levels)


def _of_part(
    data: xr.Dataset, choice: Choice, name: str, panel: Panel, references: list[Reference]
) -> Panel:
    reason = why_missing(data, name, GRADIENTS) or _part_missing(data, name, choice)
    if reason:
        return replace(panel, missing=reason)
    part = "whole model" if choice.part == "model" else plain(choice.part)
    line = Line(part, part, Style(INK), **curve(data, name, {"part": choice.part}))
    return finish(panel, [line], reason_undefined(data, name), references)


def _part_missing(data: xr.Dataset, name: str, choice: Choice) -> str | None:
    if choice.part in measured(data[name], "part"):
        return None
    return f"the part {plain(choice.part)!r} was not measured"
