"""The optimiser that a config describes, and its learning rate at each step."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.any_spec import AnySpec
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.runs.config import OptimConfig


def make_optimizer(
    config: OptimConfig, parameters: Iterable[nn.Parameter]
) -> torch.optim.Optimizer:
    """A torch optimiser over the parameters; weight decay applies to all of them.

    Those that take no gradient, such as positions that a model does not have, are left out.

    Adam and AdamW use torch's fused kernel, one pass over the weights rather than one for each
    operation.

    Raises:
        ValueError: If the optimiser is Muon and a parameter is a stack of matrices, which
            `check_optimizer` refuses by the spec.
    """
    parameters = [parameter for parameter in parameters if parameter.requires_grad]
    if config.optimizer == "muon":
        return MuonAndAdamW(config, parameters)
    if config.optimizer == "sgd":
        return torch.optim.SGD(
            parameters,
            lr=config.lr,
            momentum=config.momentum,
            weight_decay=config.weight_decay,
        )
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return _adam(kind, config, parameters)


def check_optimizer(config: OptimConfig, spec: AnySpec) -> None:
    """Refuse an optimiser that cannot train a kind of model.

    Raises:
        ConfigError: If it is Muon, and the model is a transformer or torch has no Muon.
    """
    if config.optimizer != "muon":
        return
    if isinstance(spec, ModelSpec):
        raise ConfigError(
            "`optimizer` 'muon' updates matrices, and the heads of a transformer are stacks of "
            "them; use 'adamw', 'adam' or 'sgd' there."
        )
    if not hasattr(torch.optim, "Muon"):
        raise ConfigError(
            f"`optimizer` 'muon' needs a torch that has it (2.9 or newer); got {torch.__version__}."
        )


def _adam(
    kind: type[torch.optim.Adam], config: OptimConfig, parameters: list[nn.Parameter]
) -> torch.optim.Optimizer:
    return kind(
        parameters,
        lr=config.lr,
        betas=(config.beta1, config.beta2),
        weight_decay=config.weight_decay,
        fused=True,
    )


class MuonAndAdamW(torch.optim.Optimizer):
    """Muon for the matrices and AdamW for all other parameters, stepped as one.

    Muon is torch's own, with torch's defaults apart from `lr`, `momentum` and `weight_decay`; both
    have the same learning rate and weight decay. Embeddings are matrices too, and so is the
    unembedding. It is not for transformers, whose heads are stacks of matrices and whose biases of
    heads are matrices by shape alone.
    """

    def __init__(self, config: OptimConfig, parameters: list[nn.Parameter]) -> None:
        matrices = [parameter for parameter in parameters if parameter.ndim == 2]
        others = [parameter for parameter in parameters if parameter.ndim < 2]
        if len(matrices) + len(others) < len(parameters):
            raise ValueError("`parameters` must be matrices and vectors for Muon.")
        self._parts: dict[str, torch.optim.Optimizer] = {}
        if matrices:
            self._parts["muon"] = torch.optim.Muon(
                matrices,
                lr=config.lr,
                momentum=config.momentum,
                weight_decay=config.weight_decay,
            )
        if others:
            self._parts["adamw"] = _adam(torch.optim.AdamW, config, others)
        super().__init__(parameters, {"lr": config.lr})
        self._share_groups()

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update all parameters; a closure is not supported."""
        assert closure is None
        for part in self._parts.values():
            part.step()

    def state_dict(self) -> dict[str, Any]:
        """The state of both, under `muon` and `adamw`."""
        return {name: part.state_dict() for name, part in self._parts.items()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a `state_dict()`."""
        for name, part in self._parts.items():
            part.load_state_dict(state_dict[name])
        self._share_groups()

    def _share_groups(self) -> None:
        """The groups are those of the parts, so that a learning rate set here is theirs."""
        self.param_groups = [group for part in self._parts.values() for group in part.param_groups]


def learning_rate(config: OptimConfig, step: int, *, n_steps: int) -> float:
    """The learning rate of the step that leads from `step` to `step + 1`, a function of it alone.

    It rises linearly over the first `warmup_steps` steps, w, to `lr`. From there the share of it
    that is used is 1 (constant), 1 - x (linear) or (1 + cos(pi x)) / 2 (cosine), where
    x = (step - w) / (n_steps - w): it would be 0 at `n_steps`, the first step not taken.

    Args:
        config: The optimiser's fields.
        step: Number of steps taken so far, from 0 to `n_steps` - 1.
        n_steps: Number of steps of the run.
    """
    warmup = config.warmup_steps
    if step < warmup:
        return config.lr * (step + 1) / warmup
    if config.lr_schedule == "constant":
        return config.lr
    passed = (step - warmup) / (n_steps - warmup)
    if config.lr_schedule == "linear":
        return config.lr * (1 - passed)
    return config.lr * (1 + math.cos(math.pi * passed)) / 2


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Give all parameters of an optimiser a learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = lr
