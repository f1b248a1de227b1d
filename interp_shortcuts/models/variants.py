"""Many variants of one forward pass at once: the same examples, with other activations replaced.

The unablated pass is computed once for each chunk of examples; a variant joins at the first layer
that it changes, and all variants that have joined go on together along a leading axis. It equals
running the model once per variant with hooks (1e-5 in float32), at a fraction of the time.

Hooks do not act here, and nothing is known of what a variant is for: that is the business of
`interventions` and of the measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.models.replacements import Donors, ReplacedSite, Replacement
from interp_shortcuts.models.staged import Stage, StagedModel, row_of

Tokens = Int[Tensor, "example position"]
_ENTRY: dict[ReplacedSite, int] = {
    "resid_pre": 0,
    "pattern": 1,
    "v": 1,
    "z": 2,
    "mlp_out": 3,
    "resid_post": 3,
}


Variant: TypeAlias = Sequence[Replacement]
"""What is replaced together in one pass. Later ones overwrite earlier ones at the same place; none
at all is the unablated pass."""


def variant_logits(
    model: nn.Module | StagedModel,
    tokens: Tokens,
    variants: Sequence[Variant],
    *,
    position: int = -1,
    chunk: int = 256,
) -> Float[Tensor, "variant example class"]:
    """The logits at one position under each variant, without gradients.

    Args:
        model: The model, or its layout when it is read more than once.
        tokens: The examples, the same for all variants.
        variants: What is replaced.
        position: Where the logits are read; negative counts from the end.
        chunk: How many examples are held at a time; bounds the memory.

    Returns:
        Logits in at least float32, on the model's device.

    Raises:
        InterventionError: If a replacement names a layer that is not there, or lacks its donors.
    """
    staged = model if isinstance(model, StagedModel) else StagedModel.of(model)
    staged.check(tokens)
    for variant in variants:
        for replacement in variant:
            _check(staged, tokens, replacement)
    row = row_of(position, tokens.shape[-1])
    device = staged.W_E.device
    parts = []
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        for start in range(0, max(len(tokens), 1), chunk):
            window = slice(start, start + chunk)
            run = _Pass(staged, tokens[window].to(device), variants, window=window, row=row)
            parts.append(run.logits())
    return torch.cat(parts, dim=1)


def _check(staged: StagedModel, tokens: Tokens, replacement: Replacement) -> None:
    if not 0 <= replacement.layer < staged.n_layers:
        raise InterventionError(
            f"The layer of a replacement (={replacement.layer}) must be below the model's "
            f"`n_layers` (={staged.n_layers})."
        )
    if not 0 <= (replacement.head or 0) < staged.n_heads:
        raise InterventionError(
            f"The head of a replacement (={replacement.head}) must be below the model's "
            f"`n_heads` (={staged.n_heads})."
        )
    value = replacement.value
    if value is None:
        raise InterventionError("A replacement needs a value or its donors; got neither.")
    if isinstance(value, Donors):
        staged.check(value.tokens)
        if value.tokens.shape != tokens.shape:
            raise InterventionError(
                f"Donors must have the shape of the tokens (={list(tokens.shape)}); "
                f"got {list(value.tokens.shape)}."
            )
    elif isinstance(value, Tensor) and value.ndim == 3 and len(value) not in (1, len(tokens)):
        raise InterventionError(
            f"A value for each example must have as many as the tokens (={len(tokens)}); "
            f"got {len(value)}."
        )


def _at(variant: Variant, layer: int, site: ReplacedSite) -> list[Replacement]:
    return [r for r in variant if r.layer == layer and r.site == site]


def _entry(variant: Variant, layer: int) -> int | None:
    """How far into the layer the unablated pass still holds; None if all the way through."""
    return min((_ENTRY[r.site] for r in variant if r.layer == layer), default=None)


class _Pass:
    """All variants of one chunk of examples.

    `order` lists the variants that have joined, as they lie along the leading axis.
    """

    def __init__(
        self,
        staged: StagedModel,
        tokens: Tokens,
        variants: Sequence[Variant],
        *,
        window: slice,
        row: int,
    ) -> None:
        self.staged, self.variants, self.window, self.row = staged, variants, window, row
        self.length = tokens.shape[-1]
        self.base = list(staged.stages(tokens, row=row))
        self.donors: dict[int, list[Stage]] = {}
        for replacement in (r for variant in variants for r in variant):
            value = replacement.value
            if isinstance(value, Donors) and id(value) not in self.donors:
                donors = value.tokens[window].to(tokens.device)
                self.donors[id(value)] = list(staged.stages(donors, row=row))

    def logits(self) -> Float[Tensor, "variant example class"]:
        """Run through the layers; variants that never join keep the unablated logits."""
        order: list[int] = []
        state = self._copies(self.base[0].resid_pre, 0)
        for layer in range(self.staged.n_layers):
            order, state = self._layer(layer, order, state)
        logits = self.staged.logits(self.base[-1].resid_post)[:, 0]
        result = self._copies(logits, len(self.variants))
        result[order] = self.staged.logits(state)[..., 0, :]
        return result

    def _layer(
        self, layer: int, order: list[int], state: Float[Tensor, "joined example position d_model"]
    ) -> tuple[list[int], Float[Tensor, "more example row d_model"]]:
        base = self.base[layer]
        row = self.row if layer == self.staged.n_layers - 1 else None
        fresh = [i for i in range(len(self.variants)) if i not in set(order)]
        joining = [[i for i in fresh if _entry(self.variants[i], layer) == e] for e in range(4)]

        order = order + joining[0]
        resid = self._join(state, base.resid_pre, len(joining[0]))
        self._put(resid, order, layer, "resid_pre", None)
        x = self.staged.layers[layer].norm1(resid)
        pattern = self.staged.attend(layer, x, row=row)

        order = order + joining[1]
        x = self._join(x, base.x, len(joining[1]))
        pattern = self._join(pattern, base.pattern, len(joining[1]))
        self._put(pattern, order, layer, "pattern", row)
        z = self._mix(layer, order, pattern, x)

        order = order + joining[2]
        z = self._join(z, base.z, len(joining[2]))
        self._put(z, order, layer, "z", row)

        resid, before = (
            rows if row is None else rows[..., row : row + 1, :] for rows in (resid, base.resid_pre)
        )
        late = len(joining[1]) + len(joining[2])
        mid = self._join(resid, before, late) + self.staged.write(layer, z)
        order = order + joining[3]
        mid = self._join(mid, base.resid_mid, len(joining[3]))

        post = mid + self._mlp(layer, order, mid, row)
        self._put(post, order, layer, "resid_post", row)
        return order, post

    def _mix(
        self,
        layer: int,
        order: list[int],
        pattern: Float[Tensor, "joined example head row position"],
        x: Float[Tensor, "joined example position d_model"],
    ) -> Float[Tensor, "joined example row head d_head"]:
        """z; the values themselves are computed only for the variants that replace some."""
        z = self.staged.mix(layer, pattern, x)
        edited = [place for place, i in enumerate(order) if _at(self.variants[i], layer, "v")]
        if edited:
            v = self.staged.values(layer, x[edited])
            self._put(v, [order[place] for place in edited], layer, "v", None)
            z[edited] = self.staged.mix_values(pattern[edited], v)
        return z

    def _mlp(
        self,
        layer: int,
        order: list[int],
        mid: Float[Tensor, "joined example row d_model"],
        row: int | None,
    ) -> Float[Tensor, "joined example row d_model"]:
        """The MLP's output, computed only where it is not about to be replaced whole."""
        whole = [
            any(r.positions is None for r in _at(self.variants[i], layer, "mlp_out")) for i in order
        ]
        if not any(whole):
            out = self.staged.mlp(layer, mid)
        else:
            out = torch.empty_like(mid)
            needed = [place for place, replaced in enumerate(whole) if not replaced]
            out[needed] = self.staged.mlp(layer, mid[needed])
        self._put(out, order, layer, "mlp_out", row)
        return out

    def _put(
        self,
        activation: Float[Tensor, "joined ..."],
        order: list[int],
        layer: int,
        site: ReplacedSite,
        row: int | None,
    ) -> None:
        for place, i in enumerate(order):
            for replacement in _at(self.variants[i], layer, site):
                value = self._value(replacement)
                replacement.put(activation[place], value, row=row, length=self.length)

    def _value(self, replacement: Replacement) -> Float[Tensor, "..."]:
        if isinstance(replacement.value, Donors):
            stage = self.donors[id(replacement.value)][replacement.layer]
            if replacement.site == "v":
                return replacement.part(self.staged.values(replacement.layer, stage.x))
            return replacement.part(getattr(stage, replacement.site))
        value = replacement.given(self.length)
        return value[self.window] if value.ndim == 3 and len(value) > 1 else value

    @staticmethod
    def _copies(tensor: Float[Tensor, "..."], n: int) -> Float[Tensor, "n ..."]:
        return tensor.expand(n, *tensor.shape).clone()

    @classmethod
    def _join(
        cls, joined: Float[Tensor, "joined ..."], base: Float[Tensor, "..."], n: int
    ) -> Float[Tensor, "more ..."]:
        """The joined variants, and `n` that go on from the unablated pass."""
        if n == 0:
            return joined
        copies = base.expand(n, *base.shape)
        return torch.cat([joined, copies]) if len(joined) else copies.clone()
