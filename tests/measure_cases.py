"""For every kind of measure a small task and model, and where that model can be touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from interp_shortcuts.measures.base import Measure
from interp_shortcuts.models.any_model import AnyModel, build_any, weights_of_any
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.tasks.base import AnswerTask, Task
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.tasks.sequences import SequenceReversal
from interp_shortcuts.tasks.target_task import TargetTask
from interp_shortcuts.tasks.task import ShortcutTask

TRANSFORMER = ModelSpec(d_model=8, d_mlp=8, d_vocab=11, d_vocab_out=2, n_ctx=5, normalization="LN")


@dataclass(frozen=True, eq=False)
class Case:
    """A task, and a model that fits it.

    Attributes:
        task: The task.
        spec: Spec of the model.
    """

    task: Task
    spec: AnySpec

    def model(self, seed: int = 0, **changes: Any) -> AnyModel:
        """A model of this spec, changed."""
        return build_any(self.spec.model_copy(update=changes), seed=seed)

    def trajectory(self, n: int = 4) -> Trajectory:
        """Models of n seeds as checkpoints at the steps 0, 10, 20, ..."""
        states = [(10 * seed, weights_of_any(self.model(seed))) for seed in range(n)]
        return Trajectory.from_checkpoints(states, spec=self.spec, task=self.task)

    @property
    def is_transformer(self) -> bool:
        """Whether the model is one."""
        return isinstance(self.spec, ModelSpec)

    @property
    def parameter(self) -> str:
        """The name of a parameter that every measure reads, or refuses if it is not finite."""
        return "blocks.1.attn.W_V" if self.is_transformer else "U"

    def late_hook(self, model: Any) -> Any:
        """A hook point that every pass goes through."""
        return model.blocks[1].mlp.hook_post if self.is_transformer else model.hook_post

    def early_hook(self, model: Any) -> Any:
        """A hook point before it."""
        return model.blocks[0].hook_resid_pre if self.is_transformer else model.hook_pre

    def part(self, model: Any) -> nn.Module:
        """A module inside the model, which has a mode of its own."""
        return model.blocks[0].mlp if self.is_transformer else model.hook_pre

    @property
    def misfits(self) -> dict[str, tuple[str, int, str]]:
        """Sizes of the spec: the task's, by how much to miss it, and the verb of the refusal."""
        exact, enough = "must equal", "must be at least"
        if self.is_transformer:
            return {
                "d_vocab": ("n_tokens", -1, enough),
                "n_ctx": ("context", -1, enough),
                "d_vocab_out": ("n_classes", 1, exact),
            }
        return {"n_tokens": ("n_tokens", -1, exact), "n_classes": ("n_classes", 1, exact)}


ANSWERS = Case(
    ShortcutTask.named("max_parity", n_train=60, n_validation=30, n_adversarial=20), TRANSFORMER
)
SEQUENCES = Case(
    SequenceReversal(n_integers=6, train_max=3, heldout_max=4, n_per_length=8),
    TRANSFORMER.model_copy(update={"d_vocab": 11, "d_vocab_out": 11, "n_ctx": 10}),
)
PAIRS = Case(
    ModularArithmetic(modulus=11, noise=0.3), TwoLayerSpec(n_tokens=11, n_classes=11, width=12)
)
PAIRS_TRANSFORMER = Case(
    PAIRS.task, TRANSFORMER.model_copy(update={"d_vocab": 11, "d_vocab_out": 11, "n_ctx": 2})
)
CASES = (ANSWERS, SEQUENCES, PAIRS, PAIRS_TRANSFORMER)


def case_of(measure: Measure) -> Case:
    """The case that a measure is tried on."""
    if measure.asks is AnswerTask:
        return ANSWERS
    if measure.asks is TargetTask:
        return SEQUENCES
    return PAIRS_TRANSFORMER if measure.of_model is ModelSpec else PAIRS
