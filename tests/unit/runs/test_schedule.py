from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from interp_shortcuts.runs.schedule import ScheduleConfig, evaluation_steps, kept_steps

schedules = st.builds(
    ScheduleConfig,
    n_steps=st.integers(1, 3000),
    dense_until=st.integers(0, 500),
    dense_points=st.integers(0, 60),
    every=st.integers(1, 400),
    checkpoint_stride=st.integers(1, 7),
)


@given(schedules)
def test_steps_increase_strictly_from_0_to_the_last(schedule: ScheduleConfig):
    for steps in (evaluation_steps(schedule), kept_steps(schedule)):
        assert steps[0] == 0
        assert steps[-1] == schedule.n_steps
        assert all(a < b for a, b in pairwise(steps))
    assert set(kept_steps(schedule)) <= set(evaluation_steps(schedule))


@given(schedules)
def test_no_gap_is_larger_than_the_spacing_after_the_dense_part(schedule: ScheduleConfig):
    steps = evaluation_steps(schedule)
    start = schedule.dense_until if schedule.dense_points else 0
    late = [step for step in steps if step >= start]
    assert all(b - a <= schedule.every for a, b in pairwise(late))


def test_the_default_is_dense_early_and_has_at_least_60_steps():
    steps = kept_steps(ScheduleConfig())
    assert 60 <= len(steps) <= 75
    assert steps[:8] == (0, 1, 2, 3, 4, 5, 6, 7)
    assert steps[-3:] == (580, 590, 600)


def test_a_known_schedule():
    schedule = ScheduleConfig(n_steps=400, dense_until=100, dense_points=3, every=100)
    assert evaluation_steps(schedule) == (0, 1, 10, 100, 200, 300, 400)
    thinned = schedule.model_copy(update={"checkpoint_stride": 4})
    assert kept_steps(thinned) == (0, 200, 400)
