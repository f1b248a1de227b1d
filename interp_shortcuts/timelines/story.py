"""What a run without phases shows, in sentences: under label noise, or of a sequence task."""

from __future__ import annotations

import xarray as xr

from interp_shortcuts.timelines.attribution_gap import find_gap
from interp_shortcuts.timelines.gap_text import gap_sentences
from interp_shortcuts.timelines.hidden_progress import about_label_noise, find_hidden_progress
from interp_shortcuts.timelines.hidden_text import hidden_sentences


def story(data: xr.Dataset) -> list[str]:
    """The sentences of a timeline's dataset, the most important one first."""
    if about_label_noise(data):
        return hidden_sentences(find_hidden_progress(data))
    return gap_sentences(find_gap(data))
