"""The measures of this package, by name. A new measure is one file and one line here."""

from __future__ import annotations

from interp_shortcuts.measures.ablation import Ablation
from interp_shortcuts.measures.attention import Attention
from interp_shortcuts.measures.attribution.gradient_measures import (
    ActivationGradient,
    GradientNorm,
    WeightGradient,
)
from interp_shortcuts.measures.attribution.importance import ComponentImportance
from interp_shortcuts.measures.attribution.integrated_gradients import IntegratedGradients
from interp_shortcuts.measures.attribution.interaction import ComponentInteraction
from interp_shortcuts.measures.attribution.joint import JointImportance
from interp_shortcuts.measures.attribution.pruning import RolePruning
from interp_shortcuts.measures.attribution.shapley import ShapleyImportance
from interp_shortcuts.measures.base import Measure
from interp_shortcuts.measures.behaviour import Behaviour
from interp_shortcuts.measures.gradients import GradientConflict
from interp_shortcuts.measures.ov import OVSpearman
from interp_shortcuts.measures.ov_ablation import OVAblation
from interp_shortcuts.measures.ov_fraction import OVClassFraction
from interp_shortcuts.measures.patching import CrossSplitPatching
from interp_shortcuts.measures.qk import QKSpearman
from interp_shortcuts.measures.qk_ablation import QKAblation
from interp_shortcuts.measures.saturation import Saturation
from interp_shortcuts.tasks.base import AnswerTask, Task

REGISTRY: dict[str, type[Measure]] = {
    measure.name: measure
    for measure in (
        Behaviour,
        QKSpearman,
        Attention,
        OVSpearman,
        OVClassFraction,
        Ablation,
        QKAblation,
        OVAblation,
        CrossSplitPatching,
        GradientConflict,
        Saturation,
        GradientNorm,
        WeightGradient,
        ActivationGradient,
        IntegratedGradients,
        ComponentImportance,
        JointImportance,
        RolePruning,
        ShapleyImportance,
        ComponentInteraction,
    )
}


def default_measures(task: Task | None = None) -> tuple[Measure, ...]:
    """What a tracker measures unless told otherwise: what fits the task, as it comes.

    Left out are measures that ask for hundreds of passes (`shapley`, `component_interaction`), and
    `joint_importance`, whose sets are the user's.

    Args:
        task: The task; without one, a task whose answer is one class.
    """
    return tuple(
        kind()
        for kind in REGISTRY.values()
        if kind.by_default and (kind.asks is AnswerTask if task is None else kind.fits(task))
    )
