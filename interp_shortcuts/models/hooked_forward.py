"""The forward of `component_forward` for any `HookedTransformer`, by hooks at portable sites.

It serves models that a `ModelSpec` refuses (rotary positions, attention only, gated MLPs, shared
keys and values, ...), and those that the user has put hooks on, which act.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float, Int
from torch import Tensor
from torch.func import functional_call

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.component_forward import Edits, MatrixName, Piece
from interp_shortcuts.models.hooks import hooked
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.models.sites import Component
from interp_shortcuts.models.staged import Stage

_ALL = slice(None)


class HookedForward:
    """A model run by itself, with its weights replaced by leaves. Hooks that it has act.

    Heads that share keys and values (grouped queries) share the W_V of their group, and so its
    gradient.

    Args:
        model: The model, as `reading` yields it.

    Raises:
        ConfigError: If its attention or MLPs hold other matrices than W_V, W_O, W_in and W_out.
    """

    def __init__(self, model: HookedTransformer) -> None:
        self._model = model
        self._weights = {
            name: weight.detach().clone().requires_grad_()
            for name, weight in model.named_parameters()
        }
        self.device = next(iter(self._weights.values())).device
        self.pieces: dict[Component, tuple[Piece, ...]] = {}
        for layer in range(model.cfg.n_layers):
            self._add_heads(layer)
            if not model.cfg.attn_only:
                self._add_mlp(layer)
        self.components = tuple(self.pieces)

    def clean(self, tokens: Int[Tensor, "example position"]) -> None:
        """None: every pass begins at the embedding."""
        del tokens

    def logits(
        self,
        tokens: Int[Tensor, "example position"],
        edits: Edits,
        *,
        first: int = 0,
        clean: Sequence[Stage] | None = None,
    ) -> Float[Tensor, "example tail class"]:
        """The logits from a position on; the arguments are those of `StagedForward.logits`."""
        assert clean is None
        sites = [(site, layer, edit) for (site, layer), edit in edits.items()]
        with hooked(self._model, sites) as fired:
            given = (tokens.to(self.device, copy=True),)
            logits = functional_call(self._model, self._weights, given)
            assert sum(fired.values()) == len(sites), "an edit never acted"
        return logits[:, first:]

    def _add_heads(self, layer: int) -> None:
        n_heads = self._model.cfg.n_heads
        shared = f"blocks.{layer}.attn._W_V"
        value = shared if shared in self._weights else f"blocks.{layer}.attn.W_V"
        output = f"blocks.{layer}.attn.W_O"
        self._require(value, output)
        per_value = n_heads // len(self._weights[value])
        for head in range(n_heads):
            self.pieces[Component(layer, "head", head)] = (
                Piece("W_V", self._weights[value], (head // per_value,)),
                Piece("W_O", self._weights[output], (head,)),
            )

    def _add_mlp(self, layer: int) -> None:
        inner, gate, outer = (f"blocks.{layer}.mlp.{name}" for name in ("W_in", "W_gate", "W_out"))
        self._require(inner, outer)
        named: list[tuple[MatrixName, str]] = [("W_in", inner), ("W_out", outer)]
        if gate in self._weights:
            named.insert(1, ("W_in", gate))
        self.pieces[Component(layer, "mlp")] = tuple(
            Piece(name, self._weights[text], (_ALL,)) for name, text in named
        )

    def _require(self, *names: str) -> None:
        for name in names:
            if name not in self._weights or self._weights[name].ndim not in (2, 3):
                raise ConfigError(
                    f"`model` must have the weight matrix `{name}`, from which a component's "
                    "gradient is read; it has none."
                )
