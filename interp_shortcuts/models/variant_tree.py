"""Which variants of a pass share their layers: a tree from the unablated pass to each variant.

Two variants that replace the same in the first layers are one until they part. What is computed at
each node is in `variants`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from torch import Tensor

from interp_shortcuts.models.replacements import HEAD_AXIS, ReplacedSite, Replacement
from interp_shortcuts.models.staged import Rows, run_of

Variant: TypeAlias = Sequence[Replacement]
"""What is replaced together in one pass. Later ones overwrite earlier ones at the same place; none
at all is the unablated pass."""


@dataclass(frozen=True, eq=False)
class Node:
    """The state after a layer that some variants share.

    Attributes:
        parent: The node of the layer before; None if nothing was replaced until there.
        edits: What is replaced in this layer, in its order.
        source: Index into the layer's `inputs`; None if the layer's input is the unablated one.
        attends: Whether what the attention writes may differ from the unablated pass.
        needs_mlp: Whether the MLP has to be computed.
    """

    parent: int | None
    edits: tuple[Replacement, ...]
    source: int | None
    attends: bool
    needs_mlp: bool

    @property
    def order(self) -> tuple[bool, bool, bool]:
        """Sorts the nodes of a level."""
        return (not self.attends, self.source is None, not self.needs_mlp)

    def at(self, site: ReplacedSite) -> list[Replacement]:
        """What is replaced at one site."""
        return [edit for edit in self.edits if edit.site == site]

    def of_head(self, head: int) -> tuple[Replacement, ...]:
        """What is replaced in one head."""
        return tuple(edit for edit in self.edits if edit.head == head)

    @property
    def heads(self) -> tuple[int, ...]:
        """The heads in which something is replaced."""
        return tuple(sorted({edit.head for edit in self.edits if edit.head is not None}))


@dataclass(frozen=True, eq=False)
class Input:
    """What a layer starts from, if it is not the unablated stream.

    Attributes:
        parent: The node of the layer before; None for the unablated stream.
        edits: What is replaced in it.
    """

    parent: int | None
    edits: tuple[Replacement, ...]


@dataclass(frozen=True, eq=False)
class Level:
    """One layer of the tree.

    Attributes:
        inputs: What the nodes start from.
        nodes: Those that attend come first: with an input of their own and then with the
            unablated one; of either, those that need the MLP come first.
    """

    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Tree:
    """The layers, and each variant's node in the last; None if it is the unablated pass."""

    levels: tuple[Level, ...]
    leaves: tuple[int | None, ...]


def tree_of(variants: Sequence[Variant], *, n_layers: int, row: int | slice, length: int) -> Tree:
    """The tree of some variants, of which only some rows are read.

    Args:
        variants: What each replaces, in layers that there are.
        n_layers: The number of layers.
        row: The position that is read after the last layer, counted from the start, or a run of
            them.
        length: The number of positions.
    """
    here: list[int | None] = [None] * len(variants)
    levels = []
    for layer in range(n_layers):
        only = row if layer == n_layers - 1 else None
        edits = [_effective(variant, layer, row=only, length=length) for variant in variants]
        level, here = _level(here, edits)
        levels.append(level)
    return Tree(tuple(levels), tuple(here))


def _effective(variant: Variant, layer: int, *, row: Rows, length: int) -> tuple[Replacement, ...]:
    """The replacements in a layer that change what is read of it."""
    found: list[Replacement] = []
    for edit in (edit for edit in variant if edit.layer == layer):
        if edit.positions is not None:
            at = set(edit.index(length).tolist())
            if row is not None and edit.site not in ("resid_pre", "v"):
                rows = set(range(length)[run_of(row)])
                if not rows & at:
                    continue
                if rows <= at:
                    at = set(range(length))
            if len(at) == length:
                edit = replace(edit, positions=None)
        if edit.site == "resid_post" and edit.positions is None:
            found = []
        found.append(edit)
    return tuple(found)


def _level(
    here: Sequence[int | None], edits: Sequence[tuple[Replacement, ...]]
) -> tuple[Level, list[int | None]]:
    """One layer: from the node and the edits of each variant."""
    inputs: dict[Any, int] = {}
    made: list[Input] = []
    nodes: dict[Any, Node] = {}
    keys: list[Any] = []
    for parent, own in zip(here, edits, strict=True):
        if parent is None and not own:
            keys.append(None)
            continue
        key = (parent, tuple(key_of(edit) for edit in own))
        keys.append(key)
        if key in nodes:
            continue
        whole = any(edit.site == "resid_post" and edit.positions is None for edit in own)
        first = tuple(edit for edit in own if edit.site == "resid_pre")
        source = None
        if not whole and (parent is not None or first):
            of_input = (parent, tuple(key_of(edit) for edit in first))
            if of_input not in inputs:
                inputs[of_input] = len(made)
                made.append(Input(parent, first))
            source = inputs[of_input]
        attends = source is not None or any(edit.site in HEAD_AXIS for edit in own)
        replaced = any(edit.site == "mlp_out" and edit.positions is None for edit in own)
        attends = attends and not whole
        nodes[key] = Node(parent, own, source, attends, needs_mlp=attends and not replaced)
    order = sorted(nodes, key=lambda key: nodes[key].order)
    place = {key: index for index, key in enumerate(order)}
    level = Level(tuple(made), tuple(nodes[key] for key in order))
    return level, [None if key is None else place[key] for key in keys]


def key_of(edit: Replacement) -> tuple[Any, ...]:
    """Equal for replacements that do the same in a layer.

    Values are compared by where they are in memory.
    """
    value = edit.value
    if isinstance(value, Tensor):
        same: Any = (value.data_ptr(), value.dtype, tuple(value.shape), value.stride())
    else:
        same = id(value)
    return (edit.site, edit.head, edit.positions, same)
