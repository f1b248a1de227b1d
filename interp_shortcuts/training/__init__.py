"""Training: from a run's config to a run folder, evaluated, checkpointed and resumable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from interp_shortcuts.training.evaluation import evaluate as evaluate
    from interp_shortcuts.training.loop import train as train
    from interp_shortcuts.training.stacked import stacking_pays as stacking_pays
    from interp_shortcuts.training.stacked import train_stacked as train_stacked

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "evaluate": ".evaluation",
        "stacking_pays": ".stacked",
        "train": ".loop",
        "train_stacked": ".stacked",
    },
)
