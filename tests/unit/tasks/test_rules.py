"""The four rules against plain Python, users' functions and their mistakes, and the registry."""

from __future__ import annotations

import re
from itertools import count, product

import numpy as np
import pytest
import torch

from interp_shortcuts.errors import ConfigError, TaskError
from interp_shortcuts.tasks.rules import RULES, TaskRule, register_rule, rule

CALLS = count()


def parity(integers):
    return integers.sum(axis=1) % 2


def rule_with(label, n_classes=2):
    return TaskRule("mine", label=label, shortcut=parity, n_classes=n_classes)


@pytest.fixture
def registry():
    """Forgets the rules that a test registers."""
    before = dict(RULES)
    yield RULES
    RULES.clear()
    RULES.update(before)


@pytest.mark.parametrize(
    ("name", "modulus", "pick"),
    [
        ("max_parity", 2, max),
        ("max_mod3", 3, max),
        ("first_parity", 2, lambda sequence: sequence[0]),
        ("first_mod3", 3, lambda sequence: sequence[0]),
    ],
)
def test_the_four_rules_on_every_short_sequence(name, modulus, pick):
    sequences = list(product(range(5), repeat=3))
    integers = np.array(sequences, dtype=np.int64)
    known = rule(name)
    assert known.n_classes == modulus
    assert known.label_of(integers).tolist() == [sum(s) % modulus for s in sequences]
    assert known.shortcut_of(integers).tolist() == [pick(s) % modulus for s in sequences]


def test_every_rule_passes_its_own_check_and_says_what_it_is():
    for known in RULES.values():
        known.check(4, 10)
        known.check(1, 2)
        assert f"sum mod {known.n_classes}" in known.definition


def test_fingerprint_tells_behaviour_not_names():
    known = rule("max_parity")
    same = TaskRule(
        "other", label=parity, shortcut=lambda integers: integers.max(axis=1) % 2, n_classes=2
    )
    assert same.fingerprint(4, 10) == known.fingerprint(4, 10)
    assert re.fullmatch("[0-9a-f]{16}", known.fingerprint(4, 10))
    others = {
        known.fingerprint(5, 10),
        known.fingerprint(4, 11),
        rule("first_parity").fingerprint(4, 10),
        TaskRule("other", parity, same.shortcut, n_classes=3).fingerprint(4, 10),
        TaskRule("other", same.shortcut, parity, n_classes=2).fingerprint(4, 10),
    }
    assert len(others) == 5
    assert known.fingerprint(4, 10) not in others


def test_users_labels_may_be_of_any_integer_type():
    for dtype in (np.int8, np.uint8, np.int32, np.uint64):
        mine = rule_with(lambda integers, dtype=dtype: parity(integers).astype(dtype))
        mine.check(4, 10)
        assert mine.label_of(np.ones((3, 3), dtype=np.int64)).dtype == np.int64


def in_place(integers):
    integers[:, 0] = 0
    return parity(integers)


def sorts(integers):
    integers.sort(axis=1)
    return parity(integers)


@pytest.mark.parametrize("function", [in_place, sorts])
def test_functions_must_not_modify_their_input(function):
    with pytest.raises(TaskError, match=r"`label` failed on .*work on `integers.copy\(\)`"):
        rule_with(function).check(4, 10)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda i: i.sum() % 2, r"must return a NumPy array of 256 labels; got numpy.int64"),
        (lambda i: parity(i).tolist(), r"must return a NumPy array .* got builtins.list.*torch"),
        (lambda i: torch.tensor(parity(i)), r"got torch.Tensor.*int64 NumPy array .*torch is not"),
        (
            lambda i: i % 2,
            r"one label for each sequence, shape \(256,\); got shape \(256, 4\).*axis",
        ),
        (lambda i: i.sum(axis=0) % 2, r"got shape \(4,\)"),
        (lambda i: parity(i) * 1.0, r"must return integers; got dtype float64.*astype\(np.int64\)"),
        (lambda i: i[:, 0] > 4, r"must return integers; got dtype bool"),
        (
            lambda i: i[:, 0],
            r"labels from 0 to 1 \(`n_classes` = 2\); got \d for the sequence \[\d",
        ),
        (lambda i: parity(i) + 1, r"labels from 0 to 1 .* got 2 for the sequence"),
        (lambda i: -parity(i), r"labels from 0 to 1 .* got -1"),
        (lambda i: i[:, 9], r"`label` failed on .*\(256, 4\): IndexError: .*NumPy functions must"),
        (lambda i: i.argmax(dim=1), r"`label` failed on .*TypeError"),
        (lambda i: (i > i.mean()).sum(axis=1) % 2 * (np.arange(len(i)) % 2), r"on its own"),
        (lambda i: (parity(i) + next(CALLS)) % 2, r"`label` must be deterministic"),
    ],
)
def test_mistakes_in_users_functions(function, message):
    with pytest.raises(TaskError, match=message):
        rule_with(function).check(4, 10)


def test_the_mistake_is_named_after_the_function_that_made_it():
    mine = TaskRule("mine", label=parity, shortcut=lambda integers: integers)
    with pytest.raises(TaskError, match="`shortcut` must return one label"):
        mine.check(4, 10)


def test_an_unknown_rule_lists_the_known_ones():
    with pytest.raises(
        ConfigError,
        match=r"`rule` must be one of 'max_parity', 'max_mod3', 'first_parity', 'first_mod3'; "
        r"got 'maxparity'.*register_rule.*task=",
    ):
        rule("maxparity")


def test_registering(registry):
    mine = register_rule(rule_with(parity))
    assert rule("mine") is mine
    again = rule_with(parity)
    assert register_rule(again) is again  # a notebook cell that runs twice
    assert rule("mine") is again


def test_built_in_names_are_taken(registry):
    with pytest.raises(ConfigError, match=r"built-in rule \(first_mod3, .*got 'max_parity'"):
        register_rule(TaskRule("max_parity", parity, parity))
    assert register_rule(rule("max_parity")) is rule("max_parity")
