"""Puts plotly.js beside the figures of the site, out of the installed package.

The figures in docs/figures are small because they share it; it is 4.5 MB and not kept in the
repository.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import plotly


def on_post_build(config: Any) -> None:
    """Copies plotly.min.js to where the figures look for it; called by mkdocs."""
    figures = Path(config["site_dir"]) / "figures"
    if figures.is_dir():
        source = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
        shutil.copyfile(source, figures / "plotly.min.js")
