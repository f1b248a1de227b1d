"""`SequenceTask`: a sequence of integers is read, and has to be written reversed or sorted.

A sequence of n integers is `START x1 .. xn SEP y1 .. yn END`; the model reads all but the last
token and is scored where the answer is due: at `SEP` on y1, and so on to yn, which has to give
`END`. Tokens are the integers 1 to N themselves, then PAD = N + 1, START = N + 2, SEP = N + 3 and
END = N + 4; token 0 is not used. The setting is that of arXiv 2602.01442; where it pads, every
split and batch here is of one length, so that nothing is padded.

What counts as loss and as correct is in `target_scores.py`, the drawing in `sequence_sampling.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import torch
from jaxtyping import Int
from pydantic import ValidationError
from torch import Tensor

from interp_shortcuts.canonical import short_hash
from interp_shortcuts.errors import TaskError
from interp_shortcuts.streams import numpy_stream
from interp_shortcuts.tasks.sequence_config import SequenceConfig
from interp_shortcuts.tasks.sequence_sampling import draw_distinct, draw_fresh
from interp_shortcuts.tasks.target_split import IGNORED, TargetSplit

if TYPE_CHECKING:  # type checkers do not match a cached property with a protocol's property
    cached_property = property
else:
    from functools import cached_property

_SIZES = ("operation", "n_integers", "train_min", "train_max", "heldout_max", "n_per_length")


@dataclass(frozen=True, eq=False, kw_only=True)
class SequenceTask:
    """Integers, drawn uniformly with replacement, and then the same ones reversed or sorted.

    The splits are `length_<n>` for every trained and held-out length n; they depend on the fields
    alone, each with a random stream of its own. Within a split all sequences are distinct, unless
    fewer exist than are asked for. Training has no split: `batch` draws fresh sequences, and leaves
    out those of the splits (see `leaves_out`).

    Two tasks are equal when they have the same `fingerprint`.

    Attributes:
        operation: `"reversal"` or `"sorting"` (ascending).
        n_integers: Number N of integers; they are 1 to N.
        train_min: Shortest length that is trained.
        train_max: Longest length that is trained.
        heldout_max: Longest held-out length; the shortest is `train_max` + 1.
        n_per_length: Number of examples of each split.
        seed: Seed of the splits.

    Raises:
        TaskError: If a size is out of its range.
    """

    operation: Literal["reversal", "sorting"]
    n_integers: int = 99
    train_min: int = 3
    train_max: int = 7
    heldout_max: int = 11
    n_per_length: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        try:
            _ = self.config
        except ValidationError as error:
            raise TaskError(_faults(error)) from error

    @classmethod
    def from_config(cls, config: SequenceConfig, *, seed: int) -> SequenceTask:
        """The task that a config describes.

        Args:
            config: The config, e.g. of a run.
            seed: Seed of the splits, unless the config has a `data_seed`.
        """
        return SequenceTask(
            **config.model_dump(include=set(_SIZES)),
            seed=seed if config.data_seed is None else config.data_seed,
        )

    @cached_property
    def config(self) -> SequenceConfig:
        """The written-down form, with the seed; `stop_at`, which is training's, at its default."""
        return SequenceConfig(**{name: getattr(self, name) for name in _SIZES}, data_seed=self.seed)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that determines the splits (16 hex digits)."""
        return short_hash(self.config.model_dump(mode="json", exclude={"stop_at"}))

    @property
    def name(self) -> str:
        """`"sequence_reversal"` or `"sequence_sorting"`."""
        return f"sequence_{self.operation}"

    @property
    def n_tokens(self) -> int:
        """Size of the vocabulary, N + 5."""
        return self.config.n_tokens

    @property
    def n_classes(self) -> int:
        """Number of logits at a position: the whole vocabulary."""
        return self.n_tokens

    @property
    def context(self) -> int:
        """Number of tokens that the model reads of the longest sequence, 2 n + 2."""
        return self.config.context

    @property
    def chance(self) -> float:
        """Accuracy of guessing one token uniformly, 1 / (N + 5); of a whole answer far less."""
        return 1 / self.n_tokens

    @property
    def pad_token(self) -> int:
        """The token that fills up shorter sequences in `padded`, N + 1."""
        return self.n_integers + 1

    @property
    def start_token(self) -> int:
        """The first token of every sequence, N + 2."""
        return self.n_integers + 2

    @property
    def separator_token(self) -> int:
        """The token between the integers and the answer, N + 3."""
        return self.n_integers + 3

    @property
    def end_token(self) -> int:
        """The last token of every answer, N + 4."""
        return self.n_integers + 4

    @property
    def train_lengths(self) -> tuple[int, ...]:
        """The lengths that are trained."""
        return self.config.train_lengths

    @property
    def heldout_lengths(self) -> tuple[int, ...]:
        """The lengths that are only evaluated."""
        return self.config.heldout_lengths

    @cached_property
    def splits(self) -> Mapping[str, TargetSplit]:
        """The splits by name, `length_<n>`, from the shortest length to the longest."""
        lengths = (*self.train_lengths, *self.heldout_lengths)
        return MappingProxyType({f"length_{length}": self._split(length) for length in lengths})

    def split(self, name: str) -> TargetSplit:
        """The split of that name.

        Raises:
            TaskError: If there is none.
        """
        if name not in self.splits:
            raise TaskError(
                f"`split` must be one of {', '.join(map(repr, self.splits))}; got {name!r}."
            )
        return self.splits[name]

    def answers(self, integers: Int[Tensor, "example length"]) -> Int[Tensor, "example length"]:
        """The integers as they have to be written."""
        return integers.flip(1) if self.operation == "reversal" else integers.sort(1).values

    def examples(self, integers: Int[Tensor, "example length"], *, name: str) -> TargetSplit:
        """Sequences of integers, all of one length, as a split.

        Args:
            integers: From 1 to N.
            name: Name of the split.

        Raises:
            TaskError: If an integer is out of its range.
        """
        if integers.numel() and not 1 <= int(integers.min()) <= int(integers.max()) <= (
            self.n_integers
        ):
            raise TaskError(
                f"`integers` must be from 1 to `n_integers` (={self.n_integers}); got "
                f"{int(integers.min())} to {int(integers.max())}."
            )
        answers = self.answers(integers)

        def mark(token: int) -> Int[Tensor, "example 1"]:
            return torch.full_like(integers[:, :1], token)

        tokens = [mark(self.start_token), integers, mark(self.separator_token), answers]
        unscored = torch.full_like(integers[:, :1], IGNORED).expand(-1, integers.shape[1] + 1)
        return TargetSplit(
            name=name,
            tokens=torch.cat(tokens, dim=1),
            targets=torch.cat([unscored, answers, mark(self.end_token)], dim=1),
        )

    def prompts(self, split: TargetSplit) -> Int[Tensor, "example position"]:
        """The sequences of a split up to `SEP`, from which an answer can be decoded.

        Raises:
            TaskError: If the split holds sequences of several lengths.
        """
        first = split.scored.int().argmax(1)
        if len(first) and int(first.min()) != int(first.max()):
            raise TaskError(
                "`split` must hold sequences of one length to be decoded; "
                f"{split.name!r} holds several."
            )
        return split.tokens[:, : int(first[0]) + 1] if len(first) else split.tokens[:, :0]

    def batch(
        self, size: int, generator: torch.Generator, length: int | None = None
    ) -> TargetSplit:
        """Fresh sequences of one length.

        Args:
            size: How many.
            generator: Where they are drawn from, on the CPU.
            length: Their length; None: drawn uniformly from the training lengths.

        Raises:
            TaskError: If `size` or `length` is below 1, or the length above `heldout_max`.
        """
        if size < 1:
            raise TaskError(f"`size` must be at least 1; got {size}.")
        if length is None:
            lengths = self.train_lengths
            length = lengths[int(torch.randint(len(lengths), (), generator=generator))]
        if not 1 <= length <= self.heldout_max:
            raise TaskError(
                f"`length` must be from 1 to `heldout_max` (={self.heldout_max}); got {length}."
            )
        known = self.splits[f"length_{length}"].tokens if self.leaves_out(length) else None
        integers = draw_fresh(
            size,
            length=length,
            n_integers=self.n_integers,
            generator=generator,
            left_out=None if known is None else known[:, 1 : length + 1],
        )
        return self.examples(integers, name="batch")

    def leaves_out(self, length: int) -> bool:
        """Whether batches of a length hold no sequence of the split of that length.

        They do not where at least twice as many sequences exist as the split asks for; in smaller
        spaces hardly any would be left.
        """
        return f"length_{length}" in self.splits and (
            self.n_integers**length >= 2 * self.n_per_length
        )

    def padded(self, splits: Sequence[TargetSplit], *, name: str = "padded") -> TargetSplit:
        """Several splits as one, shorter sequences filled up on the right; nothing is scored there.

        Args:
            splits: At least one.
            name: Name of the new split.

        Raises:
            TaskError: If there is none.
        """
        if not splits:
            raise TaskError("`splits` must hold at least one split; got none.")
        width = max(split.tokens.shape[1] for split in splits)

        def filled(tensor: Int[Tensor, "example position"], value: int) -> Tensor:
            return torch.nn.functional.pad(tensor, (0, width - tensor.shape[1]), value=value)

        return TargetSplit(
            name=name,
            tokens=torch.cat([filled(split.tokens, self.pad_token) for split in splits]),
            targets=torch.cat([filled(split.targets, IGNORED) for split in splits]),
        )

    @cached_property
    def record(self) -> dict[str, Any]:
        """What the manifest says about the examples, fit for JSON.

        `name`, `fingerprint`, `config`, and `splits` with, for each, `n`, `n_distinct`, `n_exist`
        (sequences of that length; None from 2**63 on), `left_out_of_batches` (see `leaves_out`)
        and `sha`.
        """
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "config": self.config.model_dump(mode="json", exclude={"stop_at"}),
            "splits": {
                f"length_{length}": self._counts(length)
                for length in (*self.train_lengths, *self.heldout_lengths)
            },
        }

    def _split(self, length: int) -> TargetSplit:
        name = f"length_{length}"
        integers = draw_distinct(
            self.n_per_length,
            length=length,
            n_integers=self.n_integers,
            stream=numpy_stream(self.seed, "task", name),
        )
        return self.examples(torch.from_numpy(integers), name=name)

    def _counts(self, length: int) -> dict[str, Any]:
        split, n_exist = self.splits[f"length_{length}"], self.n_integers**length
        return {
            "n": split.n,
            "n_distinct": len(torch.unique(split.tokens, dim=0)),
            "n_exist": n_exist if n_exist < 2**63 else None,
            "left_out_of_batches": self.leaves_out(length),
            "sha": split.sha,
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SequenceTask):
            return NotImplemented
        return self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: splits are drawn again from the seed rather than copied."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, eq=False, kw_only=True)
class SequenceReversal(SequenceTask):
    """The integers in reverse order; see `SequenceTask`."""

    operation: Literal["reversal", "sorting"] = field(default="reversal", init=False)


@dataclass(frozen=True, eq=False, kw_only=True)
class SequenceSorting(SequenceTask):
    """The integers in ascending order, repeats kept; see `SequenceTask`."""

    operation: Literal["reversal", "sorting"] = field(default="sorting", init=False)


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
