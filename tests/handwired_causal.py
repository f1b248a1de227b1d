"""Models wired by hand whose causal structure is known, for interventions and what measures them.

Every token and every position has a coordinate of its own in the residual stream, so that a head
looks at and moves exactly what it is told to. Attention is sharp (what is not looked at weighs
below 1e-20), there is no normalisation, and all parameters that are not mentioned are zero. One
layer does the work, its MLP included; the other does nothing.
"""

from __future__ import annotations

import torch

from interp_shortcuts.models.build import build
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.models.spec import ModelSpec

N_INTEGERS, LENGTH, N_CLASSES = 6, 4, 2
_GAIN = 50.0


def redundant_heads_model(*, layer: int = 0) -> HookedTransformer:
    """Two heads that each carry the rule, the class of the first integer, v mod 2.

    Both look at position 0 and write 1 on the class; the MLP passes min(sum, 1) on. Known answers:
        The logits are 1 on the true class and 0 on the other.
        Zero-ablating either head of `layer` changes no logit. Zero-ablating both, or the MLP, or
            the whole attention, makes all logits 0.
        Ablating anything in the other layer changes no logit.
    """
    wiring = _Wiring(layer)
    for head in (0, 1):
        wiring.look(head, at_position=0)
        wiring.move(head, wiring.classes_of_tokens, to=wiring.first)
    for label in range(N_CLASSES):
        wiring.hidden(2 * label, reads={wiring.first + label: 1.0}, writes={label: 1.0})
        wiring.hidden(
            2 * label + 1, reads={wiring.first + label: 1.0}, bias=-1.0, writes={label: -1.0}
        )
    return wiring.model


def gated_model(*, uses: str = "rule", layer: int = 0) -> HookedTransformer:
    """Head 0 carries the shortcut, head 1 the rule, and a gate between them picks one.

    The rule is the class of the first integer, the shortcut that of the last, v mod 2. The MLP is
    the gate: with `uses="rule"` it passes the shortcut on only where no rule arrives; with
    `uses="shortcut"` it never lets the rule through. Known answers, uses="rule":
        The true label is predicted. Zero-ablating head 1 makes the prediction the shortcut label;
            zero-ablating head 0 changes no logit; both: all logits 0.
        Patching head 1, or all heads, or the MLP: rule_transfer 1, shortcut_transfer 0.
        Patching head 0: rule_transfer 0, shortcut_transfer 0. Disruption is 0 throughout.
    With uses="shortcut":
        The shortcut label is predicted. Patching head 0, or all heads, or the MLP: rule_transfer
            0, shortcut_transfer 1. Patching head 1: 0 and 0.
    """
    wiring = _Wiring(layer)
    wiring.look(0, at_position=LENGTH - 1)
    wiring.move(0, wiring.classes_of_tokens, to=wiring.first)
    wiring.look(1, at_position=0)
    wiring.move(1, wiring.classes_of_tokens, to=wiring.second)
    gate = -1.0 if uses == "rule" else 0.0
    for label in range(N_CLASSES):
        closed = {wiring.second + other: gate for other in range(N_CLASSES)}
        wiring.hidden(2 * label, reads={wiring.first + label: 1.0} | closed, writes={label: 1.0})
        wiring.hidden(2 * label + 1, reads={wiring.second + label: 1.0}, writes={label: -gate})
    return wiring.model


def looking_and_moving_model(*, layer: int = 0) -> HookedTransformer:
    """Head 0 always looks at one place and moves content; head 1 looks by content and moves place.

    Head 0 looks at position 0 and writes the class of the token there. Head 1 looks at the marker,
    the largest integer (see `marked_tokens`), and writes the class of the *position* where it is.
    The logits are the sum of both. Known answers:
        Head 0: replacing its pattern by the reference mean changes no logit, since it is the same
            in every example; replacing its values by their reference mean makes what it writes
            the same for all examples.
        Head 1: replacing its values by their mean per position changes no logit, since they
            depend on nothing else; replacing its pattern makes what it writes the same for all.
    """
    wiring = _Wiring(layer)
    wiring.look(0, at_position=0)
    wiring.move(0, wiring.classes_of_tokens, to=wiring.first)
    wiring.look(1, at_token=N_INTEGERS - 1)
    wiring.move(1, wiring.classes_of_positions, to=wiring.second)
    for label in range(N_CLASSES):
        for unit, start in enumerate((wiring.first, wiring.second)):
            wiring.hidden(2 * label + unit, reads={start + label: 1.0}, writes={label: 1.0})
    return wiring.model


def all_tokens() -> torch.Tensor:
    """Every sequence of the hand-wired vocabulary, with "=" at the end."""
    integers = torch.cartesian_prod(*[torch.arange(N_INTEGERS)] * LENGTH)
    return with_equals(integers)


def marked_tokens() -> torch.Tensor:
    """Every sequence that holds the marker, the largest integer, exactly once."""
    tokens = all_tokens()
    return tokens[(tokens[:, :-1] == N_INTEGERS - 1).sum(1) == 1]


def with_equals(integers: torch.Tensor) -> torch.Tensor:
    """The integers and then the "=" token."""
    return torch.cat([integers, torch.full((len(integers), 1), N_INTEGERS)], dim=1)


class _Wiring:
    """Coordinates: tokens, positions, classes from one head, from the other, and the output's."""

    def __init__(self, layer: int) -> None:
        d_vocab, n_ctx = N_INTEGERS + 1, LENGTH + 1
        self.position = d_vocab
        self.first = self.position + n_ctx
        self.second = self.first + N_CLASSES
        self.output = self.second + N_CLASSES
        spec = ModelSpec(
            n_layers=2,
            n_heads=2,
            d_model=self.output + N_CLASSES,
            d_mlp=2 * N_CLASSES,
            d_vocab=d_vocab,
            d_vocab_out=N_CLASSES,
            n_ctx=n_ctx,
        )
        self.model = build(spec)
        self.model.requires_grad_(requires_grad=False)
        self.attn = self.model.blocks[layer].attn
        self.mlp = self.model.blocks[layer].mlp
        self.model.W_E[:] = torch.eye(spec.d_vocab, spec.d_model)
        self.model.W_pos[:] = torch.eye(spec.d_model)[self.position : self.position + n_ctx]
        self.model.W_U[self.output :] = torch.eye(N_CLASSES)
        self.model.requires_grad_(requires_grad=True)
        self.classes_of_tokens = {v: v % N_CLASSES for v in range(N_INTEGERS)}
        self.classes_of_positions = {self.position + p: p % N_CLASSES for p in range(LENGTH)}

    def look(self, head: int, *, at_position: int | None = None, at_token: int | None = None):
        key = self.position + at_position if at_position is not None else at_token
        with torch.no_grad():
            self.attn.W_Q[head, self.position + LENGTH, 0] = _GAIN * self.attn.W_Q.shape[-1] ** 0.5
            self.attn.W_K[head, key, 0] = 1.0

    def move(self, head: int, classes: dict[int, int], *, to: int):
        with torch.no_grad():
            for coordinate, label in classes.items():
                self.attn.W_V[head, coordinate, label] = 1.0
            for label in range(N_CLASSES):
                self.attn.W_O[head, label, to + label] = 1.0

    def hidden(
        self, unit: int, *, reads: dict[int, float], writes: dict[int, float], bias: float = 0.0
    ):
        with torch.no_grad():
            for coordinate, weight in reads.items():
                self.mlp.W_in[coordinate, unit] = weight
            self.mlp.b_in[unit] = bias
            for label, weight in writes.items():
                self.mlp.W_out[unit, self.output + label] = weight
