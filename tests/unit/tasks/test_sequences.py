"""Sequence tasks: tokens and targets by hand, distinct splits, batches that leave them out."""

from __future__ import annotations

import math
import pickle
from collections import Counter

import pytest
import torch
from sequence_tasks import small_task

from interp_shortcuts.errors import ConfigError, TaskError
from interp_shortcuts.streams import torch_stream
from interp_shortcuts.tasks.base import AnswerTask, Task, is_answered
from interp_shortcuts.tasks.described import task_of
from interp_shortcuts.tasks.sequence_config import SequenceConfig
from interp_shortcuts.tasks.sequences import SequenceReversal, SequenceSorting, SequenceTask
from interp_shortcuts.tasks.target_split import IGNORED
from interp_shortcuts.tasks.task import ShortcutTask

_ = IGNORED


def test_the_vocabulary_is_that_of_the_paper():
    task = SequenceSorting()
    marks = (task.pad_token, task.start_token, task.separator_token, task.end_token)
    assert marks == (100, 101, 102, 103)
    assert (task.n_tokens, task.n_classes, task.context) == (104, 104, 24)
    assert task.chance == 1 / 104
    assert (task.train_lengths, task.heldout_lengths) == ((3, 4, 5, 6, 7), (8, 9, 10, 11))


@pytest.mark.parametrize(
    ("task", "answer"), [(SequenceSorting(), [2, 5, 5]), (SequenceReversal(), [5, 2, 5])]
)
def test_tokens_and_targets_of_one_sequence(task: SequenceTask, answer: list[int]):
    split = task.examples(torch.tensor([[5, 2, 5]]), name="one")
    assert split.tokens.tolist() == [[101, 5, 2, 5, 102, *answer]]
    assert split.targets.tolist() == [[_, _, _, _, *answer, 103]]
    assert split.first_scored == 4
    assert task.prompts(split).tolist() == [[101, 5, 2, 5, 102]]
    # what is due at a position is the next token of the whole sequence
    whole = torch.cat([split.tokens, torch.tensor([[103]])], dim=1)
    assert torch.equal(split.targets[split.scored], whole[:, 1:][split.scored])


def test_splits_are_by_length_and_distinct():
    task = small_task()
    assert list(task.splits) == ["length_2", "length_3", "length_4", "length_5"]
    for length in (2, 3, 4, 5):
        split = task.split(f"length_{length}")
        assert split.tokens.shape == (12, 2 * length + 2)
        assert len(torch.unique(split.tokens, dim=0)) == 12
        integers = split.tokens[:, 1 : length + 1]
        assert int(integers.min()) >= 1
        assert int(integers.max()) <= 6
        assert torch.equal(split.tokens[:, length + 2 :], integers.sort(1).values)


def test_large_spaces_are_distinct_and_uniform():
    """Past the limit of enumeration; each of 99 integers is due about 101 times of 10,000."""
    task = SequenceSorting(n_per_length=2000, train_min=5, train_max=5, heldout_max=5)
    split = task.split("length_5")
    assert len(torch.unique(split.tokens, dim=0)) == 2000
    counts = Counter(split.tokens[:, 1:6].flatten().tolist())
    assert set(counts) == set(range(1, 100))
    expected = 10_000 / 99
    assert max(abs(n - expected) for n in counts.values()) < 5 * math.sqrt(expected)


def test_where_fewer_sequences_exist_than_are_asked_for_they_repeat():
    task = SequenceSorting(n_integers=2, train_min=1, train_max=2, heldout_max=3, n_per_length=5)
    record = task.record["splits"]
    assert record["length_1"]["n"] == record["length_2"]["n"] == 5
    assert record["length_1"]["n_distinct"] <= record["length_1"]["n_exist"] == 2
    assert record["length_3"]["n_distinct"] == 5
    assert [record[f"length_{n}"]["left_out_of_batches"] for n in (1, 2, 3)] == [False] * 3


def test_the_record_counts():
    record = SequenceSorting().record
    assert record["name"] == "sequence_sorting"
    assert record["splits"]["length_3"] == {
        "n": 100,
        "n_distinct": 100,
        "n_exist": 99**3,
        "left_out_of_batches": True,
        "sha": SequenceSorting().split("length_3").sha,
    }
    assert record["splits"]["length_11"]["n_exist"] is None
    assert "stop_at" not in record["config"]


def test_a_seed_is_another_draw_and_nothing_else_changes_a_split():
    task = small_task()
    assert small_task(seed=1).split("length_2") != task.split("length_2")
    assert small_task(heldout_max=4).split("length_4") == task.split("length_4")
    assert small_task(train_min=1).split("length_3") == task.split("length_3")
    more = small_task(n_per_length=20).split("length_4")
    assert torch.equal(more.tokens[:12], task.split("length_4").tokens)


def test_tasks_are_equal_by_what_determines_their_splits():
    task = SequenceSorting(n_per_length=7, seed=3)
    config = SequenceConfig(operation="sorting", n_per_length=7, stop_at=None)
    assert SequenceTask.from_config(config, seed=3) == task
    assert hash(SequenceTask.from_config(config, seed=3)) == hash(task)
    assert SequenceTask.from_config(config.model_copy(update={"data_seed": 3}), seed=9) == task
    assert SequenceReversal(n_per_length=7, seed=3) != task
    assert pickle.loads(pickle.dumps(task)).split("length_3") == task.split("length_3")


def test_what_kind_of_task_it_is():
    task = small_task()
    assert isinstance(task, Task)
    assert not isinstance(task, AnswerTask)
    assert not is_answered(task)
    assert isinstance(task_of(task.config, seed=0), SequenceTask)
    assert task_of(task.config, seed=5) == task  # its config holds its seed
    with pytest.raises(ConfigError, match="that of a shortcut task; got sequence sorting"):
        ShortcutTask.from_config(task.config, seed=0)


# Batches


def test_batches_are_of_one_training_length_drawn_uniformly():
    task, generator = small_task(train_min=2, train_max=4), torch_stream(0, "test")
    batches = [task.batch(3, generator) for _ in range(300)]
    counts = Counter((batch.tokens.shape[1] - 2) // 2 for batch in batches)
    assert set(counts) == {2, 3, 4}
    assert min(counts.values()) > 60  # 100 expected, sd 8
    assert all(batch.n == 3 and batch.name == "batch" for batch in batches)


def test_the_same_generator_gives_the_same_batches():
    task = small_task()
    first = [task.batch(4, torch_stream(0, "test")) for _ in range(2)]
    assert first[0] == first[1]
    assert task.batch(4, torch_stream(1, "test"), length=3) != task.batch(
        4, torch_stream(2, "test"), length=3
    )


@pytest.mark.parametrize("length", [3, 5])
def test_batches_leave_out_the_sequences_of_the_splits(length: int):
    """The split holds half of all sequences of length 3, so that chance alone would not do."""
    task = small_task(n_per_length=108)
    assert task.leaves_out(length)
    batch = task.batch(500, torch_stream(0, "test"), length=length)
    known = set(map(tuple, task.split(f"length_{length}").tokens.tolist()))
    drawn = set(map(tuple, batch.tokens.tolist()))
    assert not known & drawn
    if length == 3:  # of the 108 others nearly all are drawn
        assert len(drawn) > 100


def test_batches_of_small_spaces_leave_nothing_out():
    task = small_task(n_per_length=30)
    assert not task.leaves_out(2)
    drawn = task.batch(500, torch_stream(0, "test"), length=2)
    assert len(torch.unique(drawn.tokens, dim=0)) == 36


def test_integers_of_a_batch_are_uniform():
    batch = small_task().batch(3000, torch_stream(0, "test"), length=5)
    counts = Counter(batch.tokens[:, 1:6].flatten().tolist())
    assert set(counts) == set(range(1, 7))
    assert max(abs(n - 2500) for n in counts.values()) < 5 * math.sqrt(2500)


def test_padding_scores_nothing():
    task = small_task()
    short, long = task.split("length_2"), task.split("length_3")
    both = task.padded([short, long])
    assert both.tokens.shape == (24, 8)
    assert both.tokens[:12, 6:].unique().tolist() == [task.pad_token]
    assert both.targets[:12, 6:].unique().tolist() == [IGNORED]
    assert torch.equal(both.tokens[:12, :6], short.tokens)
    assert torch.equal(both.targets[12:], long.targets)
    assert int(both.scored.sum()) == 12 * 3 + 12 * 4
    with pytest.raises(TaskError, match="sequences of one length to be decoded; 'padded'"):
        task.prompts(both)


# Misuse


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"train_min": 4}, r"`train_min` \(=4\) must be at most `train_max` \(=3\)\."),
        ({"heldout_max": 2}, r"`heldout_max` \(=2\) must be at least `train_max` \(=3\)\."),
        ({"n_integers": 1}, r"`n_integers` should be greater than or equal to 2; got 1\."),
        ({"train_min": 0}, r"`train_min` should be greater than or equal to 1; got 0\."),
        ({"n_per_length": 0}, r"`n_per_length` should be greater than or equal to 1; got 0\."),
        ({"heldout_max": 2000}, r"`heldout_max` should be less than or equal to 1024; got 2000\."),
    ],
)
def test_impossible_sizes(sizes: dict[str, int], message: str):
    with pytest.raises(TaskError, match=message):
        small_task(**sizes)


def test_misuse_is_named(unchecked: None):
    task, generator = small_task(), torch_stream(0, "test")
    with pytest.raises(TaskError, match=r"`operation` should be 'reversal' or 'sorting'; got 'x'"):
        SequenceTask(operation="x")  # type: ignore[arg-type]
    with pytest.raises(TaskError, match=r"must be one of 'length_2', .*; got 'train'"):
        task.split("train")
    with pytest.raises(TaskError, match=r"`size` must be at least 1; got 0"):
        task.batch(0, generator)
    with pytest.raises(TaskError, match=r"from 1 to `heldout_max` \(=5\); got 6"):
        task.batch(1, generator, length=6)
    with pytest.raises(TaskError, match=r"from 1 to `n_integers` \(=6\); got 2 to 7"):
        task.examples(torch.tensor([[2, 7]]), name="one")
    with pytest.raises(TaskError, match="at least one split; got none"):
        task.padded([])
