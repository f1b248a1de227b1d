"""The kinds of model that there are, by their frozen descriptions. Loads no torch.

A new kind is one more member of each union here, and one more `ModelKind` in `any_model`.
"""

from __future__ import annotations

from typing import TypeAlias

from interp_shortcuts.models.picture_spec import PictureArchitecture, PictureSpec
from interp_shortcuts.models.spec import Architecture, ModelSpec
from interp_shortcuts.models.two_layer_spec import TwoLayerArchitecture, TwoLayerSpec

AnyArchitecture: TypeAlias = Architecture | TwoLayerArchitecture | PictureArchitecture
"""What a run says of its model: the part that does not depend on the task."""

AnySpec: TypeAlias = ModelSpec | TwoLayerSpec | PictureSpec
"""What a model is built from. Every kind has `hash`, `n_classes` and `sizes`."""
