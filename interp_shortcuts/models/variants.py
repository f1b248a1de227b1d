"""Many variants of one forward pass at once: the same examples, with other activations replaced.

The unablated pass comes from `clean`. A variant leaves it at the first layer that it changes;
variants that have the same replaced so far are one (`variant_tree`), and all go on together along a
leading axis. It equals running the model once per variant with hooks (1e-5 in float32), at a
fraction of the time.

Hooks do not act here, and nothing is known of what a variant is for: that is the business of
`interventions` and of the measures.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.models.clean import CleanPasses
from interp_shortcuts.models.replacements import Donors, Replacement
from interp_shortcuts.models.staged import StagedModel, rows_of
from interp_shortcuts.models.variant_pass import pass_logits
from interp_shortcuts.models.variant_tree import Variant, tree_of
from interp_shortcuts.models.variant_values import Values

Tokens = Int[Tensor, "example position"]


def variant_logits(
    model: nn.Module | StagedModel,
    tokens: Tokens,
    variants: Sequence[Variant],
    *,
    position: int | slice = -1,
    chunk: int = 256,
    clean: CleanPasses | None = None,
) -> Float[Tensor, "variant example *row class"]:
    """The logits at one position, or at some, under each variant, without gradients.

    Args:
        model: The model, or its layout when it is read more than once.
        tokens: The examples, the same for all variants.
        variants: What is replaced.
        position: Where the logits are read; negative counts from the end. A slice asks for a run
            of positions, for which alone the last layer is then computed.
        chunk: How many examples are held at a time; bounds the memory.
        clean: The unablated passes of this model at this position, if they are needed again.

    Returns:
        Logits in at least float32, on the model's device; without the axis `row` if one position
        is asked.

    Raises:
        InterventionError: If a replacement names a layer that is not there, or lacks its donors.
    """
    staged = model if isinstance(model, StagedModel) else StagedModel.of(model)
    staged.check(tokens)
    for variant in variants:
        for replacement in variant:
            _check(staged, tokens, replacement)
    row, length = rows_of(position, tokens.shape[-1]), tokens.shape[-1]
    if clean is None:
        clean = CleanPasses(staged, length=length, row=row, keep=0)
    swapped = [_exchanged(tokens, variant) for variant in variants]
    left = [i for i, exchanged in enumerate(swapped) if exchanged is None]
    tree = tree_of([variants[i] for i in left], n_layers=staged.n_layers, row=row, length=length)
    rows = () if isinstance(row, int) else (row.stop - row.start,)
    logits = staged.W_U.new_empty(len(variants), len(tokens), *rows, len(staged.W_U))
    with torch.no_grad(), torch.autocast(logits.device.type, enabled=False):
        for start in range(0, len(tokens) if left else 0, chunk):
            window = slice(start, min(start + chunk, len(tokens)))
            values = Values(clean, tokens, window)
            logits[left, window] = pass_logits(values, tree)
        others = [exchanged for exchanged in swapped if exchanged is not None]
        if others:
            found = clean.logits(torch.cat(others)).unflatten(0, (len(others), len(tokens)))
            logits[[i for i in range(len(variants)) if i not in set(left)]] = found
    return logits


def _exchanged(tokens: Tokens, variant: Variant) -> Tokens | None:
    """The sequences whose unablated pass the variant is; None if it is none of any sequences.

    Before the first layer the stream knows its own position and token alone, so that another
    sequence's stream at a position is that sequence's token there.
    """
    exchanged = tokens.clone()
    for edit in variant:
        if (edit.site, edit.layer) != ("resid_pre", 0) or not isinstance(edit.value, Donors):
            return None
        at = edit.index(tokens.shape[-1])
        exchanged[:, at] = edit.value.tokens[:, at].to(tokens)
    return exchanged if variant else None


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
