"""Interactive pictures of timelines and of sweeps. They select and draw; they compute nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from .carrier_map import carrier_map_figure as carrier_map_figure
    from .checkpoints import checkpoint_figure as checkpoint_figure
    from .gap_course import gap_course_figure as gap_course_figure
    from .gap_course import rho_course_figure as rho_course_figure
    from .gap_joint import joint_figure as joint_figure
    from .gap_league import league_figure as league_figure
    from .gap_maps import gap_map_figure as gap_map_figure
    from .gap_pruning import pruning_figure as pruning_figure
    from .gap_roles import identity_roles_figure as identity_roles_figure
    from .gap_roles import layer_roles_figure as layer_roles_figure
    from .gap_scatter import rank_scatter_figure as rank_scatter_figure
    from .gap_seeds import seed_rho_figure as seed_rho_figure
    from .modular_cells import cell_courses_figure as cell_courses_figure
    from .modular_cells import cells_figure as cells_figure
    from .modular_descent import descent_figure as descent_figure
    from .modular_neurons import neurons_figure as neurons_figure
    from .modular_partition import partition_figure as partition_figure
    from .modular_partition import unembedding_figure as unembedding_figure
    from .modular_phases import phase_figure as phase_figure
    from .modular_progress import group_figure as group_figure
    from .modular_progress import progress_figure as progress_figure
    from .modular_spectra import spectra_figure as spectra_figure
    from .residual_map import residual_map_figure as residual_map_figure
    from .seeds import accuracy_figure as accuracy_figure
    from .sweep_aligned import aligned_figure as aligned_figure
    from .sweep_factors import chance_distance_figure as chance_distance_figure
    from .sweep_factors import weight_decay_figure as weight_decay_figure
    from .sweep_heads import heads_onset_figure as heads_onset_figure
    from .sweep_interaction import interaction_figure as interaction_figure
    from .sweep_rates import rate_figure as rate_figure
    from .sweep_survival import survival_figure as survival_figure
    from .timeline import timeline_figure as timeline_figure

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "accuracy_figure": ".seeds",
        "aligned_figure": ".sweep_aligned",
        "carrier_map_figure": ".carrier_map",
        "cell_courses_figure": ".modular_cells",
        "cells_figure": ".modular_cells",
        "chance_distance_figure": ".sweep_factors",
        "checkpoint_figure": ".checkpoints",
        "descent_figure": ".modular_descent",
        "gap_course_figure": ".gap_course",
        "gap_map_figure": ".gap_maps",
        "group_figure": ".modular_progress",
        "heads_onset_figure": ".sweep_heads",
        "identity_roles_figure": ".gap_roles",
        "interaction_figure": ".sweep_interaction",
        "joint_figure": ".gap_joint",
        "layer_roles_figure": ".gap_roles",
        "league_figure": ".gap_league",
        "neurons_figure": ".modular_neurons",
        "partition_figure": ".modular_partition",
        "phase_figure": ".modular_phases",
        "progress_figure": ".modular_progress",
        "pruning_figure": ".gap_pruning",
        "rank_scatter_figure": ".gap_scatter",
        "rate_figure": ".sweep_rates",
        "residual_map_figure": ".residual_map",
        "rho_course_figure": ".gap_course",
        "seed_rho_figure": ".gap_seeds",
        "spectra_figure": ".modular_spectra",
        "survival_figure": ".sweep_survival",
        "timeline_figure": ".timeline",
        "unembedding_figure": ".modular_partition",
        "weight_decay_figure": ".sweep_factors",
    },
)
