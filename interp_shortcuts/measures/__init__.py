"""Measures: pure functions of a model and a task's splits, giving labelled arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from interp_shortcuts.measures.ablation import Ablation as Ablation
    from interp_shortcuts.measures.ablation import HeadAblation as HeadAblation
    from interp_shortcuts.measures.attention import Attention as Attention
    from interp_shortcuts.measures.base import Measure as Measure
    from interp_shortcuts.measures.base import WeightsMeasure as WeightsMeasure
    from interp_shortcuts.measures.behaviour import Behaviour as Behaviour
    from interp_shortcuts.measures.gradients import GradientConflict as GradientConflict
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
        "Attention": ".attention",
        "Behaviour": ".behaviour",
        "CrossSplitPatching": ".patching",
        "GradientConflict": ".gradients",
        "HeadAblation": ".ablation",
        "Measure": ".base",
        "OVAblation": ".ov_ablation",
        "OVClassFraction": ".ov_fraction",
        "OVSpearman": ".ov",
        "Observation": ".observation",
        "QKAblation": ".qk_ablation",
        "QKSpearman": ".qk",
        "REGISTRY": ".registry",
        "Saturation": ".saturation",
        "WeightsMeasure": ".base",
        "default_measures": ".registry",
    },
)
