"""In which order a run sees its training examples: all at once, or shuffled anew each epoch."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from interp_shortcuts.errors import StorageError
from interp_shortcuts.streams import torch_stream


class BatchOrder:
    """Draws the examples of each step from the stream `("batches",)` of the run's seed.

    Each epoch is a new shuffle of all examples, cut into batches; where the size does not divide
    the number of examples, the last batch of an epoch is smaller, so that none is left out.
    """

    def __init__(self, n_examples: int, *, batch_size: int | None, seed: int) -> None:
        self._n = n_examples
        self._size = batch_size
        self._generator = torch_stream(seed, "batches")
        self._order = torch.empty(0, dtype=torch.int64)

    def next(self) -> Int[Tensor, " example"] | None:
        """The indices of the next batch; None stands for all examples, in their own order."""
        if self._size is None or self._size >= self._n:
            return None
        if len(self._order) == 0:
            self._order = torch.randperm(self._n, generator=self._generator)
        batch, self._order = self._order[: self._size], self._order[self._size :]
        return batch

    def state(self) -> dict[str, Tensor]:
        """The random state and what is left of the epoch, as tensors."""
        return {"generator": self._generator.get_state(), "order": self._order.clone()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state()`.

        Raises:
            StorageError: If the random state or the epoch's order is missing.
        """
        for key in ("generator", "order"):
            if not isinstance(state.get(key), Tensor):
                raise StorageError(f"the random state of the batches (`{key}`) is missing")
        self._generator.set_state(state["generator"])
        self._order = state["order"].clone()
