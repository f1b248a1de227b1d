"""One model at one step, seen through a task: what all measures read from.

It holds what several measures need (stacked weights, one forward pass a split), so that it is
computed once. Nothing of the model is changed. What is made of the readings is left to measures.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.interventions.references import References
from interp_shortcuts.models.any_model import answer_logits, misfit, own_model, spec_of
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.models.clean import CleanPasses
from interp_shortcuts.models.forward import Reading, read_attention, read_clean
from interp_shortcuts.models.hooks import has_hooks
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.staged import StagedModel, row_of
from interp_shortcuts.models.two_layer import TwoLayerNet
from interp_shortcuts.models.weights import Weights
from interp_shortcuts.tasks.base import AnswerTask, Task, is_answered
from interp_shortcuts.tasks.noisy_task import NoisyTask, is_noisy_task, rows_of_train
from interp_shortcuts.tasks.split import rows_in_train
from interp_shortcuts.tasks.target_task import TargetTask, is_target_task


def require_fit(spec: AnySpec, task: Task) -> None:
    """Checks that a model of this spec can be asked about this task.

    Raises:
        MeasureError: If a size does not fit; names the rule and both values.
    """
    fault = misfit(spec, task)
    if fault is not None:
        raise MeasureError(fault)


def require_answer(task: Task) -> AnswerTask:
    """The task, once it is known to have its answer at one position.

    Raises:
        MeasureError: If it is another kind of task.
    """
    if not is_answered(task):
        raise MeasureError(
            "the measure needs a task whose answer is one class, read at one position (an "
            f"AnswerTask); {task.name!r} is a {type(task).__name__}."
        )
    return task


def require_targets(task: Task) -> TargetTask:
    """The task, once it is known to have sequences as answers.

    Raises:
        MeasureError: If it is another kind of task.
    """
    if not is_target_task(task):
        raise MeasureError(
            "the measure needs a task whose answer is a sequence of tokens (a TargetTask); "
            f"{task.name!r} is a {type(task).__name__}."
        )
    return task


def require_noise(task: Task) -> NoisyTask:
    """The task, once it is known to have wrong training labels.

    Raises:
        MeasureError: If it is another kind of task.
    """
    if not is_noisy_task(task):
        raise MeasureError(
            "the measure needs a task with wrong training labels (a NoisyTask); "
            f"{task.name!r} is a {type(task).__name__}."
        )
    return task


@dataclass
class Observation:
    """A model and a task at one step.

    Attributes:
        model: A `HookedTransformer` or a `TwoLayerNet`; of a compiled one the eager module is used.
        task: The task whose splits are asked.
        step: Training step, if known; it only labels errors.
        any_spec: The model's spec, whichever kind it is.

    Raises:
        MeasureError: If the model does not fit the task or holds a weight that is not finite.
    """

    model: nn.Module
    task: Task
    step: int | None = None
    any_spec: AnySpec = field(init=False, repr=False)
    _weights: Weights | None = field(default=None, init=False, repr=False)
    _readings: dict[str, Reading] = field(default_factory=dict, init=False, repr=False)
    _references: References | None = field(default=None, init=False, repr=False)
    _exact: CleanPasses | None = field(default=None, init=False, repr=False)
    _answers: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False)
    _shared: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self.model = own_model(self.model)
        self.any_spec = spec_of(self.model)
        require_fit(self.any_spec, self.task)
        for name, weight in self.model.named_parameters():
            if not bool(torch.isfinite(weight).all()):
                raise MeasureError(
                    f"weights must be finite; `{name}` holds NaN or infinity"
                    + ("." if self.step is None else f" at step {self.step}.")
                )

    def shared(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What several measures need of this model, made when it is first asked for.

        Args:
            key: Says what it is, with every parameter that it depends on.
            make: Makes it.
        """
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    @property
    def spec(self) -> ModelSpec:
        """The spec of a transformer.

        Raises:
            MeasureError: If the model is none.
        """
        if not isinstance(self.any_spec, ModelSpec):
            raise MeasureError(
                "the measure needs a transformer (a HookedTransformer); the model is a "
                f"{type(self.model).__name__}."
            )
        return self.any_spec

    @property
    def two_layer(self) -> TwoLayerNet:
        """The model, for what is read of a two-layer network.

        Raises:
            MeasureError: If the model is none.
        """
        if not isinstance(self.model, TwoLayerNet):
            raise MeasureError(
                "the measure needs a two-layer network (a TwoLayerNet); the model is a "
                f"{type(self.model).__name__}."
            )
        return self.model

    @property
    def targeting(self) -> TargetTask:
        """The task, for answers that are sequences of tokens.

        Raises:
            MeasureError: If the answers of the task are not.
        """
        return require_targets(self.task)

    @property
    def answering(self) -> AnswerTask:
        """The task, for what is read at one position.

        Raises:
            MeasureError: If the answers of the task are not.
        """
        return require_answer(self.task)

    @property
    def noisy(self) -> NoisyTask:
        """The task, for what is asked of right and wrong labels.

        Raises:
            MeasureError: If the task has no wrong labels.
        """
        return require_noise(self.task)

    @property
    def weights(self) -> Weights:
        """The weights of a transformer as one stacked checkpoint, float64; read once.

        Raises:
            MeasureError: If the model is none.
        """
        if self._weights is None:
            _ = self.spec
            self._weights = Weights.of(self.model)
        return self._weights

    @property
    def references(self) -> References:
        """A transformer without its hooks: the passes and means over examples read so far.

        Raises:
            MeasureError: If the model is none.
        """
        if self._references is None:
            _ = self.spec
            self._references = References(StagedModel.of(self.model))
        return self._references

    def answers(self, split: str) -> Float[Tensor, "example class"]:
        """Logits of every example of a split of a task with wrong labels, whichever the model.

        One forward pass a split; the parts of train are rows of the pass over train. A transformer
        is read at the last position. Hooks that are attached act.

        Raises:
            MeasureError: If the task has no wrong labels.
        """
        if split not in self._answers:
            rows = rows_of_train(self.noisy, split)
            if rows is None:
                inputs = self.noisy.split(split).inputs
                self._answers[split] = answer_logits(self.model, inputs)
            else:
                self._answers[split] = self.answers("train")[rows]
        return self._answers[split]

    def logits(self, split: str) -> Float[Tensor, "example class"]:
        """Logits at the read position ("="), for every example of a split."""
        return self._reading(split).logits

    def exact_logits(
        self, tokens: Int[Tensor, "example position"]
    ) -> Float[Tensor, "example class"]:
        """Logits at the read position computed in float64, on the CPU; hooks do not act.

        For small differences that something is divided by: rounding in float32 moves logits by
        1e-6, which a denominator of 0.5 nats turns into 1e-5 of what is divided.
        """
        if self._exact is None:
            _ = self.spec
            staged = StagedModel.of(self.model, dtype=torch.float64)
            row = row_of(self.answering.read_position, tokens.shape[-1])
            self._exact = CleanPasses(staged, length=tokens.shape[-1], row=row)
        with torch.no_grad(), torch.autocast(tokens.device.type, enabled=False):
            return self._exact.logits(tokens).cpu()

    def attention(self, split: str) -> Float[Tensor, "example layer head position"]:
        """Attention weights from "=" to every position, after the softmax."""
        return self._reading(split).attention

    def scores(self, split: str) -> Float[Tensor, "example layer head position"]:
        """Attention scores from "=" (q . k / sqrt(d_head)), before mask and softmax."""
        return self._reading(split).scores

    def _reading(self, split: str) -> Reading:
        """One forward pass a split; the parts of train are rows of the pass over train."""
        if split not in self._readings:
            rows = rows_in_train(self.answering.splits, split)
            if rows is None:
                self._readings[split] = self._read(self.answering.split(split).tokens)
            else:
                train = self._reading("train")
                self._readings[split] = Reading(
                    logits=train.logits[rows],
                    attention=train.attention[rows],
                    scores=train.scores[rows],
                )
        return self._readings[split]

    def _read(self, tokens: Int[Tensor, "example position"]) -> Reading:
        """The model's own pass where its hooks must act, else the one that measures share."""
        position = self.answering.read_position
        if has_hooks(self.model):
            return read_attention(self.model, tokens, position=position)
        clean = self.references.clean(length=tokens.shape[-1], position=position)
        return read_clean(clean, tokens)
