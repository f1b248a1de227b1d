"""Interventions: described changes to a forward pass, which always restore the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from interp_shortcuts.interventions.ablate import Ablate as Ablate
    from interp_shortcuts.interventions.ablate import AblateOV as AblateOV
    from interp_shortcuts.interventions.ablate import AblateQK as AblateQK
    from interp_shortcuts.interventions.apply import applied as applied
    from interp_shortcuts.interventions.base import Intervention as Intervention
    from interp_shortcuts.interventions.batched import read_logits_under as read_logits_under
    from interp_shortcuts.interventions.network_part import subnetwork as subnetwork
    from interp_shortcuts.interventions.neurons import NeuronPartition as NeuronPartition
    from interp_shortcuts.interventions.patch import Patch as Patch
    from interp_shortcuts.interventions.patch import read_activations as read_activations
    from interp_shortcuts.interventions.registry import INTERVENTIONS as INTERVENTIONS
    from interp_shortcuts.interventions.spectral import FrequencyFilter as FrequencyFilter
    from interp_shortcuts.interventions.spectral import filter_unembedding as filter_unembedding
    from interp_shortcuts.interventions.spectral import (
        unembedding_frequencies as unembedding_frequencies,
    )
    from interp_shortcuts.interventions.swap_activation import SwapActivation as SwapActivation
    from interp_shortcuts.interventions.swap_activation import swapped as swapped

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "INTERVENTIONS": ".registry",
        "Ablate": ".ablate",
        "AblateOV": ".ablate",
        "AblateQK": ".ablate",
        "Intervention": ".base",
        "Patch": ".patch",
        "applied": ".apply",
        "read_activations": ".patch",
        "read_logits_under": ".batched",
        "FrequencyFilter": ".spectral",
        "NeuronPartition": ".neurons",
        "SwapActivation": ".swap_activation",
        "filter_unembedding": ".spectral",
        "subnetwork": ".network_part",
        "swapped": ".swap_activation",
        "unembedding_frequencies": ".spectral",
    },
)
