"""`ShortcutTask`: a rule, a shortcut for it, a vocabulary, and the splits drawn from them.

It owns what counts as loss and as correct, and turns sequences into tokens. Which sequences go
where is in `sampling.py`, the built-in rules are in `rules.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from pydantic import ValidationError
from torch import Tensor

from interp_shortcuts.canonical import short_hash
from interp_shortcuts.errors import ConfigError, TaskError
from interp_shortcuts.streams import numpy_stream
from interp_shortcuts.tasks.any_config import AnyTaskConfig
from interp_shortcuts.tasks.config import TaskConfig
from interp_shortcuts.tasks.features import Feature, feature
from interp_shortcuts.tasks.record import describe
from interp_shortcuts.tasks.rules import RuleFunction, TaskRule
from interp_shortcuts.tasks.rules import rule as registered_rule
from interp_shortcuts.tasks.sampling import Drawn, Group, draw_groups
from interp_shortcuts.tasks.split import Split

if TYPE_CHECKING:  # type checkers do not match a cached property with a protocol's property
    cached_property = property
else:
    from functools import cached_property

_SIZES: tuple[str, ...] = (
    "n_classes",
    "length",
    "n_integers",
    "ratio",
    "n_train",
    "n_validation",
    "n_adversarial",
)
_FIELD_OF = {"rule": "name", "data_seed": "seed"}


@dataclass(frozen=True, eq=False)
class ShortcutTask:
    """Sequences of integers whose true label a shortcut gives for a fraction r of the training.

    An example is n integers from 0 to V-1 and then `"="` (token V), where the answer is read.
    Your own task is two functions and no subclass:

        ShortcutTask(
            label=lambda integers: integers.sum(axis=1) % 2,
            shortcut=lambda integers: integers[:, -1] % 2,
            name="last_parity",
        )

    The splits depend on the fields alone. Each group of sequences has random streams of its own:
    the training split does not depend on `n_validation` and `n_adversarial`. The evaluation
    splits do not depend on `n_train` and `ratio` where the space is enumerated (at most 2**20
    sequences); in larger ones they differ only where a sequence that training took is replaced.
    Within a split all sequences are distinct; between splits too, unless `record` says why not.
    Labels are not balanced by force: sequences are uniform within a group, and `record` counts.

    Two tasks are equal when they have the same `fingerprint`.

    Attributes:
        label: True labels; takes an int64 NumPy array [example position] of the integers
            (without `"="`), returns an integer NumPy array [example] of labels 0 to C-1.
        shortcut: The same for the shortcut's labels.
        n_classes: Number C of classes.
        length: Number n of integers in a sequence.
        n_integers: Number V of integers.
        ratio: Spurious ratio r, a fraction in [0, 1].
        n_train: Number of training examples, of which round(r * n_train) are consistent.
        n_validation: Number of validation examples, all consistent.
        n_adversarial: Number of adversarial examples, none consistent.
        seed: Seed of the examples.
        name: Name of the rule.

    Raises:
        TaskError: If a size is out of its range, or a function breaks the rules above.
    """

    label: RuleFunction = field(repr=False)
    shortcut: RuleFunction = field(repr=False)
    _: KW_ONLY
    n_classes: int = 2
    length: int = 4
    n_integers: int = 10
    ratio: float | int = 0.9  # 1 and 0 are natural here; kept as a float
    n_train: int = 2048
    n_validation: int = 1024
    n_adversarial: int = 1024
    seed: int = 0
    name: str = "custom"

    def __post_init__(self) -> None:
        for name in ("n_classes", "seed"):
            if getattr(self, name) is None:
                raise TaskError(f"`{name}` should be a valid integer; got None.")
        try:
            sizes = TaskConfig(
                **{name: getattr(self, name) for name in _SIZES},
                rule=self.name,
                data_seed=self.seed,
            )
        except ValidationError as error:
            raise TaskError(_faults(error)) from None
        for name in _SIZES:
            object.__setattr__(self, name, getattr(sizes, name))
        object.__setattr__(self, "seed", sizes.data_seed)
        self.rule.check(self.length, self.n_integers)

    @classmethod
    def named(cls, rule: str | TaskRule, **sizes: Any) -> ShortcutTask:
        """The task of a rule.

        Args:
            rule: A rule, or the name of a registered one, e.g. `"max_parity"`.
            sizes: Any other fields: `length`, `n_integers`, `ratio`, `n_train`, `n_validation`,
                `n_adversarial`, `seed`.

        Raises:
            ConfigError: If no rule of that name is registered.
            TaskError: If a size is out of its range, is the rule's own, or is no field.
        """
        known = registered_rule(rule) if isinstance(rule, str) else rule
        for name in sizes:
            if name in ("n_classes", "name", "label", "shortcut"):
                raise TaskError(
                    f"`{name}` belongs to the rule {known.name!r} and cannot be given with it; "
                    "leave it out, or make a task of your own with `ShortcutTask(...)`."
                )
            if name != "seed" and name not in _SIZES:
                choices = [*(size for size in _SIZES if size != "n_classes"), "seed"]
                raise TaskError(f"`{name}` is no field; choose from: {', '.join(choices)}.")
        return cls(known.label, known.shortcut, n_classes=known.n_classes, name=known.name, **sizes)

    @classmethod
    def from_config(
        cls, config: AnyTaskConfig, *, seed: int, rule: TaskRule | None = None
    ) -> ShortcutTask:
        """The task that a config describes.

        Args:
            config: The config, e.g. of a run.
            seed: Seed of the examples, unless the config has a `data_seed`.
            rule: The rule, if the config names one that is not registered.

        Raises:
            ConfigError: If the config's rule is not registered and none is given, or the config is
                that of another kind of task.
            TaskError: If the rule is not the one that the config was made with.
        """
        if not isinstance(config, TaskConfig):
            raise ConfigError(f"`config` must be that of a shortcut task; got {config.label}.")
        known = registered_rule(config.rule) if rule is None else rule
        if known.name != config.rule:
            raise TaskError(
                f"The rule must be the config's: `rule` is {config.rule!r} in the config; got a "
                f"rule named {known.name!r}."
            )
        if config.n_classes not in (None, known.n_classes):
            raise TaskError(
                f"The rule {known.name!r} has {known.n_classes} classes; the config says "
                f"`n_classes` = {config.n_classes}."
            )
        task = cls.named(
            known,
            **config.model_dump(include=set(_SIZES) - {"n_classes"}),
            seed=seed if config.data_seed is None else config.data_seed,
        )
        if config.rule_fingerprint not in (None, task.rule_fingerprint):
            raise TaskError(
                f"The rule {known.name!r} does not behave as it did when the config was written: "
                f"its fingerprint is {task.rule_fingerprint}, the config says "
                f"{config.rule_fingerprint}. Pass the functions that the run was made with, or "
                "give the changed rule a new name."
            )
        return task

    @property
    def rule(self) -> TaskRule:
        """The two functions as a rule."""
        return TaskRule(
            self.name, label=self.label, shortcut=self.shortcut, n_classes=self.n_classes
        )

    @cached_property
    def rule_fingerprint(self) -> str:
        """What the functions do, hashed (16 hex digits)."""
        return self.rule.fingerprint(self.length, self.n_integers)

    @cached_property
    def config(self) -> TaskConfig:
        """The written-down form, complete: seed, classes and rule fingerprint are filled in."""
        return TaskConfig(
            **{name: getattr(self, name) for name in _SIZES},
            rule=self.name,
            data_seed=self.seed,
            rule_fingerprint=self.rule_fingerprint,
        )

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that determines the splits (16 hex digits)."""
        return short_hash(self.config)

    @property
    def n_tokens(self) -> int:
        """Size of the vocabulary, V + 1."""
        return self.n_integers + 1

    @property
    def equals_token(self) -> int:
        """The token `"="`, V."""
        return self.n_integers

    @property
    def context(self) -> int:
        """Number of tokens in an example, n + 1."""
        return self.length + 1

    @property
    def read_position(self) -> int:
        """The position of `"="`, n, whose logits are the answer."""
        return self.length

    @property
    def chance(self) -> float:
        """Accuracy of guessing uniformly, 1 / C."""
        return 1 / self.n_classes

    @property
    def label_feature(self) -> Feature:
        """The residue mod C of an integer (its parity if C = 2), which the built-in rules add up.

        For a rule of your own that is not a sum, give the measures a feature of your own.
        """
        return feature("parity" if self.n_classes == 2 else f"residue_{self.n_classes}")

    @cached_property
    def _drawn(self) -> dict[str, Drawn]:
        n_consistent = round(self.ratio * self.n_train)
        groups = (
            Group("consistent", n_consistent, self.n_validation, evaluation="validation"),
            Group(
                "anti", self.n_train - n_consistent, self.n_adversarial, evaluation="adversarial"
            ),
        )
        return draw_groups(
            self.rule, groups, length=self.length, n_integers=self.n_integers, seed=self.seed
        )

    @cached_property
    def splits(self) -> Mapping[str, Split]:
        """The splits by name: train, its consistent and anti parts, validation, adversarial.

        Raises:
            TaskError: If a split asks for more distinct sequences than exist.
        """
        consistent, anti = self._drawn["consistent"], self._drawn["anti"]
        pooled = np.concatenate([consistent.train, anti.train])
        order = numpy_stream(self.seed, "task", "train", "order").permutation(len(pooled))
        train = self._split("train", pooled[order])
        return MappingProxyType(
            {
                "train": train,
                "consistent": train.take(torch.nonzero(train.consistent)[:, 0], name="consistent"),
                "anti": train.take(torch.nonzero(~train.consistent)[:, 0], name="anti"),
                "validation": self._split("validation", consistent.evaluation),
                "adversarial": self._split("adversarial", anti.evaluation),
            }
        )

    def split(self, name: str) -> Split:
        """The split of that name.

        Raises:
            TaskError: If there is none.
        """
        if name not in self.splits:
            raise TaskError(
                f"`split` must be one of {', '.join(map(repr, self.splits))}; got {name!r}."
            )
        return self.splits[name]

    def _split(self, name: str, integers: Int[np.ndarray, "example position"]) -> Split:
        tokens = np.full((len(integers), self.context), self.equals_token, dtype=np.int64)
        tokens[:, :-1] = integers
        return Split(
            name=name,
            tokens=torch.from_numpy(tokens),
            labels=torch.from_numpy(self.rule.label_of(integers)),
            shortcut_labels=torch.from_numpy(self.rule.shortcut_of(integers)),
        )

    @cached_property
    def record(self) -> dict[str, Any]:
        """What the manifest says about the examples, fit for JSON.

        The fields are those of `record.describe`, and `name`, `fingerprint`, `config`,
        `n_sequences` (V^n; None from 2**63 on).
        """
        n_sequences = self.n_integers**self.length
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "config": self.config.model_dump(mode="json"),
            "n_sequences": n_sequences if n_sequences < 2**63 else None,
            **describe(self.splits, self._drawn, n_classes=self.n_classes),
        }

    def loss(
        self, logits: Float[Tensor, "example class"], labels: Int[Tensor, " example"]
    ) -> Float[Tensor, " example"]:
        """Cross-entropy of each example, in nats, in float32 at least."""
        self._check_classes(logits)
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return torch.nn.functional.cross_entropy(wide, labels, reduction="none")

    def predictions(self, logits: Float[Tensor, "example class"]) -> Int[Tensor, " example"]:
        """The class with the largest logit; among equals, the lowest class."""
        self._check_classes(logits)
        return logits.argmax(dim=-1)

    def correct(
        self, logits: Float[Tensor, "example class"], labels: Int[Tensor, " example"]
    ) -> Bool[Tensor, " example"]:
        """Whether the prediction of each example is its label."""
        return self.predictions(logits) == labels

    def _check_classes(self, logits: Tensor) -> None:
        if logits.ndim != 2 or logits.shape[-1] != self.n_classes:
            raise TaskError(
                f"`logits` must have shape [example class] with {self.n_classes} classes (the "
                f"logits at the read position); got {tuple(logits.shape)}."
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShortcutTask):
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
        name = str(fault["loc"][0])
        rule = fault["msg"].removeprefix("Input ").removeprefix("String ")
        sentences.append(f"`{_FIELD_OF.get(name, name)}` {rule}; got {fault['input']!r}.")
    return " ".join(sentences)
