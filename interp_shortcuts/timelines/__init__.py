"""Timelines: the measures of a trajectory over steps, and the events and outcome read from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from .attribution_gap import AttributionGap as AttributionGap
    from .attribution_gap import find_gap as find_gap
    from .carriers import CarrierVerdict as CarrierVerdict
    from .circuit_events import CircuitEvent as CircuitEvent
    from .events import Event as Event
    from .from_curves import run_phases as run_phases
    from .gap_over_seeds import GapOverSeeds as GapOverSeeds
    from .gap_over_seeds import gaps_over_seeds as gaps_over_seeds
    from .handover import HandoverEntry as HandoverEntry
    from .hidden_progress import HiddenProgress as HiddenProgress
    from .hidden_progress import find_hidden_progress as find_hidden_progress
    from .over_seeds import handover_table as handover_table
    from .over_seeds import lag_summary as lag_summary
    from .phase_rules import PhaseRules as PhaseRules
    from .phases import OUTCOMES as OUTCOMES
    from .phases import Phases as Phases
    from .phases import find_phases as find_phases
    from .timeline import Timeline as Timeline
    from .tracker import CircuitTracker as CircuitTracker

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "AttributionGap": ".attribution_gap",
        "CarrierVerdict": ".carriers",
        "CircuitEvent": ".circuit_events",
        "CircuitTracker": ".tracker",
        "Event": ".events",
        "GapOverSeeds": ".gap_over_seeds",
        "HandoverEntry": ".handover",
        "HiddenProgress": ".hidden_progress",
        "OUTCOMES": ".phases",
        "PhaseRules": ".phase_rules",
        "Phases": ".phases",
        "Timeline": ".timeline",
        "find_gap": ".attribution_gap",
        "find_hidden_progress": ".hidden_progress",
        "find_phases": ".phases",
        "gaps_over_seeds": ".gap_over_seeds",
        "handover_table": ".over_seeds",
        "lag_summary": ".over_seeds",
        "run_phases": ".from_curves",
    },
)
