"""Which sequences of integers go into which split.

Every sequence is *consistent* (the shortcut gives the true label) or *anti*. Training takes both
in the spurious ratio, validation takes consistent ones, adversarial takes anti ones, each drawn
uniformly from the sequences of its group, without replacement.

Small spaces (at most `ENUMERATION_LIMIT` sequences) are enumerated, and each group is put into a
random order: training takes from the front, the evaluation split from the back. So training does
not depend on the evaluation sizes, nor these splits on the training size or the ratio, and they
overlap only if the group is smaller than both together; then by as few sequences as possible.

Larger spaces are drawn from and the rejected thrown away. Training is again independent of the
evaluation sizes; the evaluation splits leave out what training holds, which is their only
dependence on it. The size of a group is then not known: a group that yields too few distinct
sequences is an error.

Tokens, tensors and labels are left to `task.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from interp_shortcuts.errors import TaskError
from interp_shortcuts.streams import numpy_stream
from interp_shortcuts.tasks.rules import TaskRule

ENUMERATION_LIMIT = 2**20
"""Spaces with at most this many sequences are enumerated."""

_CHUNK = 2**14
_DRAWS_PER_EXAMPLE = 1000  # a group rarer than this share of a large space is refused

Sequences = Int64[np.ndarray, "example position"]


@dataclass(frozen=True)
class Group:
    """How much is asked of one group of sequences.

    Attributes:
        name: `"consistent"` or `"anti"`.
        n_train: How many of them training takes.
        n_evaluation: How many of them the evaluation split takes.
        evaluation: Name of that split.
    """

    name: str
    n_train: int
    n_evaluation: int
    evaluation: str


@dataclass(frozen=True)
class Drawn:
    """The sequences chosen from one group.

    Attributes:
        train: Sequences for training.
        evaluation: Sequences for the evaluation split.
        n_exist: Size of the group; None if the space was too large to count.
        n_shared: Number of sequences in both.
    """

    train: Int64[np.ndarray, "train_example position"]
    evaluation: Int64[np.ndarray, "evaluation_example position"]
    n_exist: int | None
    n_shared: int


def draw_groups(
    rule: TaskRule, groups: tuple[Group, ...], *, length: int, n_integers: int, seed: int
) -> dict[str, Drawn]:
    """Chooses the sequences of every group, by name.

    Args:
        rule: Decides which group a sequence belongs to.
        groups: What is asked of each.
        length: Number of integers in a sequence.
        n_integers: V; the integers are 0 to V-1.
        seed: Seed of the streams `("task", <group>, ...)`.

    Raises:
        TaskError: If a split asks for more distinct sequences than its group has.
    """
    if n_integers**length <= ENUMERATION_LIMIT:
        members = _enumerate(rule, length=length, n_integers=n_integers)
        return {
            group.name: _deal(
                members[group.name], group, length=length, n_integers=n_integers, seed=seed
            )
            for group in groups
        }
    return {
        group.name: _reject(rule, group, length=length, n_integers=n_integers, seed=seed)
        for group in groups
    }


def _belongs(rule: TaskRule, sequences: Sequences, group: str) -> Bool[np.ndarray, " example"]:
    consistent = rule.label_of(sequences) == rule.shortcut_of(sequences)
    return consistent if group == "consistent" else ~consistent


def decode(codes: Int64[np.ndarray, " example"], *, length: int, n_integers: int) -> Sequences:
    """The sequences whose digits in base V are these numbers, the first integer leading."""
    powers = n_integers ** np.arange(length - 1, -1, -1, dtype=np.int64)
    return codes[:, None] // powers % n_integers


def _enumerate(
    rule: TaskRule, *, length: int, n_integers: int
) -> dict[str, Int64[np.ndarray, " example"]]:
    """The codes of all sequences, by group, in ascending order."""
    n_sequences = n_integers**length
    consistent = np.empty(n_sequences, dtype=bool)
    for start in range(0, n_sequences, _CHUNK):
        stop = min(start + _CHUNK, n_sequences)
        codes = np.arange(start, stop, dtype=np.int64)
        sequences = decode(codes, length=length, n_integers=n_integers)
        consistent[start:stop] = _belongs(rule, sequences, "consistent")
    return {"consistent": np.flatnonzero(consistent), "anti": np.flatnonzero(~consistent)}


def _deal(
    members: Int64[np.ndarray, " example"],
    group: Group,
    *,
    length: int,
    n_integers: int,
    seed: int,
) -> Drawn:
    n_exist = len(members)
    for split, n_asked in (("train", group.n_train), (group.evaluation, group.n_evaluation)):
        if n_asked > n_exist:
            exist = f"only {n_exist} exist" if n_exist else "none exists"
            raise TaskError(
                f"The {split} split needs {n_asked} distinct {group.name} sequences, but "
                f"{exist} among the {n_integers**length} of `length` = {length} and "
                f"`n_integers` = {n_integers}. {_cure(group, split, empty=n_exist == 0)}"
            )
    order = numpy_stream(seed, "task", group.name).permutation(members)
    chosen = (order[: group.n_train], order[n_exist - group.n_evaluation :])
    train, evaluation = (decode(codes, length=length, n_integers=n_integers) for codes in chosen)
    n_shared = max(0, group.n_train + group.n_evaluation - n_exist)
    return Drawn(train, evaluation, n_exist=n_exist, n_shared=n_shared)


def _reject(rule: TaskRule, group: Group, *, length: int, n_integers: int, seed: int) -> Drawn:
    """Draws uniformly and keeps what belongs to the group and is new."""
    seen: set[bytes] = set()
    chosen: dict[str, Sequences] = {}
    for split, n_asked in (("train", group.n_train), (group.evaluation, group.n_evaluation)):
        stream = numpy_stream(seed, "task", group.name, split)
        chunk = min(_CHUNK, max(1, 2**22 // length))
        limit = ENUMERATION_LIMIT + _DRAWS_PER_EXAMPLE * n_asked
        kept: list[np.ndarray] = []
        n_drawn = 0
        while len(kept) < n_asked and n_drawn < limit:
            sequences = stream.integers(0, n_integers, size=(chunk, length), dtype=np.int64)
            n_drawn += chunk
            for sequence in sequences[_belongs(rule, sequences, group.name)]:
                key = sequence.tobytes()
                if len(kept) < n_asked and key not in seen:
                    seen.add(key)
                    kept.append(sequence)
        if len(kept) < n_asked:
            held = f"only {len(kept)}" if kept else "none"
            besides = " besides those in training" if seen and split != "train" else ""
            raise TaskError(
                f"The {split} split needs {n_asked} distinct {group.name} sequences{besides}, but "
                f"{n_drawn} random ones of `length` = {length} and `n_integers` = {n_integers} "
                f"held {held}. {_cure(group, split, empty=not seen)}"
            )
        chosen[split] = np.array(kept, dtype=np.int64).reshape(n_asked, length)
    return Drawn(chosen["train"], chosen[group.evaluation], n_exist=None, n_shared=0)


def _cure(group: Group, split: str, *, empty: bool) -> str:
    larger = "raise `length` or `n_integers`"
    if not empty:
        size = "`n_train`" if split == "train" else f"`n_{split}`"
        return f"Lower {size}, or {larger}."
    if group.name == "anti":
        return (
            "The shortcut gives the true label of every one of them: use another shortcut, "
            f"{larger}, or do without anti examples (`ratio` = 1 and `n_adversarial` = 0)."
        )
    return (
        "The shortcut gives the true label of none of them: use another shortcut, "
        f"{larger}, or do without consistent examples (`ratio` = 0 and `n_validation` = 0)."
    )
