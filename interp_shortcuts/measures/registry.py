"""The measures of this package, by name. A new measure is one file and one line here."""

from __future__ import annotations

from interp_shortcuts.measures.ablation import Ablation
from interp_shortcuts.measures.attention import Attention
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
    )
}


def default_measures() -> tuple[Measure, ...]:
    """What a tracker measures unless told otherwise: every registered measure, as it comes."""
    return tuple(measure() for measure in REGISTRY.values())
