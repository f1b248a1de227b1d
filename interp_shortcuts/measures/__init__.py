"""Measures: pure functions of a model and a task's splits, giving labelled arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from interp_shortcuts.measures.ablation import Ablation as Ablation
    from interp_shortcuts.measures.ablation import HeadAblation as HeadAblation
    from interp_shortcuts.measures.attention import Attention as Attention
    from interp_shortcuts.measures.attribution.gradient_measures import (
        ActivationGradient as ActivationGradient,
    )
    from interp_shortcuts.measures.attribution.gradient_measures import GradientNorm as GradientNorm
    from interp_shortcuts.measures.attribution.gradient_measures import (
        WeightGradient as WeightGradient,
    )
    from interp_shortcuts.measures.attribution.importance import (
        ComponentImportance as ComponentImportance,
    )
    from interp_shortcuts.measures.attribution.integrated_gradients import (
        IntegratedGradients as IntegratedGradients,
    )
    from interp_shortcuts.measures.attribution.interaction import (
        ComponentInteraction as ComponentInteraction,
    )
    from interp_shortcuts.measures.attribution.joint import JointImportance as JointImportance
    from interp_shortcuts.measures.attribution.model_gap import AttributionGap as AttributionGap
    from interp_shortcuts.measures.attribution.shapley import ShapleyImportance as ShapleyImportance
    from interp_shortcuts.measures.base import Measure as Measure
    from interp_shortcuts.measures.base import WeightsMeasure as WeightsMeasure
    from interp_shortcuts.measures.behaviour import Behaviour as Behaviour
    from interp_shortcuts.measures.gradients import GradientConflict as GradientConflict
    from interp_shortcuts.measures.modular.frequency_filter import (
        FrequencyFilterAccuracy as FrequencyFilterAccuracy,
    )
    from interp_shortcuts.measures.modular.noise_groups import NoiseGroups as NoiseGroups
    from interp_shortcuts.measures.modular.partition import PartitionAccuracy as PartitionAccuracy
    from interp_shortcuts.measures.modular.spectra import NeuronSpectra as NeuronSpectra
    from interp_shortcuts.measures.modular.unembedding_filter import (
        UnembeddingFilter as UnembeddingFilter,
    )
    from interp_shortcuts.measures.observation import Observation as Observation
    from interp_shortcuts.measures.ov import OVSpearman as OVSpearman
    from interp_shortcuts.measures.ov_ablation import OVAblation as OVAblation
    from interp_shortcuts.measures.ov_fraction import OVClassFraction as OVClassFraction
    from interp_shortcuts.measures.patching import CrossSplitPatching as CrossSplitPatching
    from interp_shortcuts.measures.qk import QKSpearman as QKSpearman
    from interp_shortcuts.measures.qk_ablation import QKAblation as QKAblation
    from interp_shortcuts.measures.registry import REGISTRY as REGISTRY
    from interp_shortcuts.measures.registry import default_measures as default_measures
    from interp_shortcuts.measures.saturation import Saturation as Saturation

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "Ablation": ".ablation",
        "ActivationGradient": ".attribution.gradient_measures",
        "Attention": ".attention",
        "AttributionGap": ".attribution.model_gap",
        "Behaviour": ".behaviour",
        "ComponentImportance": ".attribution.importance",
        "ComponentInteraction": ".attribution.interaction",
        "CrossSplitPatching": ".patching",
        "FrequencyFilterAccuracy": ".modular.frequency_filter",
        "GradientConflict": ".gradients",
        "GradientNorm": ".attribution.gradient_measures",
        "HeadAblation": ".ablation",
        "IntegratedGradients": ".attribution.integrated_gradients",
        "JointImportance": ".attribution.joint",
        "Measure": ".base",
        "NeuronSpectra": ".modular.spectra",
        "NoiseGroups": ".modular.noise_groups",
        "OVAblation": ".ov_ablation",
        "OVClassFraction": ".ov_fraction",
        "OVSpearman": ".ov",
        "Observation": ".observation",
        "PartitionAccuracy": ".modular.partition",
        "QKAblation": ".qk_ablation",
        "QKSpearman": ".qk",
        "REGISTRY": ".registry",
        "Saturation": ".saturation",
        "ShapleyImportance": ".attribution.shapley",
        "UnembeddingFilter": ".modular.unembedding_filter",
        "WeightGradient": ".attribution.gradient_measures",
        "WeightsMeasure": ".base",
        "default_measures": ".registry",
    },
)
