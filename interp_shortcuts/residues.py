"""Arithmetic modulo P: which operations there are, and the order in which residues form a circle.

Addition and subtraction go round the residues in their own order. Multiplication modulo a prime
goes round the powers of a primitive root: the logarithm turns it into addition modulo P - 1. Zero
is no power and stays apart. Tasks, models and measures all take their order from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from interp_shortcuts.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Int

Arithmetic = Literal["add", "subtract", "multiply"]


def check_arithmetic(arithmetic: str, modulus: int) -> None:
    """Refuses an operation that is not there, or that has no circle at this modulus.

    Raises:
        ConfigError: If `arithmetic` is unknown, `modulus` is below 2, or multiplication is asked
            for at a modulus that is no prime.
    """
    if arithmetic not in get_args(Arithmetic):
        raise ConfigError(
            f"`arithmetic` must be 'add', 'subtract' or 'multiply'; got {arithmetic!r}."
        )
    if modulus < 2:
        raise ConfigError(f"`modulus` must be at least 2; got {modulus}.")
    if arithmetic == "multiply" and not is_prime(modulus):
        raise ConfigError(
            f"`modulus` (={modulus}) must be a prime for `arithmetic` 'multiply', whose residues "
            "are taken as powers of one of them."
        )


def is_prime(number: int) -> bool:
    """Whether a number has exactly two divisors, by trial division."""
    if number < 2:
        return False
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            return False
        divisor += 1
    return True


def primitive_root(modulus: int) -> int:
    """The smallest residue whose powers are all residues but zero.

    Args:
        modulus: A prime P.

    Raises:
        ConfigError: If it is no prime.
    """
    check_arithmetic("multiply", modulus)
    order = modulus - 1
    primes = [factor for factor in range(2, order + 1) if order % factor == 0 and is_prime(factor)]
    return next(
        root
        for root in range(1, modulus)
        if all(pow(root, order // prime, modulus) != 1 for prime in primes)
    )


def circle(arithmetic: Arithmetic, modulus: int) -> Int[np.ndarray, " place"]:
    """The residue at each place of the circle on which the operation is a rotation.

    Returns:
        0 to P-1 for addition and subtraction; for multiplication the P-1 powers g^0, g^1, ... of
        the smallest primitive root, without zero.

    Raises:
        ConfigError: As `check_arithmetic`.
    """
    import numpy as np

    check_arithmetic(arithmetic, modulus)
    if arithmetic != "multiply":
        return np.arange(modulus, dtype=np.int64)
    root = primitive_root(modulus)
    return np.array([pow(root, power, modulus) for power in range(modulus - 1)], dtype=np.int64)


def discrete_log(modulus: int) -> Int[np.ndarray, " residue"]:
    """To which power of the smallest primitive root each residue is equal.

    Args:
        modulus: A prime P.

    Returns:
        An array of P powers from 0 to P-2, so that log(a b) = log(a) + log(b) modulo P - 1; -1 at
        zero, which has none.

    Raises:
        ConfigError: If the modulus is no prime.
    """
    import numpy as np

    powers = circle("multiply", modulus)
    log = np.full(modulus, -1, dtype=np.int64)
    log[powers] = np.arange(modulus - 1)
    return log


def answer(
    first: Int[np.ndarray, " pair"],
    second: Int[np.ndarray, " pair"],
    *,
    arithmetic: Arithmetic,
    modulus: int,
) -> Int[np.ndarray, " pair"]:
    """The residue that the operation gives for each pair of residues."""
    if arithmetic == "multiply":
        return first * second % modulus
    return (first + second if arithmetic == "add" else first - second) % modulus


def turn(arithmetic: Arithmetic) -> int:
    """Which way the second residue turns the circle: -1 for subtraction, 1 otherwise."""
    return -1 if arithmetic == "subtract" else 1
