"""The model at one checkpoint at a time, with a slider: where heads look and what they write.

Ranges are the same at every checkpoint, so that the eye can compare.
"""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.plots.attention_maps import attention_height, draw_attention
from interp_shortcuts.plots.frame_canvas import FrameCanvas
from interp_shortcuts.plots.integer_curves import draw_ov, draw_qk, ov_height, qk_height
from interp_shortcuts.plots.page_style import NOTE_ROW, wrap
from interp_shortcuts.timelines.timeline import Timeline


def checkpoint_figure(timeline: Timeline, *, step: int | None = None) -> go.Figure:
    """A second view of a timeline: one checkpoint at a time, chosen with a slider.

    Attention from "=" on the recorded examples, the QK score of every integer, and what each head
    writes to the logits on attending to it.

    Args:
        timeline: What was measured.
        step: The checkpoint at first sight: the recorded step nearest to it; None for the last.

    Returns:
        A figure as wide as its container, with one frame per step. Parts that cannot be drawn are
        named below the others, each with the reason.

    Raises:
        ConfigError: If the timeline has no step.
    """
    data = timeline.data
    if "step" not in data.dims or data.sizes["step"] == 0:
        raise ConfigError("A checkpoint figure needs at least one step; this timeline has none.")
    steps = [int(value) for value in data["step"].values]
    active = len(steps) - 1 if step is None else int(np.argmin([abs(s - step) for s in steps]))
    reasons = {
        "Attention on single examples": _why_missing(data, "attention_example", "example_tokens"),
        "QK score of each integer": _why_missing(data, "qk_score"),
        "OV logits": _why_missing(data, "ov_logit"),
    }
    attention, qk, ov = (reason is None for reason in reasons.values())
    heights = [
        attention_height(data) if attention else 0.0,
        qk_height(data, with_legend=True) if qk else 0.0,
        ov_height(data, with_legend=not qk) if ov else 0.0,
    ]
    texts = [f"Left out: {part}: {reason}." for part, reason in reasons.items() if reason]
    notes = [line for text in texts for line in wrap(text)]
    end = sum(heights)
    canvas = FrameCanvas(steps, active=active, height=max(end + NOTE_ROW * len(notes), 60.0))
    if attention:
        draw_attention(canvas, data, 0.0)
    if qk:
        draw_qk(canvas, data, heights[0], with_legend=True)
    if ov:
        draw_ov(canvas, data, heights[0] + heights[1], with_legend=not qk)
    for row, note in enumerate(notes):
        canvas.note(note, end + NOTE_ROW * row)
    return canvas.figure()


def _why_missing(data: xr.Dataset, *names: str) -> str | None:
    for name in names:
        if name not in data:
            return f"the variable `{name}` is not in this timeline"
        if data[name].size == 0 or bool(data[name].isnull().all()):
            return f"`{name}` is undefined at every step"
    return None
