"""All interventions by name. A new one is a file and a line here; contract tests run over them."""

from __future__ import annotations

from interp_shortcuts.interventions.ablate import Ablate, AblateOV, AblateQK
from interp_shortcuts.interventions.base import Intervention
from interp_shortcuts.interventions.patch import Patch

INTERVENTIONS: dict[str, type[Intervention]] = {
    kind.__name__: kind for kind in (Ablate, AblateQK, AblateOV, Patch)
}
