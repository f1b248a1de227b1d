"""`AttributionGap`: heroes and bloats of any model, from a sampler and a score of one's own.

The measures of this package need a task and a model that a spec describes. This class needs
neither: whatever `HookedTransformer`, and functions that draw sequences and score answers. What is
ranked and compared is the same, and so are the definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.measures.attribution.gap import THRESHOLD, RankGap, check_threshold, rank_gap
from interp_shortcuts.measures.attribution.gradient_reading import (
    BOTH,
    READINGS,
    Batch,
    BatchGradients,
    Means,
    batch_gradients,
)
from interp_shortcuts.measures.effects import require_choices, require_positive
from interp_shortcuts.measures.intervals import mean_with_interval
from interp_shortcuts.models.component_forward import (
    ComponentForward,
    Place,
    component_forward,
    part_of,
    place_of,
    places_of,
)
from interp_shortcuts.models.sites import Component
from interp_shortcuts.streams import torch_stream
from interp_shortcuts.tasks.target_scores import exact_match, token_loss
from interp_shortcuts.tasks.target_split import IGNORED

Drawn: TypeAlias = Tensor | tuple[Tensor, Tensor]
Sampler: TypeAlias = Callable[[torch.Generator], Drawn]
"""Draws a batch: tokens [example position], and what is due at each position; if tokens alone, it
is the next token."""
PerExample: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""From logits [example position class] and targets [example position] to a number an example."""

KINDS = ("mean", "zero")


@dataclass(frozen=True, eq=False)
class _Found:
    """What was read, by component; scores and losses by example."""

    components: tuple[Component, ...]
    gradients: BatchGradients
    plain_score: Float[np.ndarray, " example"]
    drops: dict[str, Float[np.ndarray, "component example"]]
    rises: dict[str, Float[np.ndarray, "component example"]]


@dataclass(frozen=True, eq=False)
class AttributionGap:
    """Gradient attribution of each head and MLP against what taking it away costs.

        gap = AttributionGap(model, batch=lambda generator: (tokens, targets))
        gap.table()   # a row a component: gradient norm, drops, ranks, their difference, role
        gap.rho       # Spearman's correlation of gradient norm and drop

    Three independent samples are drawn: for the mean activations, for the gradients and for the
    scores. Models that a `ModelSpec` cannot describe (rotary positions, attention only, gated MLPs,
    shared keys and values, ...), and models with hooks, are run with hooks, and those they have
    act; others by the plain forward, which is faster. The model is left as it was.

    Attributes:
        model: A `HookedTransformer`, also a compiled one.
        batch: Draws a batch from a generator: tokens [example position], or tokens and targets of
            the same shape, where -100 is not scored. All batches have the same length.
        score: What is lost when a component is ablated: from logits and targets to a number an
            example, larger is better. By default whether all targets are predicted.
        loss: What gradients are taken of, per example; by default the mean cross-entropy over an
            example's targets, in nats. Differentiable.
        n_batches: Batches of each of the three samples.
        seed: Of the samples, streams `("attribution gap", sample)`.
        ablation: The kind of ablation that ranks components, `"mean"` or `"zero"`; the table has
            both.
        reading: Whose gradient norm ranks them: `"W_V"` or `"W_V+W_O"`; see `gradient_reading`.
        threshold: Ranks that make a hero or a bloat: the paper's 6, for 20 components.
    """

    model: nn.Module
    batch: Sampler
    score: PerExample = exact_match
    loss: PerExample = token_loss
    n_batches: int = 10
    seed: int = 0
    ablation: str = "mean"
    reading: str = BOTH
    threshold: float = THRESHOLD

    def __post_init__(self) -> None:
        require_positive(n_batches=self.n_batches)
        require_choices("ablation", (self.ablation,), KINDS)
        require_choices("reading", (self.reading,), tuple(READINGS))
        check_threshold(self.threshold)

    @property
    def rho(self) -> float:
        """Spearman's rho of gradient norm and drop, in [-1, 1]; NaN if either is constant."""
        return self.gap.rho

    @cached_property
    def gap(self) -> RankGap:
        """The ranks and their differences, in the order of the table."""
        found = self._found
        norm = found.gradients.norm.mean(0)[tuple(READINGS).index(self.reading)]
        return rank_gap(norm, found.drops[self.ablation].mean(1))

    def table(self) -> pd.DataFrame:
        """A row a component, by layer.

        Returns:
            `component`; `gradient_norm_W_V` and `gradient_norm_W_V+W_O` (in units of the loss, per
            unit of weight); `weight_gradient` and `activation_gradient` (signed, in units of the
            loss); for each kind of ablation `drop_<kind>` with its 95% interval over examples
            (`_low`, `_high`) in units of the score, and `loss_rise_<kind>`; `n`, the examples
            scored; `attribution_rank`, `importance_rank`, `delta` (their difference) and `role`.
        """
        found, gap = self._found, self.gap
        columns: dict[str, object] = {"component": list(map(str, found.components))}
        for reading, norm in zip(READINGS, found.gradients.norm.mean(0), strict=True):
            columns[f"gradient_norm_{reading}"] = norm
        columns["weight_gradient"] = found.gradients.weight.mean(0)
        columns["activation_gradient"] = found.gradients.activation.mean(0)
        for kind in KINDS:
            drop = mean_with_interval(found.drops[kind].T)
            columns[f"drop_{kind}"] = drop.value
            columns[f"drop_{kind}_low"], columns[f"drop_{kind}_high"] = drop.interval.T
            columns[f"loss_rise_{kind}"] = found.rises[kind].mean(1)
        columns["n"] = len(found.plain_score)
        columns["attribution_rank"] = gap.attribution_rank
        columns["importance_rank"] = gap.importance_rank
        columns["delta"] = gap.delta
        columns["role"] = gap.roles(self.threshold)
        return pd.DataFrame(columns)

    @property
    def baseline(self) -> float:
        """The mean score without ablation, on the examples that drops are means over."""
        return float(self._found.plain_score.mean())

    @cached_property
    def _found(self) -> _Found:
        samples = [self._draw(name) for name in ("reference", "gradients", "scores")]
        shapes = {tuple(tokens.shape[1:]) for sample in samples for tokens, _ in sample}
        if len(shapes) > 1:
            lengths = sorted(shape[0] for shape in shapes)
            raise MeasureError(
                f"`batch` must give sequences of one length; got lengths {lengths}. Means are "
                "taken position by position."
            )
        reference, gradients, scores = samples
        with component_forward(self.model) as forward:
            means = _mean_activations(forward, [tokens for tokens, _ in reference])
            read = batch_gradients(forward, gradients, self._checked("loss", self.loss), means)
            with torch.no_grad():
                parts = [self._scored(forward, one, means) for one in scores]
        whole = [np.concatenate(each, axis=-1) for each in zip(*parts, strict=True)]
        score, loss = (array[0] - array[1:] for array in whole)
        n = len(forward.components)
        drops = {kind: score[at * n : (at + 1) * n] for at, kind in enumerate(KINDS)}
        rises = {kind: -loss[at * n : (at + 1) * n] for at, kind in enumerate(KINDS)}
        return _Found(forward.components, read, whole[0][0], drops, rises)

    def _draw(self, sample: str) -> list[Batch]:
        stream = torch_stream(self.seed, "attribution gap", sample)
        return [_with_targets(self.batch(stream)) for _ in range(self.n_batches)]

    def _checked(self, name: str, function: PerExample) -> PerExample:
        """The function, whose result must be one number an example."""

        def call(logits: Tensor, targets: Tensor) -> Tensor:
            found = function(logits, targets)
            if found.shape != logits.shape[:1]:
                raise MeasureError(
                    f"`{name}` must give one number for each of the {len(logits)} examples; got "
                    f"shape {tuple(found.shape)}."
                )
            return found

        return call

    def _scored(
        self, forward: ComponentForward, batch: Batch, means: Means
    ) -> tuple[Float[np.ndarray, "run example"], Float[np.ndarray, "run example"]]:
        """Score and loss of each example: unablated, then each component by each kind."""
        tokens, targets = batch
        targets = targets.to(forward.device)
        clean = forward.clean(tokens)
        scores, losses = [], []

        def run(component: Component | None, value: Tensor | float) -> None:
            edits = {}
            if component is not None:
                edits = {place_of(component): lambda whole: _replaced(component, whole, value)}
            logits = forward.logits(tokens, edits, clean=clean)
            scores.append(self._checked("score", self.score)(logits, targets).double().cpu())
            losses.append(self._checked("loss", self.loss)(logits, targets).double().cpu())

        run(None, 0.0)
        for component in forward.components:
            run(component, part_of(component, means[place_of(component)]))
        for component in forward.components:
            run(component, 0.0)
        return torch.stack(scores).numpy(), torch.stack(losses).numpy()


def _with_targets(drawn: Drawn) -> Batch:
    """Tokens and targets; the next token where there are none."""
    if isinstance(drawn, Tensor):
        last = torch.full_like(drawn[:, :1], IGNORED)
        return drawn, torch.cat([drawn[:, 1:], last], dim=1)
    tokens, targets = drawn
    if tokens.shape != targets.shape:
        raise MeasureError(
            "`batch` must give tokens and targets of the same shape [example position]; got "
            f"{tuple(tokens.shape)} and {tuple(targets.shape)}."
        )
    return tokens, targets


def _mean_activations(
    forward: ComponentForward, batches: Sequence[Int[Tensor, "example position"]]
) -> dict[Place, Float[Tensor, "..."]]:
    """The mean of each place over all sequences, position by position; summed in float64."""
    sums: dict[Place, Tensor] = {}

    def adding(place: Place) -> Callable[[Tensor], Tensor]:
        def edit(activation: Tensor) -> Tensor:
            total = activation.detach().sum(0, dtype=torch.float64)
            sums[place] = sums[place] + total if place in sums else total
            return activation

        return edit

    with torch.no_grad():
        for tokens in batches:
            edits = {place: adding(place) for place in places_of(forward.components)}
            forward.logits(tokens, edits)
    n = sum(len(tokens) for tokens in batches)
    return {place: total / n for place, total in sums.items()}


def _replaced(component: Component, whole: Tensor, value: Tensor | float) -> Tensor:
    """A place's activation with one component's part overwritten."""
    edited = whole.clone()
    part = part_of(component, edited)
    part.copy_(torch.as_tensor(value, device=whole.device).to(whole).expand_as(part))
    return edited
