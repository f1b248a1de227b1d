"""Many runs as one piece of work: a plan of cells and seeds, who trains them, what came of them.

What one run does is `training/`; what a run shows is `timelines/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from interp_shortcuts.sweeps.alignment import Aligned as Aligned
    from interp_shortcuts.sweeps.alignment import align as align
    from interp_shortcuts.sweeps.alignment import open_timelines as open_timelines
    from interp_shortcuts.sweeps.driver import run_sweep as run_sweep
    from interp_shortcuts.sweeps.hidden_cells import HiddenCells as HiddenCells
    from interp_shortcuts.sweeps.hidden_cells import hidden_cells as hidden_cells
    from interp_shortcuts.sweeps.interaction import Interaction as Interaction
    from interp_shortcuts.sweeps.interaction import find_interaction as find_interaction
    from interp_shortcuts.sweeps.interaction import interactions as interactions
    from interp_shortcuts.sweeps.local_engine import LocalEngine as LocalEngine
    from interp_shortcuts.sweeps.plan import Cell as Cell
    from interp_shortcuts.sweeps.plan import Job as Job
    from interp_shortcuts.sweeps.plan import Sweep as Sweep
    from interp_shortcuts.sweeps.quantities import QUANTITIES as QUANTITIES
    from interp_shortcuts.sweeps.quantities import Quantity as Quantity
    from interp_shortcuts.sweeps.rates import chance_distances as chance_distances
    from interp_shortcuts.sweeps.rates import generalisation_rates as generalisation_rates
    from interp_shortcuts.sweeps.ray_engine import RayEngine as RayEngine
    from interp_shortcuts.sweeps.seeds import SeedResult as SeedResult
    from interp_shortcuts.sweeps.seeds import parse_seeds as parse_seeds
    from interp_shortcuts.sweeps.seeds import run_folder_name as run_folder_name
    from interp_shortcuts.sweeps.seeds import train_seeds as train_seeds
    from interp_shortcuts.sweeps.survival import survival_curves as survival_curves
    from interp_shortcuts.sweeps.survival import survival_summary as survival_summary
    from interp_shortcuts.sweeps.table import read_results as read_results
    from interp_shortcuts.sweeps.table import results as results
    from interp_shortcuts.sweeps.table import write_results as write_results

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "QUANTITIES": ".quantities",
        "Aligned": ".alignment",
        "Cell": ".plan",
        "HiddenCells": ".hidden_cells",
        "Interaction": ".interaction",
        "Job": ".plan",
        "LocalEngine": ".local_engine",
        "Quantity": ".quantities",
        "RayEngine": ".ray_engine",
        "SeedResult": ".seeds",
        "Sweep": ".plan",
        "align": ".alignment",
        "chance_distances": ".rates",
        "find_interaction": ".interaction",
        "generalisation_rates": ".rates",
        "hidden_cells": ".hidden_cells",
        "interactions": ".interaction",
        "open_timelines": ".alignment",
        "parse_seeds": ".seeds",
        "read_results": ".table",
        "results": ".table",
        "run_sweep": ".driver",
        "run_folder_name": ".seeds",
        "survival_curves": ".survival",
        "survival_summary": ".survival",
        "train_seeds": ".seeds",
        "write_results": ".table",
    },
)
