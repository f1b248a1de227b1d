"""Models: their description, how they are built, their sites, their weights, and how they are read.

This is the only package that imports TransformerLens or names its parameters and hook points.
`models.build` is a module; the function in it is exported as `interp_shortcuts.build`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from interp_shortcuts.models.build import eager as eager
    from interp_shortcuts.models.build import initial_weights as initial_weights
    from interp_shortcuts.models.build import load_weights as load_weights
    from interp_shortcuts.models.build import parameter_shapes as parameter_shapes
    from interp_shortcuts.models.build import weights_of as weights_of
    from interp_shortcuts.models.decoding import greedy_decode as greedy_decode
    from interp_shortcuts.models.forward import Reading as Reading
    from interp_shortcuts.models.forward import read_attention as read_attention
    from interp_shortcuts.models.forward import read_logits as read_logits
    from interp_shortcuts.models.forward import read_logits_from as read_logits_from
    from interp_shortcuts.models.forward import read_site as read_site
    from interp_shortcuts.models.hooks import hooked as hooked
    from interp_shortcuts.models.hooks import reading as reading
    from interp_shortcuts.models.sites import SITES as SITES
    from interp_shortcuts.models.sites import Component as Component
    from interp_shortcuts.models.sites import components as components
    from interp_shortcuts.models.sites import site as site
    from interp_shortcuts.models.spec import Architecture as Architecture
    from interp_shortcuts.models.spec import ModelSpec as ModelSpec
    from interp_shortcuts.models.tail import tail_logits as tail_logits
    from interp_shortcuts.models.views import ov_logits as ov_logits
    from interp_shortcuts.models.views import ov_outputs as ov_outputs
    from interp_shortcuts.models.views import qk_scores as qk_scores
    from interp_shortcuts.models.weights import Weights as Weights

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "SITES": ".sites",
        "Architecture": ".spec",
        "Component": ".sites",
        "ModelSpec": ".spec",
        "Reading": ".forward",
        "Weights": ".weights",
        "components": ".sites",
        "eager": ".build",
        "greedy_decode": ".decoding",
        "hooked": ".hooks",
        "initial_weights": ".build",
        "load_weights": ".build",
        "ov_logits": ".views",
        "ov_outputs": ".views",
        "parameter_shapes": ".build",
        "qk_scores": ".views",
        "read_attention": ".forward",
        "read_logits": ".forward",
        "read_logits_from": ".forward",
        "read_site": ".forward",
        "reading": ".hooks",
        "site": ".sites",
        "tail_logits": ".tail",
        "weights_of": ".build",
    },
)
