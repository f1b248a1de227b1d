"""Which sequences of integers a sequence task asks and trains: distinct ones, and all the others.

Tokens and targets are left to `sequences.py`.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Int, Int64
from torch import Tensor

from interp_shortcuts.tasks.sampling import ENUMERATION_LIMIT, decode


def draw_distinct(
    n_asked: int, *, length: int, n_integers: int, stream: np.random.Generator
) -> Int64[np.ndarray, "example length"]:
    """Sequences drawn uniformly, all distinct unless fewer exist than are asked for.

    Args:
        n_asked: How many.
        length: Number of integers in each.
        n_integers: N; the integers are 1 to N.
        stream: Where they are drawn from.
    """
    n_exist = n_integers**length
    if n_exist < n_asked:  # repeats cannot be helped
        return stream.integers(1, n_integers + 1, size=(n_asked, length), dtype=np.int64)
    if n_exist <= ENUMERATION_LIMIT:
        codes = stream.permutation(n_exist)[:n_asked]
        return 1 + decode(codes, length=length, n_integers=n_integers)
    distinct: dict[bytes, np.ndarray] = {}
    while len(distinct) < n_asked:
        one = stream.integers(1, n_integers + 1, size=length, dtype=np.int64)
        distinct.setdefault(one.tobytes(), one)
    return np.stack(list(distinct.values()))


def draw_fresh(
    size: int,
    *,
    length: int,
    n_integers: int,
    generator: torch.Generator,
    left_out: Int[Tensor, "known length"] | None = None,
) -> Int[Tensor, "example length"]:
    """Sequences drawn uniformly with replacement; those to be left out are drawn again.

    Sequences are compared by a number in int64. Where it overflows, two may share one; a sequence
    is then drawn again without need.

    Args:
        size: How many.
        length: Number of integers in each.
        n_integers: N; the integers are 1 to N.
        generator: Where they are drawn from.
        left_out: Sequences of that length that are not to be among them; they must not be all.
    """
    top = n_integers + 1
    integers = torch.randint(1, top, (size, length), generator=generator)
    if left_out is None:
        return integers
    known = _codes(left_out, n_integers)
    again = torch.nonzero(torch.isin(_codes(integers, n_integers), known)).flatten()
    while len(again):
        drawn = torch.randint(1, top, (len(again), length), generator=generator)
        integers[again] = drawn
        again = again[torch.isin(_codes(drawn, n_integers), known)]
    return integers


def _codes(integers: Int[Tensor, "example length"], n_integers: int) -> Int[Tensor, " example"]:
    """Each sequence as one number."""
    code = torch.zeros_like(integers[:, 0])
    for column in integers.unbind(1):
        code = code * n_integers + (column - 1)
    return code
