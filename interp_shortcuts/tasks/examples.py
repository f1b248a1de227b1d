"""What every kind of split is: a name, and tensors with one row for each example.

The kinds say which tensors these are: `split.py`, `target_split.py`, `pair_split.py`,
`image_split.py`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeVar

from jaxtyping import Int
from torch import Tensor

Kind = TypeVar("Kind", bound="Examples")  # the run-time type check does not take `Self`


@dataclass(frozen=True, eq=False)
class Examples:
    """A named, fixed set of examples; the fields of a subclass are tensors [example ...].

    Two are equal when they are of one kind, and their name and their content are.
    """

    name: str

    @property
    def _tensors(self) -> dict[str, Tensor]:
        """The fields but the name, in order."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "name"}

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(next(iter(self._tensors.values())))

    def take(self: Kind, indices: Int[Tensor, " taken"], *, name: str | None = None) -> Kind:
        """The examples at these indices, in that order.

        Args:
            indices: Indices of examples.
            name: Name of the new split; without it, this one's.
        """
        taken: dict[str, Any] = {key: value[indices] for key, value in self._tensors.items()}
        return replace(self, name=self.name if name is None else name, **taken)

    @cached_property
    def sha(self) -> str:
        """Hash of the content, order included and name excluded (16 hex digits)."""
        digest = hashlib.sha256()
        for tensor in self._tensors.values():
            kind = "<f4" if tensor.is_floating_point() else "<i8"
            digest.update(repr(tuple(tensor.shape)).encode())
            digest.update(tensor.cpu().numpy().astype(kind).tobytes())
        return digest.hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return (self.name, self.sha) == (other.name, other.sha)

    def __hash__(self) -> int:
        return hash((self.name, self.sha))

    def __len__(self) -> int:
        return self.n
