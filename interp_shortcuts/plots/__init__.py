"""Interactive pictures of timelines. They select and draw; they compute nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from .carrier_map import carrier_map_figure as carrier_map_figure
    from .checkpoints import checkpoint_figure as checkpoint_figure
    from .residual_map import residual_map_figure as residual_map_figure
    from .seeds import accuracy_figure as accuracy_figure
    from .timeline import timeline_figure as timeline_figure

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "accuracy_figure": ".seeds",
        "carrier_map_figure": ".carrier_map",
        "checkpoint_figure": ".checkpoints",
        "residual_map_figure": ".residual_map",
        "timeline_figure": ".timeline",
    },
)
