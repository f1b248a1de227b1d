"""Presets: named, complete run configs, each with what it shows and what it costs.

A module for each paper: `parity` (arXiv 2607.10116), `sequences` (arXiv 2602.01442), `modular`
(arXiv 2605.18022) with its image task in `digits`. What a paper does not say is our choice, and is
written where it is made. Loads no torch; training is `training/`, and grids over presets are the
scripts in `train/`.
"""

from __future__ import annotations

from interp_shortcuts.presets.base import PRESETS as PRESETS
from interp_shortcuts.presets.base import Preset as Preset
from interp_shortcuts.presets.base import configured as configured
from interp_shortcuts.presets.base import preset as preset

# in the order in which they are listed
# isort: off
from interp_shortcuts.presets.parity import max_parity_demo as max_parity_demo
from interp_shortcuts.presets.parity import first_parity_demo as first_parity_demo
from interp_shortcuts.presets.parity import max_mod3_demo as max_mod3_demo
from interp_shortcuts.presets.parity import first_mod3_demo as first_mod3_demo
from interp_shortcuts.presets.parity import max_parity_lab as max_parity_lab
from interp_shortcuts.presets.parity import max_parity_paper as max_parity_paper
from interp_shortcuts.presets.parity import first_parity_paper as first_parity_paper
from interp_shortcuts.presets.parity import max_mod3_paper as max_mod3_paper
from interp_shortcuts.presets.parity import first_mod3_paper as first_mod3_paper
from interp_shortcuts.presets.parity import smoke as smoke
from interp_shortcuts.presets.sequences import sequence_sorting_demo as sequence_sorting_demo
from interp_shortcuts.presets.sequences import sequence_reversal_demo as sequence_reversal_demo
from interp_shortcuts.presets.sequences import sequence_sorting_paper as sequence_sorting_paper
from interp_shortcuts.presets.sequences import sequence_reversal_paper as sequence_reversal_paper
from interp_shortcuts.presets.modular import modular_noise_demo as modular_noise_demo
from interp_shortcuts.presets.modular import modular_noise_paper as modular_noise_paper
from interp_shortcuts.presets.digits import digits_noise_demo as digits_noise_demo
# isort: on
