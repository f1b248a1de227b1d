"""The step axis: where steps lie, and the labels of the logarithmic one."""

from __future__ import annotations

import pytest

from interp_shortcuts.plots.step_axis import StepAxis


def test_step_zero_lies_at_half_of_the_first_positive_step_on_log():
    axis = StepAxis((0, 1, 10, 600))
    assert axis.positions([0, None, 10], "log") == [0.5, None, 10]
    assert axis.positions([0, None, 10], "linear") == [0, None, 10]


@pytest.mark.parametrize("steps", [(0,), (7,), (0, 1), (0, 5, 10_000), (100, 200)])
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_all_steps_lie_inside_the_range(steps: tuple[int, ...], scale: str):
    import math

    axis = StepAxis(steps)
    low, high = axis.layout(scale)["range"]
    for place in axis.positions(steps, scale):
        place = math.log10(place) if scale == "log" else place
        assert low <= place <= high


def test_log_ticks_are_few_and_start_with_zero():
    for last in (10, 600, 15_000, 10**6):
        layout = StepAxis((0, 1, last)).layout("log")
        assert layout["ticktext"][0] == "0"
        assert 3 <= len(layout["tickvals"]) <= 9
