"""Which tasks have sequences as answers, told without drawing an example."""

from __future__ import annotations

import pytest

from interp_shortcuts.tasks.sequences import SequenceSorting
from interp_shortcuts.tasks.target_task import TargetTask, is_target_task, split_name
from interp_shortcuts.tasks.task import ShortcutTask


@pytest.mark.usefixtures("unchecked")  # the run-time check of types looks at all members
def test_the_kinds_are_told_apart_without_drawing():
    sequences = SequenceSorting(n_integers=6, n_per_length=5)
    assert is_target_task(sequences)
    assert "splits" not in vars(sequences)
    shortcut = ShortcutTask.named("max_parity", n_train=20, n_validation=9, n_adversarial=9)
    assert not is_target_task(shortcut)


def test_it_is_the_protocol():
    assert isinstance(SequenceSorting(n_integers=6, n_per_length=5), TargetTask)


def test_the_splits_of_a_task_have_these_names():
    task = SequenceSorting(n_integers=6, n_per_length=5)
    lengths = (*task.train_lengths, *task.heldout_lengths)
    assert [split_name(length) for length in lengths] == list(task.splits)
