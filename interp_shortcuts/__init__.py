"""How a network moves from a shortcut circuit to a robust one while it trains.

The names below load on first use, so that `import interp_shortcuts` costs no torch and no
TransformerLens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from interp_shortcuts import presets as presets
    from interp_shortcuts.interventions import Ablate as Ablate
    from interp_shortcuts.interventions import AblateOV as AblateOV
    from interp_shortcuts.interventions import AblateQK as AblateQK
    from interp_shortcuts.interventions import Patch as Patch
    from interp_shortcuts.interventions import applied as applied
    from interp_shortcuts.measures import Ablation as Ablation
    from interp_shortcuts.measures import ActivationGradient as ActivationGradient
    from interp_shortcuts.measures import Attention as Attention
    from interp_shortcuts.measures import AttributionGap as AttributionGap
    from interp_shortcuts.measures import Behaviour as Behaviour
    from interp_shortcuts.measures import ComponentImportance as ComponentImportance
    from interp_shortcuts.measures import ComponentInteraction as ComponentInteraction
    from interp_shortcuts.measures import CrossSplitPatching as CrossSplitPatching
    from interp_shortcuts.measures import GradientConflict as GradientConflict
    from interp_shortcuts.measures import GradientNorm as GradientNorm
    from interp_shortcuts.measures import HeadAblation as HeadAblation
    from interp_shortcuts.measures import IntegratedGradients as IntegratedGradients
    from interp_shortcuts.measures import JointImportance as JointImportance
    from interp_shortcuts.measures import Measure as Measure
    from interp_shortcuts.measures import OVAblation as OVAblation
    from interp_shortcuts.measures import OVClassFraction as OVClassFraction
    from interp_shortcuts.measures import OVSpearman as OVSpearman
    from interp_shortcuts.measures import QKAblation as QKAblation
    from interp_shortcuts.measures import QKSpearman as QKSpearman
    from interp_shortcuts.measures import Saturation as Saturation
    from interp_shortcuts.measures import ShapleyImportance as ShapleyImportance
    from interp_shortcuts.measures import WeightGradient as WeightGradient
    from interp_shortcuts.models import Architecture as Architecture
    from interp_shortcuts.models import Component as Component
    from interp_shortcuts.models import ModelSpec as ModelSpec
    from interp_shortcuts.models.build import build as build
    from interp_shortcuts.runs import Run as Run
    from interp_shortcuts.runs import RunConfig as RunConfig
    from interp_shortcuts.runs import Trajectory as Trajectory
    from interp_shortcuts.tasks import Feature as Feature
    from interp_shortcuts.tasks import SequenceReversal as SequenceReversal
    from interp_shortcuts.tasks import SequenceSorting as SequenceSorting
    from interp_shortcuts.tasks import SequenceTask as SequenceTask
    from interp_shortcuts.tasks import ShortcutTask as ShortcutTask
    from interp_shortcuts.tasks import Split as Split
    from interp_shortcuts.tasks import TargetSplit as TargetSplit
    from interp_shortcuts.timelines import CircuitTracker as CircuitTracker
    from interp_shortcuts.timelines import PhaseRules as PhaseRules
    from interp_shortcuts.timelines import Phases as Phases
    from interp_shortcuts.timelines import Timeline as Timeline
    from interp_shortcuts.training import train as train

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "Ablate": ".interventions",
        "AblateOV": ".interventions",
        "AblateQK": ".interventions",
        "Ablation": ".measures",
        "ActivationGradient": ".measures",
        "Architecture": ".models",
        "Attention": ".measures",
        "AttributionGap": ".measures",
        "Behaviour": ".measures",
        "CircuitTracker": ".timelines",
        "Component": ".models",
        "ComponentImportance": ".measures",
        "ComponentInteraction": ".measures",
        "CrossSplitPatching": ".measures",
        "Feature": ".tasks",
        "GradientConflict": ".measures",
        "GradientNorm": ".measures",
        "HeadAblation": ".measures",
        "IntegratedGradients": ".measures",
        "JointImportance": ".measures",
        "Measure": ".measures",
        "ModelSpec": ".models",
        "OVAblation": ".measures",
        "OVClassFraction": ".measures",
        "OVSpearman": ".measures",
        "Patch": ".interventions",
        "PhaseRules": ".timelines",
        "Phases": ".timelines",
        "QKAblation": ".measures",
        "QKSpearman": ".measures",
        "Run": ".runs",
        "RunConfig": ".runs",
        "Saturation": ".measures",
        "SequenceReversal": ".tasks",
        "SequenceSorting": ".tasks",
        "SequenceTask": ".tasks",
        "ShapleyImportance": ".measures",
        "ShortcutTask": ".tasks",
        "Split": ".tasks",
        "TargetSplit": ".tasks",
        "Timeline": ".timelines",
        "Trajectory": ".runs",
        "WeightGradient": ".measures",
        "applied": ".interventions",
        "build": ".models.build",
        "presets": ".presets:",
        "train": ".training",
    },
)
