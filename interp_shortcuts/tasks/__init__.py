"""What is learned: rules and shortcuts, sequences, and the splits that are drawn from them.

The names below load on first use; `config`, `features` and `rules` need no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from interp_shortcuts.tasks.base import AnswerTask as AnswerTask
    from interp_shortcuts.tasks.base import Task as Task
    from interp_shortcuts.tasks.base import is_answered as is_answered
    from interp_shortcuts.tasks.config import TaskConfig as TaskConfig
    from interp_shortcuts.tasks.described import task_of as task_of
    from interp_shortcuts.tasks.digits import Digits as Digits
    from interp_shortcuts.tasks.digits_config import DigitsConfig as DigitsConfig
    from interp_shortcuts.tasks.features import FEATURES as FEATURES
    from interp_shortcuts.tasks.features import Feature as Feature
    from interp_shortcuts.tasks.features import feature as feature
    from interp_shortcuts.tasks.image_split import ImageSplit as ImageSplit
    from interp_shortcuts.tasks.modular import ModularArithmetic as ModularArithmetic
    from interp_shortcuts.tasks.modular_config import ModularConfig as ModularConfig
    from interp_shortcuts.tasks.noisy_task import NOISE_GROUPS as NOISE_GROUPS
    from interp_shortcuts.tasks.noisy_task import NoisyTask as NoisyTask
    from interp_shortcuts.tasks.noisy_task import is_noisy_task as is_noisy_task
    from interp_shortcuts.tasks.ood_length import OOD_RANGE as OOD_RANGE
    from interp_shortcuts.tasks.ood_length import choose_ood_length as choose_ood_length
    from interp_shortcuts.tasks.pair_split import PairSplit as PairSplit
    from interp_shortcuts.tasks.rules import RULES as RULES
    from interp_shortcuts.tasks.rules import TaskRule as TaskRule
    from interp_shortcuts.tasks.rules import register_rule as register_rule
    from interp_shortcuts.tasks.rules import rule as rule
    from interp_shortcuts.tasks.sequence_config import SequenceConfig as SequenceConfig
    from interp_shortcuts.tasks.sequences import SequenceReversal as SequenceReversal
    from interp_shortcuts.tasks.sequences import SequenceSorting as SequenceSorting
    from interp_shortcuts.tasks.sequences import SequenceTask as SequenceTask
    from interp_shortcuts.tasks.split import Split as Split
    from interp_shortcuts.tasks.target_scores import exact_match as exact_match
    from interp_shortcuts.tasks.target_scores import token_loss as token_loss
    from interp_shortcuts.tasks.target_split import IGNORED as IGNORED
    from interp_shortcuts.tasks.target_split import TargetSplit as TargetSplit
    from interp_shortcuts.tasks.task import ShortcutTask as ShortcutTask

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "FEATURES": ".features",
        "IGNORED": ".target_split",
        "OOD_RANGE": ".ood_length",
        "RULES": ".rules",
        "AnswerTask": ".base",
        "Feature": ".features",
        "SequenceConfig": ".sequence_config",
        "SequenceReversal": ".sequences",
        "SequenceSorting": ".sequences",
        "SequenceTask": ".sequences",
        "ShortcutTask": ".task",
        "Split": ".split",
        "TargetSplit": ".target_split",
        "Task": ".base",
        "TaskConfig": ".config",
        "TaskRule": ".rules",
        "choose_ood_length": ".ood_length",
        "exact_match": ".target_scores",
        "feature": ".features",
        "is_answered": ".base",
        "register_rule": ".rules",
        "rule": ".rules",
        "task_of": ".described",
        "token_loss": ".target_scores",
        "Digits": ".digits",
        "DigitsConfig": ".digits_config",
        "ImageSplit": ".image_split",
        "NOISE_GROUPS": ".noisy_task",
        "NoisyTask": ".noisy_task",
        "is_noisy_task": ".noisy_task",
        "ModularArithmetic": ".modular",
        "ModularConfig": ".modular_config",
        "PairSplit": ".pair_split",
    },
)
