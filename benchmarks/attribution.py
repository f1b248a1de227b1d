"""All single ablations of a sequence model, against a plain loop that decodes under hooks.

    python benchmarks/attribution.py
    python benchmarks/attribution.py --quick --json attribution.json

A sorting model of 20 components (4 layers, 4 heads, d_model 128) is trained for a while, and each
head and MLP is mean-ablated on 200 fresh sequences of length 8; asked is the exact match with
greedy decoding. The library (`ablated_scores`) takes one teacher-forced pass, whose exact match is
that of decoding, and shares what ablations have in common. The plain side is what a script over
TransformerLens does: for each component a hook, and for each token of the answer a forward pass
over all sequences. Training and one ablation to warm up are not counted; both sides run in this
process, one after the other, in turns.

On a machine that does other work too, trust the CPU seconds rather than the seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from json import dumps
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import tyro
from torch import Tensor
from transformer_lens import HookedTransformer

from interp_shortcuts.interventions.ablate import Ablate
from interp_shortcuts.measures.attribution.ablated_scores import ablated_scores
from interp_shortcuts.models.build import build
from interp_shortcuts.models.sites import Component, components
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.streams import torch_stream
from interp_shortcuts.tasks.sequences import SequenceSorting
from interp_shortcuts.tasks.target_scores import token_loss
from interp_shortcuts.tasks.target_split import TargetSplit


class Side(NamedTuple):
    """What one side found, and what it cost."""

    exact_match: np.ndarray
    """[component and, first, no ablation]: a fraction."""
    seconds: float
    cpu_seconds: float


def main(
    *,
    quick: bool = False,
    json: Path | None = None,
    threads: int = 1,
    examples: int | None = None,
    steps: int | None = None,
    length: int = 8,
    n_layers: int = 4,
    d_model: int = 128,
    repeats: int | None = None,
) -> int:
    """Times both sides, compares their numbers and prints a table.

    Args:
        quick: 40 sequences and 150 training steps.
        json: File to write the results to.
        threads: Torch's thread count.
        examples: Sequences that each ablation is asked about; 200 unless quick.
        steps: Training steps before, so that there is something to lose; 400 unless quick.
        length: Integers in a sequence.
        n_layers: Layers of the model, of 4 heads.
        d_model: Width of the residual stream.
        repeats: How often each side is run, in turns; the fastest counts. 3, or 1 if quick.

    Returns:
        1 if the two sides disagree, else 0.
    """
    torch.set_num_threads(threads)
    n = examples or (40 if quick else 200)
    task = SequenceSorting(n_integers=20)
    n_steps = steps or (150 if quick else 400)
    model = trained(task, n_steps, length=length, n_layers=n_layers, d_model=d_model)
    asked, reference = (
        task.batch(size, torch_stream(0, "benchmark", name), length)
        for size, name in ((n, "examples"), (512, "reference"))
    )
    parts = components(ModelSpec.from_model(model))
    sides: dict[str, Callable[[tuple[Component, ...]], np.ndarray]] = {
        "library": partial(library_side, model, asked, reference),
        "plain": partial(plain_side, model, task, asked, reference),
    }
    found: dict[str, Side] = {}
    for name, side in sides.items():
        side(parts[:1])
        found[name] = timed(side, parts)
    for _ in range((repeats or (1 if quick else 3)) - 1):
        for name, side in sides.items():
            again = timed(side, parts)
            found[name] = min(found[name], again, key=lambda one: one.cpu_seconds)
    results = compared(**found, n_components=len(parts), n_examples=n)
    results |= {"threads": threads, "length": length}
    print_table(results, parts, found)
    if json is not None:
        json.write_text(dumps(results, indent=2) + "\n")
    return 0 if results["max_abs_difference"] < 1e-9 else 1


def trained(
    task: SequenceSorting, steps: int, *, length: int, n_layers: int, d_model: int
) -> HookedTransformer:
    """A model that sorts some sequences, by a plain loop."""
    spec = ModelSpec(
        n_layers=n_layers,
        n_heads=4,
        d_model=d_model,
        d_mlp=4 * d_model,
        normalization="LN",
        activation="gelu",
        d_vocab=task.n_tokens,
        d_vocab_out=task.n_classes,
        n_ctx=task.context,
        positions="none",
    )
    model = build(spec, seed=0)
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    stream = torch_stream(0, "benchmark", "train")
    for _ in range(steps):
        batch = task.batch(64, stream, length)
        loss = token_loss(model(batch.tokens), batch.targets).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model


def timed(
    side: Callable[[tuple[Component, ...]], np.ndarray], parts: tuple[Component, ...]
) -> Side:
    """One run of a side over all components."""
    start, cpu_start = time.perf_counter(), time.process_time()
    exact_match = side(parts)
    return Side(exact_match, time.perf_counter() - start, time.process_time() - cpu_start)


def library_side(
    model: HookedTransformer,
    asked: TargetSplit,
    reference: TargetSplit,
    parts: tuple[Component, ...],
) -> np.ndarray:
    """Every ablation by `ablated_scores`."""
    runs = [Ablate(part, kind="mean", reference=reference) for part in parts]
    return ablated_scores(model, asked, [(), *runs]).exact_match.mean(1)


def plain_side(
    model: HookedTransformer,
    task: SequenceSorting,
    asked: TargetSplit,
    reference: TargetSplit,
    parts: tuple[Component, ...],
) -> np.ndarray:
    """One ablation after the other, each decoded token by token with `run_with_hooks`."""
    with torch.no_grad():
        _, cache = model.run_with_cache(
            reference.tokens, names_filter=lambda name: name.endswith(("hook_z", "hook_mlp_out"))
        )
        means = {name: value.mean(0) for name, value in cache.items()}
        prompts = task.prompts(asked)
        n_new = asked.tokens.shape[1] - prompts.shape[1] + 1
        due = asked.targets[:, prompts.shape[1] - 1 :]
        found = []
        for part in (None, *parts):
            hooks: list[Any] = [] if part is None else [hook_of(part, means)]
            tokens = prompts
            for _ in range(n_new):
                logits = model.run_with_hooks(tokens, fwd_hooks=hooks)
                tokens = torch.cat([tokens, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
            found.append(float((tokens[:, prompts.shape[1] :] == due).all(1).double().mean()))
    return np.array(found)


def hook_of(part: Component, means: dict[str, Tensor]) -> tuple[str, Callable[..., Tensor]]:
    """Puts the mean of the positions that are there into z of a head, or into mlp_out."""
    if part.head is None:
        name = f"blocks.{part.layer}.hook_mlp_out"
        return name, lambda out, hook: means[name][: out.shape[1]].expand_as(out)  # noqa: ARG005
    name = f"blocks.{part.layer}.attn.hook_z"

    def ablate(z: Tensor, hook: object) -> Tensor:
        del hook
        z[:, :, part.head] = means[name][: z.shape[1], part.head]
        return z

    return name, ablate


def compared(library: Side, plain: Side, *, n_components: int, n_examples: int) -> dict[str, Any]:
    """The results, fit for JSON."""
    return {
        "ratio": plain.cpu_seconds / library.cpu_seconds,
        "seconds": library.seconds,
        "plain_seconds": plain.seconds,
        "cpu_seconds": {"library": library.cpu_seconds, "plain": plain.cpu_seconds},
        "max_abs_difference": float(np.abs(library.exact_match - plain.exact_match).max()),
        "largest_drop": float(library.exact_match[0] - library.exact_match[1:].min()),
        "exact_match": float(library.exact_match[0]),
        "n_components": n_components,
        "n_examples": n_examples,
    }


def print_table(
    results: dict[str, Any], parts: tuple[Component, ...], found: dict[str, Side]
) -> None:
    """What was found, to standard output."""
    print(
        f"mean ablation of each of {results['n_components']} components, exact match on "
        f"{results['n_examples']} sequences of length {results['length']}, "
        f"{results['threads']} thread(s)"
    )
    print()
    print(f"{'':14}{'library':>10}{'plain':>10}{'plain / library':>18}")
    for name, one, other in (
        ("seconds", results["seconds"], results["plain_seconds"]),
        ("CPU seconds", *results["cpu_seconds"].values()),
    ):
        print(f"{name:14}{one:10.2f}{other:10.2f}{other / one:18.1f}")
    print()
    print("exact match")
    rows = zip(
        ("none", *parts), found["library"].exact_match, found["plain"].exact_match, strict=True
    )
    for part, mine, theirs in rows:
        print(f"  {part!s:12}{mine:10.3f}{theirs:10.3f}")
    print()
    print(f"largest difference {results['max_abs_difference']:.1e}")


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
