"""Putting interventions into a model for the length of a block, with hooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.interventions.base import Intervention
from interp_shortcuts.interventions.references import Place, References
from interp_shortcuts.models.build import eager
from interp_shortcuts.models.hooks import hooked
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.models.replacements import Replacement
from interp_shortcuts.models.sites import Component
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.staged import StagedModel


@contextmanager
def applied(model: nn.Module, *interventions: Intervention) -> Iterator[HookedTransformer]:
    """The model under interventions, while the block runs.

    Interventions act in the order given, after the hooks that the model has already and before
    those that are added inside; the user's hooks all stay. The values of references and sources
    are read once on entry, by a pass without any hooks. Mode and gradients are not touched:
    gradients flow through what is not replaced.

        with applied(model, Ablate("L0.H1", kind="mean", reference=task.split("train"))) as ablated:
            logits = read_logits(ablated, tokens)

    Args:
        model: The model. A compiled one ignores hooks: run what the block yields, the eager
            model inside.
        interventions: What is changed.

    Yields:
        The eager model.

    Raises:
        InterventionError: If something else than an intervention is given, or a component is not
            there; or at the end of the block, if an intervention never fired. An exception of the
            block passes through unchanged.
    """
    module = eager(model)
    spec = ModelSpec.from_model(module)
    for intervention in interventions:
        _check_is_intervention(intervention)
        intervention.check(spec)
    references = References(StagedModel.of(module, dtype=module.W_E.dtype))
    edits = [edit for each in interventions for edit in _edits(each, references)]
    with hooked(module, [(*edit.place, edit) for edit in edits]):
        yield module
        for edit in edits:
            if not edit.n_fired:
                site, layer = edit.place
                raise InterventionError(
                    f"{edit.intervention.label} never fired at {site} of layer {layer}. Run the "
                    "model that `applied` yields inside its block, through that layer; a compiled "
                    "model ignores hooks."
                )


def _check_is_intervention(given: object) -> None:
    if isinstance(given, Intervention):
        return
    if isinstance(given, type) and issubclass(given, Intervention):
        cure = f"Give one made of it: `applied(model, {given.__name__}('L0.H0'))`."
    elif isinstance(given, str | Component):
        cure = f"Say what is done to that component: `applied(model, Ablate('{given}'))`."
    elif isinstance(given, Iterable):
        cure = "Give them one by one, or unpack the list: `applied(model, *interventions)`."
    else:
        cure = "Give them after the model: `applied(model, Ablate('L0.H0'))`."
    raise InterventionError(
        f"`interventions` must be interventions, such as `Ablate('L0.H0')`; got {given!r}. {cure}"
    )


@dataclass(eq=False)
class _Edit:
    """All that one intervention replaces at one site of one layer."""

    intervention: Intervention
    place: Place
    replacements: list[Replacement]
    donated: Float[Tensor, "source ..."] | None
    stream: torch.Generator | None
    n_fired: int = field(default=0)

    def __call__(self, activation: Float[Tensor, "example ..."]) -> Float[Tensor, "example ..."]:
        self.n_fired += 1
        n, length = len(activation), activation.shape[1]
        if self.place[0] == "pattern":
            length = activation.shape[-1]
        donated = self.donated
        if donated is not None:
            donors = self.intervention.donors(n, self.stream)
            donated = donated[donors.to(donated.device)]
        edited = activation.clone()
        for replacement in self.replacements:
            value = replacement.given(length) if donated is None else replacement.part(donated)
            self._check(value, n=n, length=length)
            replacement.put(edited, value, length=length)
        return edited

    def _check(self, value: Float[Tensor, "..."], *, n: int, length: int) -> None:
        if value.ndim >= 2 and value.shape[-2] not in (1, length):
            raise InterventionError(
                f"{self.intervention.label} takes its values from sequences of {value.shape[-2]} "
                f"positions; the model was run on sequences of {length}."
            )
        if value.ndim == 3 and len(value) not in (1, n):
            raise InterventionError(
                f"{self.intervention.label} was given the activations of {len(value)} examples; "
                f"the model was run on {n} in one batch."
            )


def _edits(intervention: Intervention, references: References) -> list[_Edit]:
    by_place: dict[Place, list[Replacement]] = {}
    for replacement in intervention.replacements(references):
        by_place.setdefault((replacement.site, replacement.layer), []).append(replacement)
    source = intervention.donating
    donated = {} if source is None else references.activations(source, list(by_place))
    # Every site draws from its own copy of the stream: all components get the same donors.
    return [
        _Edit(intervention, place, replacements, donated.get(place), intervention.stream())
        for place, replacements in by_place.items()
    ]
