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
from interp_shortcuts.measures.modular.frequency_filter import FrequencyFilterAccuracy
from interp_shortcuts.measures.modular.noise_groups import NoiseGroups
from interp_shortcuts.measures.modular.partition import PartitionAccuracy
from interp_shortcuts.measures.modular.spectra import NeuronSpectra
from interp_shortcuts.measures.modular.unembedding_filter import UnembeddingFilter
from interp_shortcuts.measures.ov import OVSpearman
from interp_shortcuts.measures.ov_ablation import OVAblation
from interp_shortcuts.measures.ov_fraction import OVClassFraction
from interp_shortcuts.measures.patching import CrossSplitPatching
from interp_shortcuts.measures.qk import QKSpearman
from interp_shortcuts.measures.qk_ablation import QKAblation
from interp_shortcuts.measures.saturation import Saturation
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.tasks.base import AnswerTask, Task
from interp_shortcuts.tasks.noisy_task import is_noisy_task

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
        NoiseGroups,
        FrequencyFilterAccuracy,
        NeuronSpectra,
        PartitionAccuracy,
        UnembeddingFilter,
    )
}


def default_measures(task: Task | None = None, spec: AnySpec | None = None) -> tuple[Measure, ...]:
    """What a tracker measures unless told otherwise: what fits task and model, as it comes.

    Left out are measures that ask for hundreds of passes (`shapley`, `component_interaction`), and
    `joint_importance`, whose sets are the user's.

    Args:
        task: The task; without one, a task whose answer is one class.
        spec: The model; without one, a two-layer network for a task with wrong labels, and a
            transformer for any other.
    """
    usual = TwoLayerSpec if task is not None and is_noisy_task(task) else ModelSpec
    model = usual if spec is None else type(spec)
    return tuple(
        kind()
        for kind in REGISTRY.values()
        if kind.by_default
        and issubclass(model, kind.of_model)
        and (kind.asks is AnswerTask if task is None else kind.fits(task, spec))
    )
