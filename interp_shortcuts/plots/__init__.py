"""Interactive pictures of timelines. They select and draw; they compute nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from .checkpoints import checkpoint_figure as checkpoint_figure
    from .seeds import accuracy_figure as accuracy_figure
    from .timeline import timeline_figure as timeline_figure

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "accuracy_figure": ".seeds",
        "checkpoint_figure": ".checkpoints",
        "timeline_figure": ".timeline",
    },
)
