"""Measures: pure functions of a model and a task's splits, giving labelled arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from interp_shortcuts.measures.attention import Attention as Attention
    from interp_shortcuts.measures.base import Measure as Measure
    from interp_shortcuts.measures.base import WeightsMeasure as WeightsMeasure
    from interp_shortcuts.measures.behaviour import Behaviour as Behaviour
    from interp_shortcuts.measures.observation import Observation as Observation
    from interp_shortcuts.measures.ov import OVSpearman as OVSpearman
    from interp_shortcuts.measures.ov_fraction import OVClassFraction as OVClassFraction
    from interp_shortcuts.measures.qk import QKSpearman as QKSpearman
    from interp_shortcuts.measures.registry import REGISTRY as REGISTRY
    from interp_shortcuts.measures.registry import default_measures as default_measures

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "REGISTRY": ".registry",
        "Attention": ".attention",
        "Behaviour": ".behaviour",
        "Measure": ".base",
        "OVClassFraction": ".ov_fraction",
        "OVSpearman": ".ov",
        "Observation": ".observation",
        "QKSpearman": ".qk",
        "WeightsMeasure": ".base",
        "default_measures": ".registry",
    },
)
