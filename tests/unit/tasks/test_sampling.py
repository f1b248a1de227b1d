"""Which sequences are chosen: derived counts, disjointness, uniformity, and what is refused."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from interp_shortcuts.errors import TaskError
from interp_shortcuts.tasks import sampling
from interp_shortcuts.tasks.rules import RULES, TaskRule, rule
from interp_shortcuts.tasks.sampling import Group, draw_groups


def draw(
    known, *, length, n_integers, consistent=(0, 0), anti=(0, 0), seed=0
) -> dict[str, sampling.Drawn]:
    groups = (
        Group("consistent", *consistent, evaluation="validation"),
        Group("anti", *anti, evaluation="adversarial"),
    )
    return draw_groups(known, groups, length=length, n_integers=n_integers, seed=seed)


def as_set(sequences):
    return set(map(tuple, sequences.tolist()))


def rows(sequences):
    return [tuple(row) for row in sequences.tolist()]


@pytest.fixture
def always_draw(monkeypatch):
    """Treats every space as one too large to enumerate."""
    monkeypatch.setattr(sampling, "ENUMERATION_LIMIT", 0)


@pytest.mark.parametrize("name", sorted(RULES))
@pytest.mark.parametrize(("length", "n_integers"), [(1, 2), (2, 3), (3, 4), (4, 5), (5, 3)])
def test_group_sizes_by_enumeration_in_plain_python(name, length, n_integers):
    modulus = RULES[name].n_classes
    pick = max if name.startswith("max") else (lambda sequence: sequence[0])
    n_consistent = sum(
        sum(s) % modulus == pick(s) % modulus for s in product(range(n_integers), repeat=length)
    )
    drawn = draw(RULES[name], length=length, n_integers=n_integers)
    assert drawn["consistent"].n_exist == n_consistent
    assert drawn["anti"].n_exist == n_integers**length - n_consistent


def test_first_parity_group_sizes_in_closed_form():
    # even V: the sum of the other integers is even for exactly half of the sequences
    drawn = draw(rule("first_parity"), length=3, n_integers=10)
    assert drawn["consistent"].n_exist == drawn["anti"].n_exist == 500
    # n = 1: the first integer is the sum
    drawn = draw(rule("first_parity"), length=1, n_integers=10)
    assert (drawn["consistent"].n_exist, drawn["anti"].n_exist) == (10, 0)


def test_a_group_can_be_used_up_exactly():
    drawn = draw(rule("first_parity"), length=3, n_integers=10, consistent=(300, 200))
    train, evaluation = drawn["consistent"].train, drawn["consistent"].evaluation
    assert len(as_set(train)) == 300
    assert len(as_set(train) | as_set(evaluation)) == 500
    assert drawn["consistent"].n_shared == 0


@pytest.mark.parametrize(("n_train", "n_evaluation"), [(300, 201), (500, 500), (500, 1), (1, 500)])
def test_an_overlap_is_as_small_as_can_be_and_counted(n_train, n_evaluation):
    drawn = draw(rule("first_parity"), length=3, n_integers=10, anti=(n_train, n_evaluation))
    train, evaluation = as_set(drawn["anti"].train), as_set(drawn["anti"].evaluation)
    assert (len(train), len(evaluation)) == (n_train, n_evaluation)
    assert drawn["anti"].n_shared == len(train & evaluation) == n_train + n_evaluation - 500


def test_enumerated_splits_do_not_depend_on_each_other():
    draw_parity = {"known": rule("max_parity"), "length": 4, "n_integers": 8}
    base = draw(**draw_parity, consistent=(100, 50), anti=(20, 30))
    more = draw(**draw_parity, consistent=(400, 90), anti=(25, 0))
    assert rows(more["consistent"].train)[:100] == rows(base["consistent"].train)
    assert rows(more["anti"].train)[:20] == rows(base["anti"].train)
    assert rows(more["consistent"].evaluation)[-50:] == rows(base["consistent"].evaluation)


@pytest.mark.parametrize("name", sorted(RULES))
def test_drawn_sequences_are_distinct_disjoint_and_of_their_group(name):
    known = RULES[name]
    sizes = {"consistent": (2000, 700), "anti": (300, 500)}
    drawn = draw(known, length=6, n_integers=20, **sizes)
    chosen = []
    for group, (n_train, n_evaluation) in sizes.items():
        assert drawn[group].n_exist is None
        for sequences, n_asked in (
            (drawn[group].train, n_train),
            (drawn[group].evaluation, n_evaluation),
        ):
            assert sequences.shape == (n_asked, 6)
            agree = known.label_of(sequences) == known.shortcut_of(sequences)
            assert agree.all() if group == "consistent" else not agree.any()
            chosen += rows(sequences)
    assert len(set(chosen)) == len(chosen) == 3500


def test_drawing_from_a_small_space_can_exhaust_it(always_draw):
    drawn = draw(rule("first_parity"), length=3, n_integers=4, consistent=(20, 12), anti=(32, 0))
    assert drawn["anti"].n_exist is None
    train, evaluation = as_set(drawn["consistent"].train), as_set(drawn["consistent"].evaluation)
    assert len(train | evaluation) == 32
    assert len(as_set(drawn["anti"].train)) == 32


def test_drawn_training_does_not_depend_on_the_evaluation_sizes():
    base = draw(rule("max_parity"), length=7, n_integers=10, consistent=(100, 50), anti=(9, 5))
    more = draw(rule("max_parity"), length=7, n_integers=10, consistent=(300, 80), anti=(9, 0))
    assert rows(more["consistent"].train)[:100] == rows(base["consistent"].train)
    assert rows(more["anti"].train) == rows(base["anti"].train)
    # the space is so large that training takes nothing that validation wants
    assert rows(more["consistent"].evaluation)[:50] == rows(base["consistent"].evaluation)


@pytest.mark.parametrize("path", ["enumerated", "drawn"])
def test_every_sequence_of_a_group_is_equally_likely(path, monkeypatch):
    if path == "drawn":
        monkeypatch.setattr(sampling, "ENUMERATION_LIMIT", 0)
        monkeypatch.setattr(sampling, "_CHUNK", 64)
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(200):
        drawn = draw(
            rule("max_parity"), length=2, n_integers=4, anti=(2, 2), consistent=(1, 1), seed=seed
        )
        for sequence in rows(drawn["anti"].train) + rows(drawn["anti"].evaluation):
            counts[sequence] = counts.get(sequence, 0) + 1
    # anti under max parity: the smaller integer is odd
    expected = {(a, b) for a, b in product(range(4), repeat=2) if min(a, b) % 2}
    assert set(counts) == expected
    assert stats.chisquare(list(counts.values())).pvalue > 0.001


@pytest.mark.parametrize(
    ("length", "n_integers"), [(64, 50), (1024, 3), (40, 2), (7, 100), (2, 2**31 - 1), (20, 2)]
)
@pytest.mark.parametrize("name", ["max_mod3", "first_parity"])
def test_extreme_sizes(name, length, n_integers):
    drawn = draw(
        rule(name), length=length, n_integers=n_integers, consistent=(300, 100), anti=(300, 100)
    )
    for group in drawn.values():
        assert len(as_set(group.train) | as_set(group.evaluation)) == 400
        assert group.train.min() >= 0
        assert group.train.max() < n_integers


def test_more_than_exist_is_refused():
    with pytest.raises(
        TaskError,
        match=r"The train split needs 501 distinct consistent sequences, but only 500 exist among "
        r"the 1000 of `length` = 3 and `n_integers` = 10. Lower `n_train`, or raise `length`",
    ):
        draw(rule("first_parity"), length=3, n_integers=10, consistent=(501, 0))
    with pytest.raises(
        TaskError, match=r"The adversarial split needs 600 .*only 500 exist.*Lower `n_adversarial`"
    ):
        draw(rule("first_parity"), length=3, n_integers=10, anti=(0, 600))


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_group_that_is_empty_by_construction_is_refused(name):
    with pytest.raises(
        TaskError,
        match=r"needs 1 distinct anti sequences, but none exists among the 10 of `length` = 1 .*"
        r"gives the true label of every one.*`ratio` = 1 and `n_adversarial` = 0",
    ):
        draw(rule(name), length=1, n_integers=10, anti=(0, 1))
    with pytest.raises(
        TaskError, match=r"train split needs 3 distinct anti .*random ones .*held none.*every one"
    ):
        draw(rule(name), length=1, n_integers=2**21, anti=(3, 0))


@pytest.mark.parametrize("n_integers", [10, 2**21])
def test_a_shortcut_that_is_always_wrong(n_integers):
    wrong = TaskRule(
        "wrong",
        label=lambda integers: integers[:, 0] % 2,
        shortcut=lambda integers: 1 - integers[:, 0] % 2,
    )
    with pytest.raises(
        TaskError, match=r"label of none of them.*`ratio` = 0 and `n_validation` = 0"
    ):
        draw(wrong, length=1, n_integers=n_integers, consistent=(1, 0))
    assert len(draw(wrong, length=1, n_integers=n_integers, anti=(5, 2))["anti"].train) == 5


def test_a_rare_group_in_a_large_space_is_refused_with_what_was_found():
    rare = TaskRule(
        "rare",
        label=lambda integers: (integers[:, 0] < 30).astype(np.int64),
        shortcut=lambda integers: np.zeros(len(integers), dtype=np.int64),
    )
    with pytest.raises(
        TaskError,
        match=r"The train split needs 40 distinct anti sequences, but \d+ random ones of `length` "
        r"= 1 and `n_integers` = 2000000 held only \d+. Lower `n_train`",
    ):
        draw(rare, length=1, n_integers=2_000_000, anti=(40, 0))


def test_running_out_after_training_says_so(always_draw):
    with pytest.raises(
        TaskError,
        match=r"The adversarial split needs 20 distinct anti sequences besides those in training, "
        r"but \d+ random ones .*held only 12. Lower `n_adversarial`",
    ):
        draw(rule("first_parity"), length=3, n_integers=4, anti=(20, 20))


def test_a_function_that_fails_only_later_is_named():
    def fails(integers):
        if (integers == 999_999).any():
            raise RuntimeError("no such row")
        return integers[:, 0] % 2

    with pytest.raises(TaskError, match=r"`label` failed on .*RuntimeError: no such row"):
        draw(TaskRule("mine", fails, fails), length=1, n_integers=1_000_000)
