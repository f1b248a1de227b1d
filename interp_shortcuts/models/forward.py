"""Forward passes that only read: logits, attention from the read position, and activations.

One pass over the examples in chunks, reduced as it streams, so that memory does not grow with what
is not asked for. Editing a pass is left to `hooks`; what the numbers mean, to the measures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.models.clean import CleanPasses, Window
from interp_shortcuts.models.hooks import Edit, hooked, reading
from interp_shortcuts.models.lens import HookedTransformer


@dataclass(frozen=True, eq=False)
class Reading:
    """What one pass says about the read position; on the CPU, in float32 or float64.

    Attributes:
        logits: At the read position.
        attention: Weights of the query at the read position over all keys, after softmax.
        scores: The same row before mask and softmax: q . k / sqrt(d_head), biases and
            normalisation included. NaN at keys that a causal model masks, which are those after
            the read position.
    """

    logits: Float[Tensor, "example class"]
    attention: Float[Tensor, "example layer head position"]
    scores: Float[Tensor, "example layer head position"]


def read_logits(
    model: nn.Module,
    tokens: Int[Tensor, "example position"],
    *,
    position: int = -1,
    chunk: int = 4096,
) -> Float[Tensor, "example class"]:
    """The logits at one position, on the CPU, in float32 or float64.

    Hooks that are attached to the model act. The model is left as it was; see `reading`.

    Args:
        model: A `HookedTransformer`, also a compiled one.
        tokens: The examples.
        position: Where the logits are read; negative counts from the end.
        chunk: Examples per forward pass.

    Raises:
        MeasureError: If tokens or position do not fit the model.
    """
    with reading(model) as module:
        index = _check_tokens(module, tokens, position=position)
        parts = [module(part)[:, index].cpu() for part in _chunks(module, tokens, chunk)]
        return torch.cat(parts)


def read_logits_from(
    model: nn.Module,
    residual: Float[Tensor, "example position d_model"],
    *,
    layer: int,
    position: int = -1,
    chunk: int = 4096,
) -> Float[Tensor, "example class"]:
    """As `read_logits`, going on from the residual stream before a layer.

    Args:
        model: A `HookedTransformer`, also a compiled one.
        residual: What `read_site(model, tokens, "resid_pre", layer)` returns, or an edited copy.
        layer: The first block that runs; `n_layers` runs the final normalisation and unembedding.
        position: Where the logits are read; negative counts from the end.
        chunk: Examples per forward pass.
    """
    with reading(model) as module:
        if not 0 <= layer <= module.cfg.n_layers:
            raise MeasureError(
                f"`layer` (={layer}) must be from 0 to `n_layers` (={module.cfg.n_layers})."
            )
        index = _position(position, residual.shape[1])
        dtype = next(module.parameters()).dtype
        parts = [
            module(part.to(dtype), start_at_layer=layer)[:, index].cpu()
            for part in _chunks(module, residual, chunk)
        ]
        return torch.cat(parts)


def read_site(
    model: nn.Module,
    tokens: Int[Tensor, "example position"],
    name: str,
    layer: int | None = None,
    *,
    chunk: int = 4096,
) -> Float[Tensor, "example ..."]:
    """A site's whole activation (shapes in `sites.SITES`), on the CPU, in float32 or float64."""
    kept: list[Tensor] = []
    with reading(model) as module, hooked(module, [(name, layer, _keep(kept))]):
        _check_tokens(module, tokens, position=-1)
        for part in _chunks(module, tokens, chunk):
            module(part, return_type=None)
    return torch.cat(kept)


def read_attention(
    model: nn.Module,
    tokens: Int[Tensor, "example position"],
    *,
    position: int = -1,
    chunk: int = 4096,
) -> Reading:
    """Logits, attention and attention scores of the query at one position, in one pass.

    Hooks that are attached to the model act, before anything is read. The arguments are those of
    `read_logits`.
    """
    with reading(model) as module:
        index = _check_tokens(module, tokens, position=position)
        readings = [_read_chunk(module, part, index) for part in _chunks(module, tokens, chunk)]
        return Reading(
            logits=torch.cat([part.logits for part in readings]),
            attention=torch.cat([part.attention for part in readings]),
            scores=torch.cat([part.scores for part in readings]),
        )


def read_clean(
    clean: CleanPasses, tokens: Int[Tensor, "example position"], *, chunk: int = 1024
) -> Reading:
    """As `read_attention`, of a model without hooks and from passes that are kept.

    Args:
        clean: The passes; they know the read position.
        tokens: The examples.
        chunk: Examples per forward pass.

    Raises:
        InterventionError: If the tokens do not fit the model.
    """
    clean.staged.check(tokens)
    with torch.no_grad(), torch.autocast(clean.staged.W_E.device.type, enabled=False):
        readings = [_read_window(clean, clean.window(part)) for part in tokens.split(chunk)]
    return Reading(
        logits=torch.cat([part.logits for part in readings]),
        attention=torch.cat([part.attention for part in readings]),
        scores=torch.cat([part.scores for part in readings]),
    )


def _read_window(clean: CleanPasses, window: Window) -> Reading:
    last = clean.staged.n_layers - 1

    def rows(site: str) -> Float[Tensor, "example layer head position"]:
        whole = [window.at(layer, site) for layer in range(last)]
        each = [activation[:, :, clean.row] for activation in whole]
        return torch.stack([*each, window.at(last, site)[:, :, 0]], 1).cpu()

    scores = rows("scores")
    if clean.staged.causal:
        assert isinstance(clean.row, int)
        scores[..., clean.row + 1 :] = torch.nan
    logits = clean.staged.logits(window.at(last, "resid_post"))[:, 0].cpu()
    return Reading(logits=logits, attention=rows("pattern"), scores=scores)


def _read_chunk(
    module: HookedTransformer, tokens: Int[Tensor, "example position"], index: int
) -> Reading:
    n_layers = module.cfg.n_layers
    queries: list[Tensor] = []
    keys: list[Tensor] = []
    rows: list[Tensor] = []
    edits: list[tuple[str, int | None, Edit]] = []
    for layer in range(n_layers):
        edits.append(("q", layer, _keep_query(queries, index)))
        edits.append(("k", layer, _keep(keys)))
        edits.append(("pattern", layer, _keep_row(rows, index)))
    with hooked(module, edits):
        logits = module(tokens)[:, index].cpu()
    query, key = torch.stack(queries, 1), torch.stack(keys, 1)
    scores = torch.einsum("elhd,elphd->elhp", query, key) / module.cfg.attn_scale
    if module.cfg.attention_dir == "causal":
        scores[..., index + 1 :] = torch.nan
    return Reading(logits=logits, attention=torch.stack(rows, 1), scores=scores)


def _keep(kept: list[Tensor]) -> Edit:
    """Keeps copies: a later hook that edits in place must not reach them."""

    def edit(activation: Tensor) -> None:
        kept.append(activation.detach().to("cpu", copy=True))

    return edit


def _keep_query(kept: list[Tensor], index: int) -> Edit:
    def edit(activation: Float[Tensor, "example position head d_head"]) -> None:
        kept.append(activation[:, index].detach().to("cpu", copy=True))

    return edit


def _keep_row(kept: list[Tensor], index: int) -> Edit:
    def edit(activation: Float[Tensor, "example head query key"]) -> None:
        kept.append(activation[:, :, index].detach().to("cpu", copy=True))

    return edit


def _chunks(module: HookedTransformer, examples: Tensor, chunk: int) -> Iterator[Tensor]:
    """The examples in order, on the model's device; no examples make one empty chunk."""
    if chunk < 1:
        raise MeasureError(f"`chunk` (={chunk}) must be at least 1.")
    device = next(module.parameters()).device
    for start in range(0, max(len(examples), 1), chunk):
        yield examples[start : start + chunk].to(device)


def _check_tokens(module: HookedTransformer, tokens: Tensor, *, position: int) -> int:
    """The position as a non-negative index, once tokens and position are known to fit."""
    length, n_ctx, d_vocab = tokens.shape[1], module.cfg.n_ctx, module.cfg.d_vocab
    if length > n_ctx:
        raise MeasureError(
            f"The length of `tokens` (={length}) must be at most `n_ctx` (={n_ctx})."
        )
    if tokens.numel() and (int(tokens.min()) < 0 or int(tokens.max()) >= d_vocab):
        raise MeasureError(
            f"`tokens` must be from 0 to `d_vocab` - 1 (={d_vocab - 1}); "
            f"got {int(tokens.min())} to {int(tokens.max())}."
        )
    return _position(position, length)


def _position(position: int, length: int) -> int:
    if not -length <= position < length:
        raise MeasureError(
            f"`position` (={position}) must be within the length of `tokens` (={length})."
        )
    return position % length
