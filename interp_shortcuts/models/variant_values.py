"""What takes the place of activations on one chunk of examples: values, donors', heads mixed anew.

Where a pass goes on from there is in `variant_pass`.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Int
from torch import Tensor

from interp_shortcuts.models.clean import CleanPasses, Window
from interp_shortcuts.models.replacements import Donors, ReplacedSite, Replacement
from interp_shortcuts.models.staged import Rows


class Values:
    """The unablated activations of a chunk, and those that replace them.

    Args:
        clean: The unablated passes.
        tokens: All examples.
        window: Which of them the chunk is.
    """

    def __init__(
        self, clean: CleanPasses, tokens: Int[Tensor, "example position"], window: slice
    ) -> None:
        self.clean, self.staged, self.length = clean, clean.staged, clean.length
        self.base = clean.window(tokens[window])
        self._window = window
        self._donors: dict[int, Window] = {}
        self._v: dict[tuple[int, int], Tensor] = {}

    def row(self, layer: int) -> Rows:
        """The only rows of a layer that are computed; None for all."""
        return self.clean.row if layer == self.staged.n_layers - 1 else None

    def empty(self, layer: int, site: str, n: int = 0) -> Float[Tensor, "node ..."]:
        """Room for a site at n nodes."""
        clean = self.base.at(layer, site)
        return clean.new_empty(n, *clean.shape)

    def put(self, activation: Float[Tensor, "..."], edits: Iterable[Replacement]) -> None:
        """Overwrites parts of a site's activation in place."""
        for edit in edits:
            self.fill(edit.part(activation), edit)

    def fill(self, part: Float[Tensor, "example row feature"], edit: Replacement) -> None:
        """Overwrites a component's part of an activation in place."""
        row = None if edit.site in ("resid_pre", "v") else self.row(edit.layer)
        edit.fill(part, self._value(edit), row=row, length=self.length)

    def mixed(
        self,
        layer: int,
        head: int,
        edits: Iterable[Replacement],
        pattern: Float[Tensor, "example row position"],
        x: Float[Tensor, "example position d_model"] | None,
    ) -> Float[Tensor, "example row d_head"]:
        """z of one head whose pattern or values are replaced.

        Args:
            layer: The layer.
            head: The head.
            edits: What is replaced in it.
            pattern: Its pattern without them.
            x: The normalised input of the layer; None for that of the unablated pass.
        """
        by_site: dict[ReplacedSite, list[Replacement]] = {"pattern": [], "v": []}
        for edit in edits:
            by_site.get(edit.site, []).append(edit)
        if by_site["pattern"]:
            pattern = pattern.clone()
            for edit in by_site["pattern"]:
                self.fill(pattern, edit)
        weight, bias = self.W_v(layer, head)
        if x is not None and isinstance(self.row(layer), int) and not by_site["v"]:
            # one query: weigh the inputs first, so that W_V acts once and not at every position
            return F.linear(pattern @ x, weight) + pattern.sum(-1, keepdim=True) * bias
        v = self._v_of(self.base, 0, layer)[:, :, head] if x is None else F.linear(x, weight, bias)
        if by_site["v"]:
            v = v.clone()
            for edit in by_site["v"]:
                self.fill(v, edit)
        return pattern @ v

    def W_v(  # noqa: N802
        self, layer: int, head: int
    ) -> tuple[Float[Tensor, "d_head d_model"], Float[Tensor, " d_head"]]:
        """W_V and b_V of one head."""
        at = self.staged.layers[layer]
        d_head = len(at.b_V) // self.staged.n_heads
        own = slice(head * d_head, (head + 1) * d_head)
        return at.W_V[own], at.b_V[own]

    def _value(self, edit: Replacement) -> Float[Tensor, "..."]:
        if isinstance(edit.value, Donors):
            name = id(edit.value)
            if name not in self._donors:
                self._donors[name] = self.clean.window(edit.value.tokens[self._window])
            donors = self._donors[name]
            if edit.site == "v":
                return edit.part(self._v_of(donors, name, edit.layer))
            return edit.part(donors.at(edit.layer, edit.site))
        value = edit.given(self.length)
        return value[self._window] if value.ndim == 3 and len(value) > 1 else value

    def _v_of(
        self, window: Window, name: int, layer: int
    ) -> Float[Tensor, "example position head d_head"]:
        if (name, layer) not in self._v:
            self._v[name, layer] = self.staged.values(layer, window.at(layer, "x"))
        return self._v[name, layer]
