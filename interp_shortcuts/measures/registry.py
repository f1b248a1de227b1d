"""The measures of this package, by name. A new measure is one file and one line here."""

from __future__ import annotations

from interp_shortcuts.measures.attention import Attention
from interp_shortcuts.measures.base import Measure
from interp_shortcuts.measures.behaviour import Behaviour
from interp_shortcuts.measures.ov import OVSpearman
from interp_shortcuts.measures.ov_fraction import OVClassFraction
from interp_shortcuts.measures.qk import QKSpearman

REGISTRY: dict[str, type[Measure]] = {
    measure.name: measure
    for measure in (Behaviour, QKSpearman, Attention, OVSpearman, OVClassFraction)
}


def default_measures() -> tuple[Measure, ...]:
    """What a tracker measures unless told otherwise: every registered measure, as it comes."""
    return tuple(measure() for measure in REGISTRY.values())
