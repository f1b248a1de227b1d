"""Pages made from timelines and sweeps. They select and arrange; they compute nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from .facts import report_facts as report_facts
    from .figure_page import write_figure as write_figure
    from .gap_report import write_gap_report as write_gap_report
    from .gap_seeds_report import write_gap_seeds_report as write_gap_seeds_report
    from .index import SeedEntry as SeedEntry
    from .index import write_index as write_index
    from .modular_report import write_modular_report as write_modular_report
    from .modular_seeds_report import write_modular_seeds_report as write_modular_seeds_report
    from .report import write_report as write_report
    from .sweep import report_links as report_links
    from .sweep import sweep_figures as sweep_figures
    from .sweep import write_sweep_report as write_sweep_report

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "SeedEntry": ".index",
        "report_facts": ".facts",
        "report_links": ".sweep",
        "sweep_figures": ".sweep",
        "write_figure": ".figure_page",
        "write_gap_report": ".gap_report",
        "write_gap_seeds_report": ".gap_seeds_report",
        "write_index": ".index",
        "write_modular_report": ".modular_report",
        "write_modular_seeds_report": ".modular_seeds_report",
        "write_report": ".report",
        "write_sweep_report": ".sweep",
    },
)
