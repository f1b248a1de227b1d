"""`ModularArithmetic`: c = a o b modulo P from all pairs, with a fraction of wrong training labels.

The setting of arXiv 2605.18022. Which labels become wrong is in `label_noise.py`, what counts as
loss and as correct in `class_scores.py`, the circle of the residues in `interp_shortcuts.residues`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Int
from pydantic import ValidationError
from torch import Tensor

from interp_shortcuts.canonical import short_hash
from interp_shortcuts.errors import TaskError
from interp_shortcuts.residues import Arithmetic, answer
from interp_shortcuts.streams import numpy_stream
from interp_shortcuts.tasks.class_scores import ClassScores
from interp_shortcuts.tasks.label_noise import parts_by_noise, with_noise
from interp_shortcuts.tasks.modular_config import ModularConfig
from interp_shortcuts.tasks.pair_split import PairSplit

if TYPE_CHECKING:  # type checkers do not match a cached property with a protocol's property
    cached_property = property
else:
    from functools import cached_property

_SIZES = ("arithmetic", "modulus", "noise", "train_fraction")


@dataclass(frozen=True, eq=False, kw_only=True)
class ModularArithmetic(ClassScores):
    """All pairs of residues, a fixed part of which is trained, some of it with wrong labels.

    An example is the two residues a and b; its class is a + b, a - b or a b modulo P. For
    multiplication P must be a prime, and **pairs with a zero are left out**: zero is no power of
    a primitive root, and with it the answer is known from one residue. Token and class 0 stay in
    the vocabulary and are never used, also not as a wrong label.

    The splits, which depend on the fields alone:

    - `train`: the observed labels, of which exactly round(noise * n) are wrong;
    - `clean`, `noisy`: the training pairs whose label is right, and wrong;
    - `noisy_true`: the pairs of `noisy` with their true labels;
    - `test`: all other pairs, with true labels.

    The permutation that chooses the training pairs does not depend on the noise, and more noise
    keeps the wrong labels of less.

    Two tasks are equal when they have the same `fingerprint`.

    Attributes:
        arithmetic: `"add"`, `"subtract"` or `"multiply"`.
        modulus: The modulus P.
        noise: Label noise alpha, a fraction in [0, 1].
        train_fraction: Fraction of all pairs that are trained, in (0, 1).
        seed: Seed of the examples.

    Raises:
        TaskError: If a size is out of its range, leaves no pair to train or to test, or the
            modulus of a multiplication is no prime.
    """

    arithmetic: Arithmetic = "add"
    modulus: int = 59
    noise: float | int = 0.4
    train_fraction: float = 0.8
    seed: int = 0

    def __post_init__(self) -> None:
        if self.seed is None:
            raise TaskError("`seed` should be a valid integer; got None.")
        try:
            object.__setattr__(self, "noise", self.config.noise)
        except ValidationError as error:
            raise TaskError(_faults(error)) from error

    @classmethod
    def from_config(cls, config: ModularConfig, *, seed: int) -> ModularArithmetic:
        """The task that a config describes.

        Args:
            config: The config, e.g. of a run.
            seed: Seed of the examples, unless the config has a `data_seed`.
        """
        return cls(
            **config.model_dump(include=set(_SIZES)),
            seed=seed if config.data_seed is None else config.data_seed,
        )

    @cached_property
    def config(self) -> ModularConfig:
        """The written-down form, complete with the seed."""
        return ModularConfig(**{name: getattr(self, name) for name in _SIZES}, data_seed=self.seed)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that determines the splits (16 hex digits)."""
        return short_hash(self.config)

    @property
    def name(self) -> str:
        """`"modular_add"`, `"modular_subtract"` or `"modular_multiply"`."""
        return f"modular_{self.arithmetic}"

    @property
    def n_tokens(self) -> int:
        """Size of the input vocabulary, P."""
        return self.config.n_tokens

    @property
    def n_classes(self) -> int:
        """Number of classes and of logits, P."""
        return self.modulus

    @property
    def context(self) -> int:
        """Number of tokens in an example, 2."""
        return self.config.context

    @cached_property
    def residues(self) -> Int[np.ndarray, " residue"]:
        """The residues that occur, in ascending order: without zero for multiplication."""
        return np.arange(self.modulus - self.config.n_answers, self.modulus, dtype=np.int64)

    @cached_property
    def pairs(self) -> PairSplit:
        """All pairs in lexical order, trained and tested, with their true labels."""
        n = len(self.residues)
        first, second = np.repeat(self.residues, n), np.tile(self.residues, n)
        labels = torch.from_numpy(
            answer(first, second, arithmetic=self.arithmetic, modulus=self.modulus)
        )
        return PairSplit(
            name="pairs",
            tokens=torch.from_numpy(np.stack([first, second], axis=1)),
            labels=labels,
            true_labels=labels,
        )

    @cached_property
    def splits(self) -> Mapping[str, PairSplit]:
        """The splits by name: train, its clean and noisy parts, noisy_true, test."""
        order = torch.from_numpy(
            numpy_stream(self.seed, "task", "pairs", "order").permutation(self.pairs.n)
        )
        train = self.pairs.take(order[: self.config.n_train], name="train")
        observed = with_noise(train.true_labels, self.residues, noise=self.noise, seed=self.seed)
        train = PairSplit(
            name="train", tokens=train.tokens, labels=observed, true_labels=train.true_labels
        )
        test = self.pairs.take(order[self.config.n_train :], name="test")
        return MappingProxyType({**parts_by_noise(train), "test": test})

    def split(self, name: str) -> PairSplit:
        """The split of that name.

        Raises:
            TaskError: If there is none.
        """
        if name not in self.splits:
            raise TaskError(
                f"`split` must be one of {', '.join(map(repr, self.splits))}; got {name!r}."
            )
        return self.splits[name]

    def true_answers(self, tokens: Int[Tensor, "example 2"]) -> Int[Tensor, " example"]:
        """What the operation gives for any pairs of residues."""
        first, second = tokens.numpy().T
        return torch.from_numpy(
            answer(first, second, arithmetic=self.arithmetic, modulus=self.modulus)
        )

    @cached_property
    def record(self) -> dict[str, Any]:
        """What the manifest says about the examples, fit for JSON.

        `name`, `fingerprint`, `config`, `n_pairs`, `n_left_out` (pairs with a zero, for
        multiplication), `n_noisy`, the achieved `noise` and `train_fraction`, and `splits` with,
        for each, `n` and `sha`.
        """
        train = self.splits["train"]
        n_noisy = int(train.noisy.sum())
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "config": self.config.model_dump(mode="json"),
            "n_pairs": self.pairs.n,
            "n_left_out": self.modulus**2 - self.pairs.n,
            "n_noisy": n_noisy,
            "noise": n_noisy / train.n,
            "train_fraction": train.n / self.pairs.n,
            "splits": {
                name: {"n": split.n, "sha": split.sha} for name, split in self.splits.items()
            },
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ModularArithmetic):
            return NotImplemented
        return self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: splits are drawn again from the seed rather than copied."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _faults(error: ValidationError) -> str:
    """The config's complaints as sentences with rule, name and value."""
    sentences = []
    for fault in error.errors():
        message = fault["msg"].removeprefix("Value error, ").removeprefix("Input ")
        if fault["type"] == "value_error":  # a rule over several fields names them itself
            sentences.append(message)
        else:
            name = "seed" if fault["loc"][0] == "data_seed" else fault["loc"][0]
            sentences.append(f"`{name}` {message}; got {fault['input']!r}.")
    return " ".join(sentences)
