"""The unablated pass, computed once for each distinct sequence however often it is asked for.

A checkpoint's measures ask for the same sequences again and again: as examples, as a reference, as
donors, and as the same sequence with one token exchanged. Which activations are replaced in them is
left to `variants`; the arithmetic is that of `staged`, so hooks do not act.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp_shortcuts.models.folded import Folded
from interp_shortcuts.models.staged import Stage, StagedModel

NUMBERS_KEPT = 2**25
"""Activations are kept for as many sequences as make this many numbers; the rest is computed
each time."""
AT_ONCE = 1024
"""Sequences in one pass, few enough for the processor's cache."""
_SITES = ("resid_pre", "x", "scores", "pattern", "z", "resid_mid", "mlp_out")

Tokens = Int[Tensor, "example position"]


class Window:
    """The unablated activations of some sequences, each site gathered when it is first asked for.

    Args:
        stages: Of some sequences, layer by layer.
        rows: Which of them these sequences are; None if they are they.
    """

    def __init__(self, stages: Sequence[Stage], rows: Int[Tensor, " example"] | None) -> None:
        self._stages, self._rows = stages, rows
        self._gathered: dict[tuple[int, str], Tensor] = {}

    def at(self, layer: int, site: str) -> Float[Tensor, "example ..."]:
        """A site of `Stage`, of these sequences; to be read only."""
        if site == "resid_post":
            return self.at(layer, "resid_mid") + self.at(layer, "mlp_out")
        whole = getattr(self._stages[layer], site)
        if self._rows is None:
            return whole
        if site == "x" and whole is self._stages[layer].resid_pre:
            site = "resid_pre"  # without a normalisation they are one
        if (layer, site) not in self._gathered:
            self._gathered[layer, site] = whole.index_select(0, self._rows)
        return self._gathered[layer, site]


class _Numbering:
    """Numbers distinct sequences in the order in which they are first met."""

    def __init__(self) -> None:
        self._codes = np.zeros(0, dtype=np.int64)  # sorted
        self._numbers = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._codes)

    def find(self, codes: Int[np.ndarray, " example"]) -> Int[np.ndarray, " example"]:
        """The numbers of known sequences; -1 for the others."""
        if not len(self._codes):
            return np.full(len(codes), -1)
        place = np.searchsorted(self._codes, codes).clip(max=len(self._codes) - 1)
        return np.where(self._codes[place] == codes, self._numbers[place], -1)

    def add(self, codes: Int[np.ndarray, " example"]) -> None:
        """Numbers new, distinct sequences from `len` on."""
        numbers = np.concatenate([self._numbers, np.arange(len(self), len(self) + len(codes))])
        codes = np.concatenate([self._codes, codes])
        order = np.argsort(codes)
        self._codes, self._numbers = codes[order], numbers[order]


class CleanPasses:
    """What a model computes on sequences when nothing is replaced, in the last layer at some rows.

    Args:
        staged: The model.
        length: The number of positions of the sequences.
        row: The read position, counted from the start, or a run of them.
        keep: Up to how many numbers are kept; 0 for none.
    """

    def __init__(
        self, staged: StagedModel, *, length: int, row: int | slice, keep: int = NUMBERS_KEPT
    ) -> None:
        self.staged, self.length, self.row = staged, length, row
        codable = len(staged.W_E) ** length < 2**63
        self._keep = keep if codable else 0
        self._digits = len(staged.W_E) ** np.arange(length if codable else 0)
        self._known = _Numbering()
        self._answered = _Numbering()
        self._folded: Folded | None = None
        self._stages: list[Stage] = []
        self._logits: list[Tensor] = []

    def window(self, tokens: Tokens) -> Window:
        """The activations of sequences that fit the model."""
        rows = self._rows(tokens) if self._keep and len(tokens) else None
        if rows is None:
            return Window(self._pass(tokens), None)
        return Window(self._stages, rows)

    def logits(self, tokens: Tokens) -> Float[Tensor, "example *row class"]:
        """The logits at the row, or at each of the rows, of sequences that fit the model."""
        if not self._keep or not len(tokens):
            return torch.cat([self._answer(part) for part in tokens.split(AT_ONCE)])
        codes = self._codes(tokens)
        distinct, first, back = np.unique(codes, return_index=True, return_inverse=True)
        new = self._answered.find(distinct) < 0
        if new.any():
            chosen = tokens[torch.from_numpy(first[new])]
            self._logits += [self._answer(part) for part in chosen.split(AT_ONCE)]
            self._logits = [torch.cat(self._logits)]
            self._answered.add(distinct[new])
        rows = torch.from_numpy(self._answered.find(distinct)[back])
        return self._logits[0][rows.to(self._logits[0].device)]

    @property
    def folded(self) -> Folded | None:
        """The last layer with its matrices multiplied out; None where that does not pay."""
        if isinstance(self.row, slice):
            return None
        if self._folded is None and Folded.pays(self.staged):
            self._folded = Folded.of(self.staged, self.staged.n_layers - 1, row=self.row)
        return self._folded

    def at_rows(
        self, computed: Float[Tensor, "*batch row class"]
    ) -> Float[Tensor, "*batch *row class"]:
        """Logits of what the last layer computes, without the axis of rows if there is one row."""
        return computed[..., 0, :] if isinstance(self.row, int) else computed

    def _codes(self, tokens: Tokens) -> Int[np.ndarray, " example"]:
        return tokens.cpu().numpy() @ self._digits

    def _pass(self, tokens: Tokens) -> list[Stage]:
        return list(self.staged.stages(tokens.to(self.staged.W_E.device), row=self.row))

    def _answer(self, tokens: Tokens) -> Float[Tensor, "example *row class"]:
        rows = self._known.find(self._codes(tokens)) if self._keep else np.array([-1])
        if (rows < 0).any():
            resid = self._pass(tokens)[-1].resid_post
        else:
            window = Window(self._stages, torch.from_numpy(rows).to(self.staged.W_E.device))
            resid = window.at(self.staged.n_layers - 1, "resid_post")
        return self.at_rows(self.staged.logits(resid))

    def _rows(self, tokens: Tokens) -> Int[Tensor, " example"] | None:
        """Where the sequences are among the kept ones, new ones added; None if there is no room."""
        codes = self._codes(tokens)
        rows = self._known.find(codes)
        if (rows < 0).any():
            distinct, first = np.unique(codes, return_index=True)
            new = self._known.find(distinct) < 0
            if not self._add(tokens[torch.from_numpy(first[new])]):
                return None
            self._known.add(distinct[new])
            rows = self._known.find(codes)
        return torch.from_numpy(rows).to(self.staged.W_E.device)

    def _add(self, tokens: Tokens) -> bool:
        """Keeps the activations of new sequences, if there is room."""
        start = len(self._known)
        for part in tokens.split(AT_ONCE):
            if self._stages and start + len(tokens) > self._room():
                return False
            stages = self._pass(part)
            if not self._stages:
                self._stages = self._reserved(stages)
                if len(tokens) > self._room():
                    return False
            for mine, found in zip(self._stages, stages, strict=True):
                for site, activation in _activations(found):
                    getattr(mine, site)[start : start + len(part)] = activation
            start += len(part)
        return True

    def _room(self) -> int:
        return len(self._stages[0].resid_pre)

    def _reserved(self, stages: Sequence[Stage]) -> list[Stage]:
        """Room for the activations; the memory is taken as it is written."""
        sizes = [found[0].numel() for stage in stages for _, found in _activations(stage)]
        room = self._keep // sum(sizes)
        reserved = []
        for stage in stages:
            own = {
                site: activation.new_empty(room, *activation.shape[1:])
                for site, activation in _activations(stage)
            }
            reserved.append(Stage(**{"x": own["resid_pre"], **own}))
        return reserved


def _activations(stage: Stage) -> list[tuple[str, Float[Tensor, "example ..."]]]:
    """What a stage holds, by site; `x` is left out where it is `resid_pre` itself."""
    sites = [site for site in _SITES if site != "x" or stage.x is not stage.resid_pre]
    return [(site, getattr(stage, site)) for site in sites]
