"""Pages made from timelines. They select and arrange; what they say is computed elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from .facts import report_facts as report_facts
    from .index import SeedEntry as SeedEntry
    from .index import write_index as write_index
    from .report import write_report as write_report

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "SeedEntry": ".index",
        "report_facts": ".facts",
        "write_index": ".index",
        "write_report": ".report",
    },
)
