"""Any rule, any sizes: splits obey their definitions, checked against plain Python."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from interp_shortcuts.errors import TaskError
from interp_shortcuts.tasks.task import ShortcutTask

REFERENCE = {
    "max_parity": (2, max),
    "max_mod3": (3, max),
    "first_parity": (2, lambda sequence: sequence[0]),
    "first_mod3": (3, lambda sequence: sequence[0]),
}


def reference_sizes(name, length, n_integers):
    """Number of consistent and of anti sequences, one by one."""
    modulus, pick = REFERENCE[name]
    agree = [
        sum(s) % modulus == pick(s) % modulus for s in product(range(n_integers), repeat=length)
    ]
    return sum(agree), len(agree) - sum(agree)


@settings(max_examples=80, deadline=None)
@given(
    name=st.sampled_from(sorted(REFERENCE)),
    length=st.integers(1, 4),
    n_integers=st.integers(2, 6),
    ratio=st.floats(0, 1),
    n_train=st.integers(1, 200),
    n_validation=st.integers(0, 100),
    n_adversarial=st.integers(0, 100),
    seed=st.integers(0, 2**40),
)
def test_small_spaces(name, length, n_integers, ratio, n_train, n_validation, n_adversarial, seed):
    modulus, pick = REFERENCE[name]
    task = ShortcutTask.named(
        name,
        length=length,
        n_integers=n_integers,
        ratio=ratio,
        n_train=n_train,
        n_validation=n_validation,
        n_adversarial=n_adversarial,
        seed=seed,
    )
    n_consistent = round(ratio * n_train)
    n_anti = n_train - n_consistent
    consistent, anti = reference_sizes(name, length, n_integers)
    fits = max(n_consistent, n_validation) <= consistent and max(n_anti, n_adversarial) <= anti
    if not fits:
        with pytest.raises(TaskError, match=r"needs \d+ distinct .*(only \d+ exist|none exists)"):
            _ = task.splits
        return

    sizes = {
        "train": n_train,
        "consistent": n_consistent,
        "anti": n_anti,
        "validation": n_validation,
        "adversarial": n_adversarial,
    }
    chosen = {}
    for split_name, split in task.splits.items():
        rows = [tuple(row) for row in split.integers.tolist()]
        chosen[split_name] = set(rows)
        assert len(chosen[split_name]) == len(rows) == split.n == sizes[split_name]
        assert all(0 <= v < n_integers for row in rows for v in row)
        assert split.tokens[:, -1].tolist() == [n_integers] * split.n
        assert split.labels.tolist() == [sum(row) % modulus for row in rows]
        assert split.shortcut_labels.tolist() == [pick(row) % modulus for row in rows]
    assert chosen["consistent"] | chosen["anti"] == chosen["train"]
    assert task.split("consistent").consistent.all()
    assert not task.split("anti").consistent.any()
    assert task.split("validation").consistent.all()
    assert not task.split("adversarial").consistent.any()

    shared = {n: len(chosen["train"] & chosen[n]) for n in ("validation", "adversarial")}
    assert shared == {
        "validation": max(0, n_consistent + n_validation - consistent),
        "adversarial": max(0, n_anti + n_adversarial - anti),
    }
    record = task.record
    assert record["n_shared_with_train"] == shared
    assert record["disjoint"] == (not any(shared.values())) == (record["overlap_reason"] == "")
    assert record["achieved_ratio"] == n_consistent / n_train
    assert record["n_exist"] == {"consistent": consistent, "anti": anti}


@settings(max_examples=30, deadline=None)
@given(
    name=st.sampled_from(sorted(REFERENCE)),
    length=st.integers(2, 30),
    n_integers=st.integers(2, 1000),
    ratio=st.floats(0, 1),
    seed=st.integers(0, 2**40),
)
def test_large_spaces(name, length, n_integers, ratio, seed):
    assume(n_integers**length > 2**20)
    modulus, pick = REFERENCE[name]
    task = ShortcutTask.named(
        name,
        length=length,
        n_integers=n_integers,
        ratio=ratio,
        n_train=100,
        n_validation=30,
        n_adversarial=30,
        seed=seed,
    )
    chosen = []
    for split_name in ("train", "validation", "adversarial"):
        split = task.split(split_name)
        rows = [tuple(row) for row in split.integers.tolist()]
        assert split.labels.tolist() == [sum(row) % modulus for row in rows]
        assert split.shortcut_labels.tolist() == [pick(row) % modulus for row in rows]
        chosen += rows
    assert len(set(chosen)) == len(chosen) == 160
    assert int(task.split("train").consistent.sum()) == round(ratio * 100)
    assert task.split("validation").consistent.all()
    assert not task.split("adversarial").consistent.any()
    assert task.record["disjoint"]
