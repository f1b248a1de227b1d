from __future__ import annotations

from itertools import chain

import pytest
import torch

from interp_shortcuts.errors import StorageError
from interp_shortcuts.training.batches import BatchOrder


def epoch(order: BatchOrder, n: int) -> list[list[int]]:
    batches = [order.next() for _ in range(n)]
    return [batch.tolist() for batch in batches if batch is not None]


def test_an_epoch_shows_every_example_once_in_a_new_order():
    order = BatchOrder(10, batch_size=4, seed=0)
    first, second = epoch(order, 3), epoch(order, 3)
    for batches in (first, second):
        assert [len(batch) for batch in batches] == [4, 4, 2]
        assert sorted(chain.from_iterable(batches)) == list(range(10))
    assert first != second


def test_the_full_batch_draws_nothing():
    for size in (None, 10):
        order = BatchOrder(10, batch_size=size, seed=0)
        before = order.state()["generator"]
        assert order.next() is None
        assert torch.equal(order.state()["generator"], before)


def test_the_order_depends_on_the_seed_alone():
    torch.manual_seed(1)
    first = epoch(BatchOrder(10, batch_size=4, seed=0), 6)
    torch.manual_seed(2)
    assert epoch(BatchOrder(10, batch_size=4, seed=0), 6) == first
    assert epoch(BatchOrder(10, batch_size=4, seed=1), 6) != first


def test_it_goes_on_from_a_state_in_the_middle_of_an_epoch():
    order = BatchOrder(10, batch_size=4, seed=0)
    order.next()
    state = order.state()
    rest = epoch(order, 7)
    again = BatchOrder(10, batch_size=4, seed=99)
    again.restore(state)
    assert epoch(again, 7) == rest
    with pytest.raises(StorageError, match=r"random state of the batches \(`generator`\)"):
        again.restore({"order": state["order"]})
