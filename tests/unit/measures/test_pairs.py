"""Pairs: the labels of every one of them, both directions, and that a seed gives the same."""

from __future__ import annotations

import pytest
import torch
from causal_reference import three_class_task, wired_task
from hypothesis import given, settings
from hypothesis import strategies as st

from interp_shortcuts.measures import pairs as pairs_module
from interp_shortcuts.measures.pairs import DIRECTIONS, PAIRINGS, pairs_of


def rows(split):
    columns = split.tokens.tolist(), split.labels.tolist(), split.shortcut_labels.tolist()
    return {(tuple(tokens), y, s) for tokens, y, s in zip(*columns, strict=True)}


def check(task, pairs):
    own, other = (task.split(name) for name in DIRECTIONS[pairs.direction])
    target = pairs.target
    assert target.n <= own.n
    assert len(rows(target)) == target.n  # all distinct
    assert rows(target) <= rows(own)
    for pairing in PAIRINGS:
        source, found = pairs.sources[pairing], pairs.found[pairing]
        pool = own if pairing == "control" else other
        assert rows(source.take(torch.nonzero(found)[:, 0])) <= rows(pool)
        for i in range(target.n):
            y, s = int(target.labels[i]), int(target.shortcut_labels[i])
            same_example = torch.equal(source.tokens[i], target.tokens[i])
            if not found[i]:
                assert same_example
                wanted = [
                    j
                    for j in range(pool.n)
                    if fits(pairing, y, s, int(pool.labels[j]), int(pool.shortcut_labels[j]))
                    and not torch.equal(pool.tokens[j], target.tokens[i])
                ]
                assert wanted == []
                continue
            assert not same_example
            assert fits(pairing, y, s, int(source.labels[i]), int(source.shortcut_labels[i]))


def fits(pairing, y, s, other_y, other_s):
    return {
        "rule": other_y != y and other_s == s,
        "shortcut": other_y == y and other_s != s,
        "control": other_y == y and other_s == s,
    }[pairing]


@settings(max_examples=25, deadline=None)
@given(
    three=st.booleans(),
    sizes=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    n_pairs=st.integers(1, 15),
    seed=st.integers(0, 3),
)
def test_the_labels_of_every_pair(three, sizes, n_pairs, seed):
    make = three_class_task if three else wired_task
    task = make(n_validation=sizes[0], n_adversarial=sizes[1], n_train=10, seed=seed)
    drawn = pairs_of(task, n_pairs=n_pairs, seed=seed)
    assert [pairs.direction for pairs in drawn] == list(DIRECTIONS)
    for pairs, n in zip(drawn, sizes, strict=True):
        assert pairs.target.n == min(n_pairs, n)
        check(task, pairs)


@pytest.mark.parametrize("make", [wired_task, three_class_task])
def test_there_is_a_pair_for_every_target_where_the_splits_are_rich(make):
    for pairs in pairs_of(make(), n_pairs=30):
        for pairing in PAIRINGS:
            assert bool(pairs.found[pairing].all())


def test_sources_are_drawn_evenly():
    """Every eligible example is a source now and then, the first and the last included."""
    task = wired_task(n_validation=6, n_adversarial=6)
    used, eligible = set(), set()
    for seed in range(40):
        forward, _ = pairs_of(task, n_pairs=6, seed=seed)
        used |= rows(forward.sources["rule"]) | rows(forward.sources["control"])
        check(task, forward)
    for split in ("validation", "adversarial"):
        eligible |= rows(task.split(split))
    assert used == eligible


def test_the_same_seed_gives_the_same_pairs():
    pairs_module._drawn.clear()
    first = pairs_of(wired_task(), n_pairs=20)
    assert pairs_of(wired_task(), n_pairs=20) is first  # kept by the task's fingerprint
    pairs_module._drawn.clear()
    again = pairs_of(wired_task(), n_pairs=20)
    other = pairs_of(wired_task(), n_pairs=20, seed=1)
    for one, same, different in zip(first, again, other, strict=True):
        assert one.target == same.target
        assert one.target != different.target
        for pairing in PAIRINGS:
            assert one.sources[pairing] == same.sources[pairing]
            assert torch.equal(one.found[pairing], same.found[pairing])


def test_more_pairs_keep_the_targets_and_few_are_kept_in_memory():
    pairs_module._drawn.clear()
    few, many = (pairs_of(wired_task(), n_pairs=n)[0] for n in (10, 30))
    assert torch.equal(few.target.tokens, many.target.tokens[:10])
    for n in range(1, 50):
        pairs_of(wired_task(n_validation=3, n_adversarial=3), n_pairs=n)
    assert len(pairs_module._drawn) <= 32


def test_the_first_pairs():
    whole = pairs_of(wired_task(), n_pairs=30)[1]
    first = whole.first(4)
    assert first.target.n == 4
    assert torch.equal(first.sources["rule"].tokens, whole.sources["rule"].tokens[:4])
    assert len(first.found["control"]) == 4
    assert whole.first(99).target == whole.target
