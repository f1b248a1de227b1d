"""Residues: primes, primitive roots, and the circle that turns each operation into addition."""

from __future__ import annotations

import numpy as np
import pytest

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.residues import (
    answer,
    circle,
    discrete_log,
    is_prime,
    primitive_root,
    turn,
)

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79)


def test_primes():
    assert [number for number in range(-3, 80) if is_prime(number)] == list(PRIMES)


def test_the_primitive_roots_are_those_of_the_tables():
    """Smallest primitive roots, OEIS A001918."""
    known = [1, 2, 2, 3, 2, 2, 3, 2, 5, 2, 3, 2, 6, 3, 5, 2, 2, 2, 2, 7, 5, 3]
    assert [primitive_root(prime) for prime in PRIMES] == known


@pytest.mark.parametrize("modulus", [2, 3, 31, 59, 113])
def test_the_logarithm_turns_products_into_sums(modulus):
    log = discrete_log(modulus)
    residues = np.arange(1, modulus)
    first, second = np.repeat(residues, len(residues)), np.tile(residues, len(residues))
    product = log[first * second % modulus]
    assert (product == (log[first] + log[second]) % (modulus - 1)).all()
    assert sorted(log[1:]) == list(range(modulus - 1))
    assert log[0] == -1


@pytest.mark.parametrize(("arithmetic", "modulus"), [("add", 12), ("subtract", 7), ("multiply", 7)])
def test_the_operation_is_a_rotation_of_the_circle(arithmetic, modulus):
    places = circle(arithmetic, modulus)
    n = len(places)
    for i in range(n):
        for j in range(n):
            got = answer(places[[i]], places[[j]], arithmetic=arithmetic, modulus=modulus)
            assert got == places[(i + turn(arithmetic) * j) % n]


def test_multiplication_has_no_circle_at_a_composite_modulus():
    with pytest.raises(ConfigError, match=r"`modulus` \(=12\) must be a prime for `arithmetic` 'm"):
        circle("multiply", 12)
    with pytest.raises(ConfigError, match=r"`modulus` must be at least 2; got 1"):
        circle("add", 1)


def test_an_unknown_operation_is_refused(unchecked):
    with pytest.raises(
        ConfigError, match="`arithmetic` must be 'add', 'subtract' or 'multiply'; got 'power'"
    ):
        circle("power", 7)
