"""What the tests of the causal measures share: tasks that the hand-wired models solve, and runs
with TransformerLens's own hooks, slow and plain, to compare with.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from handwired_causal import LENGTH, N_INTEGERS, marked_tokens

from interp_shortcuts.models.build import build, load_weights, parameter_shapes
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.tasks.split import Split
from interp_shortcuts.tasks.task import ShortcutTask


def wired_task(**sizes):
    """Rule: the class of the first integer; shortcut: that of the last, v mod 2."""
    sizes = {"n_train": 60, "n_validation": 40, "n_adversarial": 40} | sizes
    return ShortcutTask(
        label=lambda integers: integers[:, 0] % 2,
        shortcut=lambda integers: integers[:, -1] % 2,
        n_integers=N_INTEGERS,
        length=LENGTH,
        name="first_or_last",
        **sizes,
    )


def three_class_task(**sizes):
    sizes = {"n_train": 50, "n_validation": 30, "n_adversarial": 30, "seed": 3} | sizes
    return ShortcutTask.named("max_mod3", n_integers=7, length=3, **sizes)


def random_model(task, *, normalization="LN", **changes):
    """Every parameter random, so that no component is idle; logits are 0 on average."""
    sizes = {"n_layers": 2, "n_heads": 2, "d_model": 8, "d_mlp": 6} | changes
    spec = ModelSpec(
        **sizes,
        normalization=normalization,
        d_vocab=task.n_tokens,
        d_vocab_out=task.n_classes,
        n_ctx=task.context,
    )
    model = build(spec)
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: (0.4 if normalization == "none" else 0.9) * torch.randn(shape, generator=generator)
        for name, shape in parameter_shapes(spec).items()
    }
    load_weights(model, weights)
    with torch.no_grad():
        model.unembed.b_U -= model(task.split("train").tokens)[:, -1].mean(0)
    return model


@dataclass(frozen=True, eq=False)
class MarkedTask:
    """Every sequence with exactly one marker, as reference and as every other split.

    The label is the class of the first integer (`asks="content"`), or that of the marker's
    position (`asks="place"`).
    """

    asks: str
    name: str = "marked"
    n_tokens: int = N_INTEGERS + 1
    n_classes: int = 2
    context: int = LENGTH + 1
    read_position: int = LENGTH
    chance: float = 0.5

    @property
    def fingerprint(self):
        return f"marked-{self.asks}"

    @property
    def record(self):
        return {}

    @property
    def splits(self):
        tokens = marked_tokens()
        place = (tokens == N_INTEGERS - 1).int().argmax(1) % 2
        labels = tokens[:, 0] % 2 if self.asks == "content" else place
        return {
            name: Split(name, tokens, labels, labels)
            for name in ("train", "validation", "adversarial")
        }

    def split(self, name):
        return self.splits[name]

    def loss(self, logits, labels):
        return torch.nn.functional.cross_entropy(logits, labels, reduction="none")

    def predictions(self, logits):
        return logits.argmax(-1)

    def correct(self, logits, labels):
        return self.predictions(logits) == labels


def hooked_logits(model, tokens, edits):
    """Logits at "=" with each edit `(hook point, function of the activation)` made."""

    def hook_of(change):
        def hook(activation, hook):
            return change(activation.clone())

        return hook

    hooks = [(point, hook_of(change)) for point, change in edits]
    with torch.no_grad():
        return model.run_with_hooks(tokens, fwd_hooks=hooks)[:, -1]


def cached(model, tokens):
    with torch.no_grad():
        return model.run_with_cache(tokens)[1]


def members(name, *, n_layers=2, n_heads=2):
    """What a name stands for, as (layer, head or None)."""
    heads = [(layer, head) for layer in range(n_layers) for head in range(n_heads)]
    sets = {
        "all heads": heads,
        "all mlps": [(layer, None) for layer in range(n_layers)],
        **{f"L{layer}.heads": [h for h in heads if h[0] == layer] for layer in range(n_layers)},
        **{f"L{layer}.mlp": [(layer, None)] for layer in range(n_layers)},
        **{f"L{layer}.H{head}": [(layer, head)] for layer, head in heads},
    }
    return sets[name]


def point(layer, head):
    return f"blocks.{layer}.attn.hook_z" if head is not None else f"blocks.{layer}.hook_mlp_out"


def put(head, value):
    """A change that writes `value` [example position feature] into a head, or everywhere."""

    def change(activation):
        if head is None:
            activation[:] = value
        else:
            activation[:, :, head] = value
        return activation

    return change


def paired(task, split, plain, ablated):
    """The three effects and their intervals, one example after the other."""
    rows = []
    for before, after, label in zip(plain, ablated, split.labels, strict=True):
        others = [c for c in range(task.n_classes) if c != int(label)]

        def difference(logits, label=int(label), others=others):
            return float(logits[label]) - float(np.mean([float(logits[c]) for c in others]))

        def loss(logits, label=int(label)):
            return float(torch.logsumexp(logits.double(), 0) - logits[label].double())

        rows.append(
            [
                float(before.argmax() == label) - float(after.argmax() == label),
                loss(after) - loss(before),
                difference(before) - difference(after),
            ]
        )
    rows = np.array(rows)
    error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    return rows.mean(axis=0), rows.mean(axis=0) - 1.959964 * error
