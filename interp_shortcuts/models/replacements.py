"""One replaced activation: where it is, and what takes its place.

This is the common form of every intervention on components. `variants` computes many sets of them
at once without hooks; `interventions` puts them into a model with hooks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.models.staged import Rows, run_of

ReplacedSite = Literal["resid_pre", "pattern", "v", "z", "mlp_out", "resid_post"]


@dataclass(frozen=True, eq=False)
class Donors:
    """For each example the sequence whose activation takes the place of its own.

    Replacements that hold the same object share its pass.
    """

    tokens: Int[Tensor, "example position"]


Value: TypeAlias = Tensor | Callable[[int], Tensor] | Donors | None

HEAD_AXIS = {"pattern": -3, "v": -2, "z": -2}
"""Where the heads are on the sites that have them, counted from the end."""


@dataclass(frozen=True, eq=False)
class Replacement:
    """A component's activation at one site of one layer, and its value.

    Attributes:
        site: `z` is before W_O; `pattern` after softmax; `mlp_out` what the MLP adds.
        layer: The layer.
        head: The head on `pattern`, `v` and `z`; None on the others.
        value: A tensor that broadcasts to [example position feature] (`pattern`: [example query
            key]); a function that makes one from the number of positions; or the donors whose
            activation at the same place it is. None leaves open which donors.
        positions: The positions (`pattern`: queries) that are replaced, negative ones counted
            from the end; None for all.
    """

    site: ReplacedSite
    layer: int
    head: int | None = None
    value: Value = None
    positions: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if (self.site in HEAD_AXIS) != (self.head is not None):
            raise InterventionError(
                f"`head` must be given on {', '.join(HEAD_AXIS)} and on no other site; "
                f"got head={self.head} on {self.site!r}."
            )

    def part(self, activation: Float[Tensor, "..."]) -> Float[Tensor, "*batch row feature"]:
        """The component's part of the site's activation, as a view of it."""
        if self.head is None:
            return activation
        return activation.select(HEAD_AXIS[self.site], self.head)

    def put(
        self,
        activation: Float[Tensor, "..."],
        value: Float[Tensor, "..."],
        *,
        row: Rows = None,
        length: int,
    ) -> None:
        """Overwrite the component's part in place.

        Args:
            activation: The site's activation; the caller owns it.
            value: Broadcasts to the part; all rows, or those that the activation has.
            row: The only positions that the activation has; None if it has all.
            length: The number of positions of the sequence.
        """
        self.fill(self.part(activation), value, row=row, length=length)

    def fill(
        self,
        part: Float[Tensor, "*batch row feature"],
        value: Float[Tensor, "..."],
        *,
        row: Rows = None,
        length: int,
    ) -> None:
        """As `put`, where the component's part is all that there is."""
        value = value.to(part)
        if value.ndim >= 2 and value.shape[-2] != part.shape[-2] and value.shape[-2] == length:
            assert row is not None
            value = value[..., run_of(row), :]
        if self.positions is None:
            part.copy_(value)
            return
        index = self.index(length)
        if row is not None:
            rows = range(length)[run_of(row)]
            held = [rows.index(position) for position in index.tolist() if position in rows]
            if not held:
                return
            index = torch.tensor(held, dtype=torch.long)
        index = index.to(part.device)
        part[..., index, :] = value.expand(part.shape)[..., index, :]

    def index(self, length: int) -> Int[Tensor, " replaced"]:
        """The replaced positions, counted from the start.

        Raises:
            InterventionError: If the sequence has no such position.
        """
        chosen = range(length) if self.positions is None else self.positions
        beyond = [position for position in chosen if not -length <= position < length]
        if beyond:
            raise InterventionError(
                f"`positions` must be in [-{length}, {length - 1}] for sequences of {length} "
                f"positions; got {beyond[0]}."
            )
        return torch.tensor([position % length for position in chosen], dtype=torch.long)

    def given(self, length: int) -> Float[Tensor, "..."]:
        """The value for sequences of this length, where it is not a donor's.

        Raises:
            InterventionError: If the value was made for sequences of another length.
        """
        assert not isinstance(self.value, Donors)
        assert self.value is not None
        value = self.value if isinstance(self.value, Tensor) else self.value(length)
        if value.ndim >= 2 and value.shape[-2] not in (1, length):
            raise InterventionError(
                f"A replacement must have as many positions as the sequences (={length}); the one "
                f"for {self.site!r} of layer {self.layer} has {value.shape[-2]}."
            )
        return value
