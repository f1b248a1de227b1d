"""The small picture of a seed."""

from __future__ import annotations

import numpy as np
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.plots.seeds import accuracy_figure
from interp_shortcuts.timelines.timeline import Timeline


def test_validation_and_adversarial_accuracy_with_events_on_a_given_axis():
    timeline = Timeline(synthetic_dataset(n_steps=30))
    figure = accuracy_figure(timeline, last_step=1000)
    assert [trace.name for trace in figure.data] == ["validation", "adversarial"]
    expected = timeline.data["accuracy"].sel(split="adversarial").values
    np.testing.assert_array_equal(figure.data[1].y, expected)
    assert figure.layout.xaxis.range[1] > 1000
    assert len(figure.layout.shapes) == 6  # two phases, four events


def test_without_accuracy_it_is_empty_and_does_not_fail():
    data = synthetic_dataset(n_steps=5).drop_vars(["accuracy", "accuracy_interval"])
    assert not accuracy_figure(Timeline(data)).data
