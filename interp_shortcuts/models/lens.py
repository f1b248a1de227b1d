"""The one place that imports TransformerLens."""

from __future__ import annotations

from transformer_lens import HookedRootModule, HookedTransformer, HookedTransformerConfig
from transformer_lens.hook_points import HookPoint

__all__ = ["HookPoint", "HookedRootModule", "HookedTransformer", "HookedTransformerConfig"]
