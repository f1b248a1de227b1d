"""Models: their description, how they are built, their sites, their weights, and how they are read.

This is the only package that imports TransformerLens or names its parameters and hook points.
`models.build` is a module; the function in it is exported as `interp_shortcuts.build`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.lazy import lazy_exports

if TYPE_CHECKING:
    from interp_shortcuts.models.activations import PAIR_ACTIVATIONS as PAIR_ACTIVATIONS
    from interp_shortcuts.models.analytic import analytic_network as analytic_network
    from interp_shortcuts.models.any_model import answer_logits as answer_logits
    from interp_shortcuts.models.any_model import build_any as build_any
    from interp_shortcuts.models.any_model import load_any as load_any
    from interp_shortcuts.models.any_model import spec_of as spec_of
    from interp_shortcuts.models.any_model import weights_of_any as weights_of_any
    from interp_shortcuts.models.any_spec import AnySpec as AnySpec
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
    from interp_shortcuts.models.picture_net import PictureNet as PictureNet
    from interp_shortcuts.models.picture_net import build_picture_net as build_picture_net
    from interp_shortcuts.models.picture_net import (
        initial_picture_weights as initial_picture_weights,
    )
    from interp_shortcuts.models.picture_net import load_picture_weights as load_picture_weights
    from interp_shortcuts.models.picture_net import picture_net_of as picture_net_of
    from interp_shortcuts.models.picture_net import picture_weights as picture_weights
    from interp_shortcuts.models.picture_net import read_picture_logits as read_picture_logits
    from interp_shortcuts.models.picture_spec import PictureArchitecture as PictureArchitecture
    from interp_shortcuts.models.picture_spec import PictureSpec as PictureSpec
    from interp_shortcuts.models.sites import SITES as SITES
    from interp_shortcuts.models.sites import Component as Component
    from interp_shortcuts.models.sites import components as components
    from interp_shortcuts.models.sites import site as site
    from interp_shortcuts.models.spec import Architecture as Architecture
    from interp_shortcuts.models.spec import ModelSpec as ModelSpec
    from interp_shortcuts.models.spectrum import Spectrum as Spectrum
    from interp_shortcuts.models.spectrum import neuron_strengths as neuron_strengths
    from interp_shortcuts.models.tail import tail_logits as tail_logits
    from interp_shortcuts.models.two_layer import TwoLayerNet as TwoLayerNet
    from interp_shortcuts.models.two_layer import build_two_layer as build_two_layer
    from interp_shortcuts.models.two_layer import (
        initial_two_layer_weights as initial_two_layer_weights,
    )
    from interp_shortcuts.models.two_layer import load_two_layer_weights as load_two_layer_weights
    from interp_shortcuts.models.two_layer import read_pair_logits as read_pair_logits
    from interp_shortcuts.models.two_layer import two_layer_of as two_layer_of
    from interp_shortcuts.models.two_layer import two_layer_weights as two_layer_weights
    from interp_shortcuts.models.two_layer_spec import (
        TwoLayerArchitecture as TwoLayerArchitecture,
    )
    from interp_shortcuts.models.two_layer_spec import TwoLayerSpec as TwoLayerSpec
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
        "PAIR_ACTIVATIONS": ".activations",
        "PictureArchitecture": ".picture_spec",
        "PictureNet": ".picture_net",
        "PictureSpec": ".picture_spec",
        "build_picture_net": ".picture_net",
        "initial_picture_weights": ".picture_net",
        "load_picture_weights": ".picture_net",
        "picture_net_of": ".picture_net",
        "picture_weights": ".picture_net",
        "read_picture_logits": ".picture_net",
        "Spectrum": ".spectrum",
        "TwoLayerNet": ".two_layer",
        "AnySpec": ".any_spec",
        "TwoLayerArchitecture": ".two_layer_spec",
        "TwoLayerSpec": ".two_layer_spec",
        "answer_logits": ".any_model",
        "build_any": ".any_model",
        "load_any": ".any_model",
        "spec_of": ".any_model",
        "weights_of_any": ".any_model",
        "analytic_network": ".analytic",
        "build_two_layer": ".two_layer",
        "initial_two_layer_weights": ".two_layer",
        "load_two_layer_weights": ".two_layer",
        "neuron_strengths": ".spectrum",
        "read_pair_logits": ".two_layer",
        "two_layer_of": ".two_layer",
        "two_layer_weights": ".two_layer",
    },
)
