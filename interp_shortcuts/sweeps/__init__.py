"""Several runs as one piece of work: which seeds, in which folders, and how each of them ended.

Seeds are trained one after another in this process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from interp_shortcuts.sweeps.seeds import SeedResult as SeedResult
    from interp_shortcuts.sweeps.seeds import parse_seeds as parse_seeds
    from interp_shortcuts.sweeps.seeds import run_folder_name as run_folder_name
    from interp_shortcuts.sweeps.seeds import train_seeds as train_seeds

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "SeedResult": ".seeds",
        "parse_seeds": ".seeds",
        "run_folder_name": ".seeds",
        "train_seeds": ".seeds",
    },
)
