"""The activations that interventions take their values from: a model's own, on reference examples.

They come from the plain forward in `models.staged`: no hook acts in it, neither the user's nor
another intervention's, and it has no training mode and no gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.models.clean import CleanPasses
from interp_shortcuts.models.replacements import ReplacedSite
from interp_shortcuts.models.staged import Stage, StagedModel, rows_of, run_of
from interp_shortcuts.tasks.split import Split
from interp_shortcuts.tasks.target_split import TargetSplit

Source: TypeAlias = Split | TargetSplit | Int[Tensor, "example position"]
Place: TypeAlias = tuple[ReplacedSite, int]

_MEAN_SITES: tuple[ReplacedSite, ...] = ("pattern", "v", "z", "mlp_out")


def tokens_of(source: Source) -> Int[Tensor, "example position"]:
    """The sequences of a split, or the tokens themselves."""
    return source if isinstance(source, Tensor) else source.tokens


def check_source(name: str, source: object) -> None:
    """Raises an `InterventionError` unless `source` is a split or tokens; `name` is the argument's.

    The name of a split is no split: an intervention knows no task.
    """
    if isinstance(source, Split | TargetSplit | Tensor):
        return
    wanted = f"task.split({source!r})" if isinstance(source, str) else "task.split('train')"
    got = repr(source) if isinstance(source, str) else type(source).__name__
    raise InterventionError(
        f"`{name}` must be a split or tokens [example position]; got {got}. Pass the split "
        f"itself, e.g. `{wanted}`."
    )


def describe_source(source: Source) -> dict[str, Any]:
    """Which examples, and how many; fit for JSON."""
    if not isinstance(source, Tensor):
        return {"split": source.name, "n": source.n, "sha": source.sha}
    return {"split": "tokens", "n": len(source), "sha": None}


class References:
    """Reads activations on reference examples, once for each reference.

    Args:
        staged: The model.
        chunk: Examples per pass; bounds the memory of means.
    """

    def __init__(self, staged: StagedModel, *, chunk: int = 1024) -> None:
        self.staged = staged
        self._chunk = chunk
        # The sources are kept beside what was read from them, so that no `id` is used twice.
        self._means: dict[int, tuple[Source, dict[Place, Tensor]]] = {}
        self._clean: dict[tuple[int, int, int], CleanPasses] = {}

    def clean(self, *, length: int, position: int | slice) -> CleanPasses:
        """The unablated passes of sequences of a length, in the last layer at some positions."""
        row = rows_of(position, length)
        run = run_of(row)
        key = (length, run.start, -1 if isinstance(row, int) else run.stop)
        if key not in self._clean:
            self._clean[key] = CleanPasses(self.staged, length=length, row=row)
        return self._clean[key]

    def mean(self, source: Source, site: ReplacedSite, layer: int) -> Float[Tensor, "..."]:
        """The mean of a site over the examples of a source, position by position.

        Returns:
            `z` and `v` [position head d_head], `pattern` [head query key], `mlp_out`
            [position d_model]; summed in float64.
        """
        if id(source) not in self._means:
            self._means[id(source)] = (source, self._read_means(tokens_of(source)))
        return self._means[id(source)][1][site, layer]

    def _read_means(self, tokens: Int[Tensor, "example position"]) -> dict[Place, Tensor]:
        sums: dict[Place, Tensor] = {}
        for part in self._parts(tokens):
            for layer, stage in enumerate(self._stages(part)):
                for site in _MEAN_SITES:
                    total = self._activation(stage, site, layer).sum(0, dtype=torch.float64)
                    before = sums.get((site, layer))
                    sums[site, layer] = total if before is None else before + total
        return {place: total / len(tokens) for place, total in sums.items()}

    def activations(
        self, source: Source, places: Sequence[Place]
    ) -> dict[Place, Float[Tensor, "example ..."]]:
        """Whole activations of a source, in the precision of the model."""
        kept: dict[Place, list[Tensor]] = {place: [] for place in places}
        for part in self._parts(tokens_of(source)):
            for layer, stage in enumerate(self._stages(part)):
                for site, at in kept:
                    if at == layer:
                        kept[site, at].append(self._activation(stage, site, layer))
        return {place: torch.cat(parts) for place, parts in kept.items()}

    def _parts(
        self, tokens: Int[Tensor, "example position"]
    ) -> tuple[Int[Tensor, "part position"], ...]:
        if len(tokens) == 0:
            raise InterventionError("A reference must have at least one example; got none.")
        self.staged.check(tokens)
        return tokens.split(self._chunk)

    def _stages(self, tokens: Int[Tensor, "example position"]) -> list[Stage]:
        device = self.staged.W_E.device
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            return list(self.staged.stages(tokens.to(device)))

    def _activation(
        self, stage: Stage, site: ReplacedSite, layer: int
    ) -> Float[Tensor, "example ..."]:
        if site == "v":
            with torch.no_grad():
                return self.staged.values(layer, stage.x)
        return getattr(stage, site)
