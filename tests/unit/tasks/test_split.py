"""A split's views of itself, and its identity."""

from __future__ import annotations

import pytest
import torch

from interp_shortcuts.tasks.split import Split


def make(name="train", labels=(0, 1, 1), shortcut=(0, 0, 1), first=3):
    return Split(
        name=name,
        tokens=torch.tensor([[first, 1, 9], [4, 2, 9], [5, 3, 9]]),
        labels=torch.tensor(labels),
        shortcut_labels=torch.tensor(shortcut),
    )


def test_views():
    split = make()
    assert split.n == len(split) == 3
    assert split.integers.tolist() == [[3, 1], [4, 2], [5, 3]]
    assert split.consistent.tolist() == [True, False, True]
    assert repr(split) == f"Split('train': 3 examples, 2 consistent, {split.sha})"


def test_take_keeps_the_order_asked_for():
    part = make().take(torch.tensor([2, 0]), name="part")
    assert part.name == "part"
    assert part.tokens.tolist() == [[5, 3, 9], [3, 1, 9]]
    assert part.labels.tolist() == [1, 0]
    assert part.shortcut_labels.tolist() == [1, 0]
    assert make().take(torch.tensor([1])).name == "train"


def test_take_nothing():
    empty = make().take(torch.tensor([], dtype=torch.int64))
    assert empty.n == 0
    assert empty.tokens.shape == (0, 3)
    assert empty.consistent.shape == (0,)
    assert len(empty.sha) == 16


def test_identity_is_name_and_content():
    assert make() == make()
    assert hash(make()) == hash(make())
    assert make(name="other") != make()
    assert make(name="other").sha == make().sha
    assert make() != "train"


@pytest.mark.parametrize(
    "change", [{"labels": (0, 1, 0)}, {"shortcut": (1, 0, 1)}, {"first": 8}], ids=str
)
def test_sha_sees_every_tensor(change):
    assert make(**change).sha != make().sha


def test_sha_sees_the_order():
    assert make().take(torch.tensor([1, 0, 2])).sha != make().sha
