"""Runs as they lie on disk: configs, run folders, checkpoints and trajectories.

Training writes them; measures and timelines read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from interp_shortcuts.runs.checkpoint import load_checkpoint as load_checkpoint
    from interp_shortcuts.runs.checkpoint import save_checkpoint as save_checkpoint
    from interp_shortcuts.runs.config import OptimConfig as OptimConfig
    from interp_shortcuts.runs.config import RunConfig as RunConfig
    from interp_shortcuts.runs.run import Run as Run
    from interp_shortcuts.runs.schedule import ScheduleConfig as ScheduleConfig
    from interp_shortcuts.runs.schedule import evaluation_steps as evaluation_steps
    from interp_shortcuts.runs.schedule import kept_steps as kept_steps
    from interp_shortcuts.runs.trajectory import Trajectory as Trajectory

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "OptimConfig": ".config",
        "Run": ".run",
        "RunConfig": ".config",
        "ScheduleConfig": ".schedule",
        "Trajectory": ".trajectory",
        "evaluation_steps": ".schedule",
        "kept_steps": ".schedule",
        "load_checkpoint": ".checkpoint",
        "save_checkpoint": ".checkpoint",
    },
)
