"""Attaching to a model's sites, and leaving the model as it was.

Handles are exact: the user's own hooks stay, act, and are never removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.models.build import eager
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.models.random_state import kept_random_state
from interp_shortcuts.models.sites import site

Edit = Callable[[Tensor], Tensor | None]
"""Takes a site's activation; returns another one, or None to leave it."""

_HALF = (torch.float16, torch.bfloat16)


@contextmanager
def hooked(
    model: nn.Module, edits: Sequence[tuple[str, int | None, Edit]]
) -> Iterator[Counter[str]]:
    """Reads or edits activations while the block runs; then removes these hooks and no others.

    Args:
        model: The model; a compiled one is unwrapped, so call `eager(model)` inside the block.
            One compiled in place by `model.compile()` runs eagerly while the block does.
        edits: `(site, layer, edit)` each; later ones see what earlier ones returned, and all see
            what the user's own hooks returned.

    Yields:
        How often each hook point's edits ran, by `site(name, layer)`: an intervention that never
        fired has had no effect.

    Raises:
        InterventionError: If there is no such site.
    """
    module = eager(model)
    fired: Counter[str] = Counter()
    with _not_compiled(module), ExitStack() as stack:
        for name, layer, edit in edits:
            point = site(name, layer)
            handle = _attach(module, point, edit, fired)
            stack.callback(_detach, module.hook_dict[point], handle)
        yield fired


def _attach(
    module: HookedTransformer, point: str, edit: Edit, fired: Counter[str]
) -> torch.utils.hooks.RemovableHandle:
    if point not in module.hook_dict:
        raise InterventionError(
            f"The model has no hook point {point!r}; its `n_layers` is {module.cfg.n_layers}."
        )

    def hook(_module: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> Tensor | None:
        fired[point] += 1
        return edit(output)

    return module.hook_dict[point].register_forward_hook(hook)


def _detach(point: nn.Module, handle: torch.utils.hooks.RemovableHandle) -> None:
    handle.remove()
    assert handle.id not in point._forward_hooks, "a hook outlived its block"


def has_hooks(model: nn.Module) -> bool:
    """Whether a hook is attached anywhere in the model, so that a plain forward would differ."""
    return any(
        part._forward_hooks
        or part._forward_pre_hooks
        or part._backward_hooks
        or part._backward_pre_hooks
        for part in model.modules()
    )


@contextmanager
def reading(model: nn.Module) -> Iterator[HookedTransformer]:
    """A model that can be called for its values: eager, in eval mode, without gradients.

    Half-precision weights are read in float32 and autocasting is off, because rounding changes
    ranks. Everything is as it was afterwards, also after an exception: the mode of each submodule,
    the parameters (the same objects, with their `requires_grad`), hooks, and random state.

    Yields:
        The eager model; call this one.
    """
    module = eager(model)
    device = next(module.parameters()).device.type
    with (
        kept_random_state(),
        torch.no_grad(),
        torch.autocast(device, enabled=False),
        _eval_mode(module),
        _not_compiled(module),
        _at_least_float32(module),
    ):
        yield module


@contextmanager
def _eval_mode(module: nn.Module) -> Iterator[None]:
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


@contextmanager
def _not_compiled(module: nn.Module) -> Iterator[None]:
    """Undoes `module.compile()`, which keeps the class and would ignore our hooks."""
    compiled = [
        (part, part._compiled_call_impl)
        for part in module.modules()
        if getattr(part, "_compiled_call_impl", None) is not None
    ]
    for part, _ in compiled:
        part._compiled_call_impl = None
    try:
        yield
    finally:
        for part, call in compiled:
            part._compiled_call_impl = call


@contextmanager
def _at_least_float32(module: HookedTransformer) -> Iterator[None]:
    """Swaps half-precision parameters for float32 copies, and puts the same objects back.

    The config's dtype follows, since normalisations round their output to it.
    """
    config_dtype = module.cfg.dtype
    halves = [
        (part, name, parameter)
        for part in module.modules()
        for name, parameter in part._parameters.items()
        if parameter is not None and parameter.dtype in _HALF
    ]
    try:
        for part, name, parameter in halves:
            part._parameters[name] = nn.Parameter(parameter.float(), requires_grad=False)
        module.cfg.dtype = next(module.parameters()).dtype
        yield
    finally:
        for part, name, parameter in halves:
            part._parameters[name] = parameter
        module.cfg.dtype = config_dtype
