"""The optimiser that a config describes."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from interp_shortcuts.runs.config import OptimConfig


def make_optimizer(
    config: OptimConfig, parameters: Iterable[nn.Parameter]
) -> torch.optim.Optimizer:
    """A torch optimiser over the parameters; weight decay applies to all of them.

    Those that take no gradient, such as positions that a model does not have, are left out.

    Adam and AdamW use torch's fused kernel, one pass over the weights rather than one for each
    operation.
    """
    parameters = [parameter for parameter in parameters if parameter.requires_grad]
    if config.optimizer == "sgd":
        return torch.optim.SGD(
            parameters,
            lr=config.lr,
            momentum=config.momentum,
            weight_decay=config.weight_decay,
        )
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(
        parameters,
        lr=config.lr,
        betas=(config.beta1, config.beta2),
        weight_decay=config.weight_decay,
        fused=True,
    )
