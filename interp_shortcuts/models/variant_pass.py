"""All variants of one chunk of examples, layer by layer through their tree.

What is replaced by what is in `variant_values`, which variants share their layers in
`variant_tree`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor

from interp_shortcuts.models.staged import run_of
from interp_shortcuts.models.variant_tree import Level, Node, Tree, key_of
from interp_shortcuts.models.variant_values import Values


def pass_logits(values: Values, tree: Tree) -> Float[Tensor, "variant example *row class"]:
    """The logits at the read positions of each variant, on the chunk that the values are of."""
    staged = values.staged
    at_rows = values.clean.at_rows
    unablated = at_rows(staged.logits(values.base.at(staged.n_layers - 1, "resid_post")))
    state = values.empty(0, "resid_pre")
    for layer, level in enumerate(tree.levels):
        state = _LayerPass(values, layer).run(level, state)
    result = unablated.expand(len(tree.leaves), *unablated.shape).clone()
    changed = [i for i, leaf in enumerate(tree.leaves) if leaf is not None]
    if changed:
        leaves = [leaf for leaf in tree.leaves if leaf is not None]
        result[changed] = at_rows(staged.logits(state)[leaves])
    return result


@dataclass(eq=False)
class _LayerPass:
    """One layer at all its nodes."""

    values: Values
    layer: int
    _moved: dict[object, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def run(
        self, level: Level, state: Float[Tensor, "node example position d_model"]
    ) -> Float[Tensor, "more example row d_model"]:
        """The residual stream after the layer at each node, from that at the nodes before."""
        post = self.values.empty(self.layer, "resid_mid", len(level.nodes))
        own = [node for node in level.nodes if node.attends and node.source is not None]
        shared = [node for node in level.nodes if node.attends and node.source is None]
        if own:
            resid = self._inputs(level, state)
            self._finish(post[: len(own)], own, self._from_inputs(own, resid))
        if shared:
            there = post[len(own) : len(own) + len(shared)]
            if self.values.staged.layers[self.layer].norm2.kind is None:
                self._move_by_heads(there, shared)
            else:
                self._finish(there, shared, self._from_clean(shared))
        base = self.values.base
        for place, node in enumerate(level.nodes):
            if not node.attends:
                post[place] = base.at(self.layer, "mlp_out")
                self.values.put(post[place], node.at("mlp_out"))
                post[place] += base.at(self.layer, "resid_mid")
            self.values.put(post[place], node.at("resid_post"))
        return post

    def _finish(
        self,
        post: Float[Tensor, "node example row d_model"],
        nodes: Sequence[Node],
        mid: Float[Tensor, "node example row d_model"],
    ) -> None:
        """Adds the MLP, or what replaces it, to the stream between attention and MLP."""
        n = sum(node.needs_mlp for node in nodes)
        if n:
            out = self.values.staged.mlp(self.layer, mid[:n])
            for place, node in enumerate(nodes[:n]):
                self.values.put(out[place], node.at("mlp_out"))
            torch.add(mid[:n], out, out=post[:n])
        for place, node in enumerate(nodes[n:], start=n):
            self.values.put(post[place], node.at("mlp_out"))  # all of it, first of all
            post[place] += mid[place]

    def _inputs(
        self, level: Level, state: Float[Tensor, "node example position d_model"]
    ) -> Float[Tensor, "input example position d_model"]:
        """What the layer starts from."""
        inputs = level.inputs
        if [start.parent for start in inputs] == list(range(len(state))) and not any(
            start.edits for start in inputs
        ):
            return state
        clean = self.values.base.at(self.layer, "resid_pre")
        resid = self.values.empty(self.layer, "resid_pre", len(inputs))
        for place, start in enumerate(inputs):
            resid[place] = clean if start.parent is None else state[start.parent]
            self.values.put(resid[place], start.edits)
        return resid

    def _from_inputs(
        self, nodes: Sequence[Node], resid: Float[Tensor, "input example position d_model"]
    ) -> Float[Tensor, "node example row d_model"]:
        """The stream between attention and MLP at nodes with inputs of their own."""
        row = self.values.row(self.layer)
        x = self.values.staged.layers[self.layer].norm1(resid)
        before = resid if row is None else resid[..., run_of(row), :]
        plain = [place for place, node in enumerate(nodes) if not node.heads]
        edited = [place for place, node in enumerate(nodes) if node.heads]
        sources = [node.source for node in nodes if node.source is not None]  # none is lacking
        if not edited and sources == list(range(len(x))):
            return self._attend(x).add_(before)
        mid = self.values.empty(self.layer, "resid_mid", len(nodes))
        if plain:
            needed = sorted({sources[place] for place in plain})
            found = self._attend(x if len(needed) == len(x) else x[needed])
            for place in plain:
                torch.add(
                    found[needed.index(sources[place])], before[sources[place]], out=mid[place]
                )
        if edited:
            found = self._attend_edited([nodes[place] for place in edited], x)
            for index, place in enumerate(edited):
                torch.add(found[index], before[sources[place]], out=mid[place])
        return mid

    def _attend(
        self, x: Float[Tensor, "input example position d_model"]
    ) -> Float[Tensor, "input example row d_model"]:
        """What the attention adds where nothing in it is replaced."""
        staged, row = self.values.staged, self.values.row(self.layer)
        folded = None if row is None else self.values.clean.folded
        if folded is not None:
            return folded.attend(x).unsqueeze(-2)
        pattern = staged.attend(self.layer, x, row=row)
        return staged.write(self.layer, staged.mix(self.layer, pattern, x))

    def _attend_edited(
        self, nodes: Sequence[Node], x: Float[Tensor, "input example position d_model"]
    ) -> Float[Tensor, "node example row d_model"]:
        """What the attention adds where patterns, values or z are replaced, from its input."""
        staged, row = self.values.staged, self.values.row(self.layer)
        replaced_whole = [self._replaces_z(node) for node in nodes]
        sources = [node.source for node in nodes if node.source is not None]  # none is lacking
        needed = sorted(
            {source for source, whole in zip(sources, replaced_whole, strict=True) if not whole}
        )
        pattern = z = x[:0]
        if needed:
            asked = x if len(needed) == len(x) else x[needed]
            pattern = staged.attend(self.layer, asked, row=row)
            z = staged.mix(self.layer, pattern, asked)
        own = self.values.empty(self.layer, "z", len(nodes))
        for place, node in enumerate(nodes):
            if not replaced_whole[place]:
                index = needed.index(sources[place])
                own[place] = z[index]
                for head in node.heads:
                    edits = node.of_head(head)
                    if any(edit.site != "z" for edit in edits):
                        own[place, :, :, head] = self.values.mixed(
                            self.layer, head, edits, pattern[index][:, head], x[sources[place]]
                        )
            self.values.put(own[place], node.at("z"))
        return staged.write(self.layer, own)

    def _replaces_z(self, node: Node) -> bool:
        """Whether nothing of the layer's input reaches z."""
        whole = {edit.head for edit in node.at("z") if edit.positions is None}
        return len(whole) == self.values.staged.n_heads

    def _clean_head(self, node: Node, head: int) -> Float[Tensor, "example row d_head"]:
        """z of a head at a node whose input is the unablated one."""
        base, edits = self.values.base, node.of_head(head)
        z = base.at(self.layer, "z")[:, :, head]
        if all(edit.site == "z" for edit in edits):
            z = z.clone()
        else:
            pattern = base.at(self.layer, "pattern")[:, head]
            z = self.values.mixed(self.layer, head, edits, pattern, None)
        for edit in edits:
            if edit.site == "z":
                self.values.fill(z, edit)
        return z

    def _from_clean(self, nodes: Sequence[Node]) -> Float[Tensor, "node example row d_model"]:
        """The stream between attention and MLP at nodes whose input is the unablated one."""
        base, row = self.values.base, self.values.row(self.layer)
        own = self.values.empty(self.layer, "z", len(nodes))
        for place, node in enumerate(nodes):
            own[place] = base.at(self.layer, "z")
            for head in node.heads:
                own[place, :, :, head] = self._clean_head(node, head)
        before = base.at(self.layer, "resid_pre")
        before = before if row is None else before[:, run_of(row)]
        return self.values.staged.write(self.layer, own).add_(before)

    def _move_by_heads(
        self, post: Float[Tensor, "node example row d_model"], nodes: Sequence[Node]
    ) -> None:
        """As `_from_clean` and `_finish`, where no norm lies between attention and MLP.

        What the MLP reads moves by what each replaced head moves it, which nodes share. One node
        after the other, since what is held of one fits into the processor's cache.
        """
        at = self.values.staged.layers[self.layer]
        clean = self.values.base.at(self.layer, "resid_mid")
        clean_read = F.linear(clean, at.W_in, at.b_in)
        for place, node in enumerate(nodes):
            moved = [self._moved_by(node, head) for head in node.heads]
            if node.needs_mlp:
                read = _sum([clean_read, *(by for _, by in moved)])
                out = F.linear(at.activation(read), at.W_out, at.b_out)
                self.values.put(out, node.at("mlp_out"))
                post[place] = out
            else:
                self.values.put(post[place], node.at("mlp_out"))  # all of it, first of all
            post[place] += _sum([clean, *(by for by, _ in moved)])

    def _moved_by(
        self, node: Node, head: int
    ) -> tuple[Float[Tensor, "example row d_model"], Float[Tensor, "example row d_mlp"]]:
        """By how much one replaced head moves the stream, and the MLP before its activation."""
        key = (head, tuple(key_of(edit) for edit in node.of_head(head)))
        if key not in self._moved:
            at, n_heads = self.values.staged.layers[self.layer], self.values.staged.n_heads
            own = at.W_O.unflatten(1, (n_heads, -1))[:, head]
            change = self._clean_head(node, head)
            change -= self.values.base.at(self.layer, "z")[:, :, head]
            self._moved[key] = (F.linear(change, own), F.linear(change, at.W_in @ own))
        return self._moved[key]


def _sum(terms: Sequence[Float[Tensor, "..."]]) -> Float[Tensor, "..."]:
    first, *others = terms
    if not others:
        return first
    total = first + others[0]
    for other in others[1:]:
        total += other
    return total
