"""Rules: what the true label and the shortcut label of a sequence of integers are.

The functions see integers only, as NumPy arrays; tokens, the `"="` and the drawing of examples are
left to `task.py` and `sampling.py`. A user's rule needs no more than the two functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Int, Int64

from interp_shortcuts.errors import ConfigError, TaskError
from interp_shortcuts.streams import numpy_stream

RuleFunction = Callable[[Any], Any]
"""Int64 NumPy array [example position] of integers -> integer NumPy array [example] of labels."""

_N_PROBE = 256


@dataclass(frozen=True)
class TaskRule:
    """A true label and a shortcut for it.

    Attributes:
        name: The name that configs use.
        label: The true label of each sequence.
        shortcut: The label that the shortcut gives to each sequence.
        n_classes: Number C of classes; labels are 0 to C-1.
        definition: Both in words.
    """

    name: str
    label: RuleFunction
    shortcut: RuleFunction
    n_classes: int = 2
    definition: str = ""

    def label_of(
        self, integers: Int[np.ndarray, "example position"]
    ) -> Int64[np.ndarray, " example"]:
        """The true labels, checked."""
        return _apply(self.label, integers, role="label", n_classes=self.n_classes)

    def shortcut_of(
        self, integers: Int[np.ndarray, "example position"]
    ) -> Int64[np.ndarray, " example"]:
        """The shortcut labels, checked."""
        return _apply(self.shortcut, integers, role="shortcut", n_classes=self.n_classes)

    def fingerprint(self, length: int, n_integers: int) -> str:
        """What the two functions return on a fixed probe sample, hashed (16 hex digits).

        It identifies a function by its behaviour: the same code under another name has the same
        fingerprint, and an edited rule has another one unless the edit shows on none of the
        probe's sequences.

        Args:
            length: Number of integers in a sequence.
            n_integers: V; the integers are 0 to V-1.

        Raises:
            TaskError: If a function breaks the rules for functions (see `check`).
        """
        probe = _probe(length, n_integers)
        digest = hashlib.sha256(f"{length} {n_integers} {self.n_classes}".encode())
        for labels in (self.label_of(probe), self.shortcut_of(probe)):
            digest.update(labels.astype("<i8").tobytes())
        return digest.hexdigest()[:16]

    def check(self, length: int, n_integers: int) -> None:
        """Tries both functions on a sample.

        Args:
            length: Number of integers in a sequence.
            n_integers: V; the integers are 0 to V-1.

        Raises:
            TaskError: If a function fails, returns something else than one class for each
                sequence, modifies its input, answers otherwise when asked again, or lets one
                sequence's label depend on the others.
        """
        probe = _probe(length, n_integers)
        for role, function in (("label", self.label), ("shortcut", self.shortcut)):
            apply = partial(_apply, function, role=role, n_classes=self.n_classes)
            labels = apply(probe)
            if not np.array_equal(labels, apply(probe)):
                raise TaskError(
                    f"`{role}` must be deterministic: called twice on the same {len(probe)} "
                    "sequences, it gave different labels."
                )
            if not np.array_equal(labels[::-1], apply(probe[::-1])):
                raise TaskError(
                    f"`{role}` must judge each sequence on its own: on the same {len(probe)} "
                    "sequences in reverse order it gave other labels. Reduce over positions "
                    "(axis=1), not over examples."
                )


def _probe(length: int, n_integers: int) -> Int64[np.ndarray, "example position"]:
    stream = numpy_stream(0, "task", "rule probe")
    return stream.integers(0, n_integers, size=(_N_PROBE, length), dtype=np.int64)


def _apply(
    function: RuleFunction,
    integers: Int[np.ndarray, "example position"],
    *,
    role: str,
    n_classes: int,
) -> Int64[np.ndarray, " example"]:
    """Calls a rule's function on a read-only view and checks what comes back."""
    takes = "It is given an int64 NumPy array [example position] of integers"
    if not callable(function):
        raise TaskError(f"`{role}` must be a function of the integers; got {function!r}.")
    view = integers.view()
    view.flags.writeable = False
    try:
        labels = function(view)
    except Exception as error:
        cure = (
            " It must not modify its input: work on `integers.copy()`."
            if "read-only" in str(error)
            else f" {takes}, and NumPy functions must suffice."
        )
        raise TaskError(
            f"`{role}` failed on integers of shape {integers.shape}: "
            f"{type(error).__name__}: {error}.{cure}"
        ) from error
    if not isinstance(labels, np.ndarray):
        raise TaskError(
            f"`{role}` must return a NumPy array of {len(integers)} labels; got "
            f"{type(labels).__module__}.{type(labels).__name__}. {takes}; torch is not needed."
        )
    if labels.shape != (len(integers),):
        raise TaskError(
            f"`{role}` must return one label for each sequence, shape ({len(integers)},); got "
            f"shape {labels.shape}. Reduce over positions (axis=1)."
        )
    if labels.dtype.kind not in "iu":
        raise TaskError(
            f"`{role}` must return integers; got dtype {labels.dtype}. Use `.astype(np.int64)`."
        )
    outside = (labels < 0) | (labels >= n_classes)
    if outside.any():
        first = int(np.flatnonzero(outside)[0])
        raise TaskError(
            f"`{role}` must return labels from 0 to {n_classes - 1} (`n_classes` = {n_classes}); "
            f"got {int(labels[first])} for the sequence {integers[first].tolist()}."
        )
    return labels.astype(np.int64)


def _sum_mod(integers: np.ndarray, *, modulus: int) -> np.ndarray:
    return integers.sum(axis=1) % modulus


def _max_mod(integers: np.ndarray, *, modulus: int) -> np.ndarray:
    return integers.max(axis=1) % modulus


def _first_mod(integers: np.ndarray, *, modulus: int) -> np.ndarray:
    return integers[:, 0] % modulus


def _sum_rule(name: str, *, shortcut: Callable[..., Any], words: str, modulus: int) -> TaskRule:
    return TaskRule(
        name,
        label=partial(_sum_mod, modulus=modulus),
        shortcut=partial(shortcut, modulus=modulus),
        n_classes=modulus,
        definition=f"label: sum mod {modulus}; shortcut: {words} mod {modulus}",
    )


RULES: dict[str, TaskRule] = {
    rule.name: rule
    for rule in (
        _sum_rule("max_parity", shortcut=_max_mod, words="maximum", modulus=2),
        _sum_rule("max_mod3", shortcut=_max_mod, words="maximum", modulus=3),
        _sum_rule("first_parity", shortcut=_first_mod, words="first integer", modulus=2),
        _sum_rule("first_mod3", shortcut=_first_mod, words="first integer", modulus=3),
    )
}
"""The rules that configs can name. The tasks are those of arXiv 2607.10116; that the shortcut of
the mod-3 tasks is the maximum (or first integer) mod 3 is our reading."""


BUILT_IN = frozenset(RULES)
"""Names of the rules that come with the package; the command line knows no others."""


def register_rule(rule: TaskRule) -> TaskRule:
    """Makes a rule known by its name, so that configs and run folders that name it can be opened.

    A rule of yours is replaced when its name is registered again (a notebook cell may run twice);
    run folders notice when the new one behaves otherwise, by the rule's fingerprint.

    Args:
        rule: The rule.

    Returns:
        The same rule.

    Raises:
        ConfigError: If the name is that of a built-in rule.
    """
    if rule.name in BUILT_IN and RULES[rule.name] != rule:
        raise ConfigError(
            f"`name` must not be that of a built-in rule ({', '.join(sorted(BUILT_IN))}); got "
            f"{rule.name!r}."
        )
    RULES[rule.name] = rule
    return rule


def rule(name: str) -> TaskRule:
    """The registered rule of that name.

    Raises:
        ConfigError: If there is none.
    """
    if name not in RULES:
        raise ConfigError(
            f"`rule` must be one of {', '.join(map(repr, RULES))}; got {name!r}. If it is your "
            "own rule, call `register_rule(TaskRule(...))` first, or pass the task itself "
            "(`task=`); the command line knows the built-in rules alone."
        )
    return RULES[name]
