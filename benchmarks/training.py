"""A training step, against a plain loop over TransformerLens's own forward.

    python benchmarks/training.py
    python benchmarks/training.py --quick --json training.json

Both sides take the same full-batch steps of the same model from the same weights, each in a process
of its own: the plain side runs the HookedTransformer, takes the loss at the last position, goes
backward and lets AdamW update; the library side is what `train` does at a step, without its
evaluations. The first two steps are not counted. Losses of both are compared.

How far a step is from the processor's limit is said in two ways, both from the matrix products
alone, whose rate is measured on the shapes that occur:

- *pruned*: the products of a step that computes each activation that the read position depends on
  once for each example. The share is the time that these products alone would take over the time
  of a step, so a step that leaves out products which examples have in common gains by it.
- *executed*: the products that are in fact taken.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from json import dumps
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import tyro
from machine.costs import held_memory, peak_memory

from interp_shortcuts.models.build import build
from interp_shortcuts.models.chunks import ChunkedSequences
from interp_shortcuts.presets import max_parity_demo
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.tasks.task import ShortcutTask
from interp_shortcuts.training.environment import training_environment
from interp_shortcuts.training.gradient import MeanLoss
from interp_shortcuts.training.optim import make_optimizer

MIB = 2**20
WARM_UP = 2
Kind = Literal["plain", "float32", "bfloat16"]


@dataclass(frozen=True)
class Plan:
    """What a side is asked to do."""

    config: RunConfig
    threads: int
    n_steps: int


class Side(NamedTuple):
    """What a side did, and what it cost."""

    losses: list[float]
    seconds: float
    """The median of a step."""
    peak: float
    """Bytes beyond those held before the first step."""


class Product(NamedTuple):
    """A matrix product [m, k] x [k, n], and how often a step takes it."""

    m: int
    k: int
    n: int
    times: int

    @property
    def flops(self) -> float:
        """Floating-point operations of all of them."""
        return 2.0 * self.m * self.k * self.n * self.times


def main(
    *,
    quick: bool = False,
    json: Path | None = None,
    threads: int = 2,
    n_steps: int | None = None,
    growth: bool = True,
) -> int:
    """Times both sides, compares their losses and prints a table.

    Args:
        quick: 2,048 examples and few steps; no growth.
        json: File to write the results to.
        threads: Torch's thread count.
        n_steps: Steps that are timed on each side; 10, or 4 if quick.
        growth: Also how a step grows with examples, length, width and layers.

    Returns:
        1 if the losses of both sides differ by more than 1e-4 in float32, else 0.
    """
    examples = 2048 if quick else 16_384
    base = max_parity_demo(length=7, n_train=examples, n_validation=64, n_adversarial=64)
    plan = Plan(base, threads, WARM_UP + (n_steps or (4 if quick else 10)))
    plain, single, half = (alone(plan, kind) for kind in ("plain", "float32", "bfloat16"))
    pruned, executed = pruned_products(base), executed_products(base)
    with torch_threads(threads):
        limit = {name: seconds_of(one) for name, one in (("p", pruned), ("e", executed))}
    apart = float(np.abs(np.subtract(plain.losses, single.losses)).max())
    flops = sum(one.flops for one in pruned)
    results: dict[str, Any] = {
        "float32_ratio": plain.seconds / single.seconds,
        "bfloat16_ratio": plain.seconds / half.seconds,
        "float32_share_of_matmul": limit["p"] / single.seconds,
        "float32_share_of_matmul_executed": limit["e"] / single.seconds,
        "peak_memory_ratio": single.peak / plain.peak,
        "seconds": {
            "plain": plain.seconds,
            "float32": single.seconds,
            "bfloat16": half.seconds,
            "products_pruned": limit["p"],
            "products_executed": limit["e"],
        },
        "gflops_of_pruned_step": {
            "plain": flops / plain.seconds / 1e9,
            "float32": flops / single.seconds / 1e9,
            "bfloat16": flops / half.seconds / 1e9,
            "products_alone": flops / limit["p"] / 1e9,
        },
        "products": {
            "pruned_gflop": flops / 1e9,
            "executed_gflop": sum(one.flops for one in executed) / 1e9,
        },
        "peak_memory_mib": {
            kind: side.peak / MIB
            for kind, side in (("plain", plain), ("float32", single), ("bfloat16", half))
        },
        "max_abs_difference": apart,
        "max_abs_difference_bfloat16": float(np.abs(np.subtract(plain.losses, half.losses)).max()),
        "bfloat16_in_hardware": bfloat16_in_hardware(),
        "threads": threads,
        "n_examples": examples,
    }
    if growth and not quick:
        results["growth"] = grown(base, threads)
    print_table(results)
    if json is not None:
        json.write_text(dumps(results, indent=2) + "\n")
    return 0 if apart <= 1e-4 else 1


def alone(plan: Plan, kind: Kind) -> Side:
    """A side in a fresh process, so that its memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(plain_side if kind == "plain" else library_side, plan, kind).result()


def plain_side(plan: Plan, kind: Kind) -> Side:  # noqa: ARG001
    """The loop that one writes with TransformerLens."""
    torch.set_num_threads(plan.threads)
    task = ShortcutTask.from_config(plan.config.task, seed=0)
    model, split = build(plan.config.transformer_spec, seed=0), task.split("train")
    optim = plan.config.optim
    optimizer = torch.optim.AdamW(model.parameters(), lr=optim.lr, weight_decay=optim.weight_decay)

    def step() -> float:
        loss = torch.nn.functional.cross_entropy(model(split.tokens)[:, -1], split.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return timed(step, plan.n_steps)


def library_side(plan: Plan, kind: Kind) -> Side:
    """What `train` does at a step."""
    config = plan.config.replace(precision="bfloat16" if kind == "bfloat16" else "float32")
    task = ShortcutTask.from_config(config.task, seed=0)
    with training_environment(threads=plan.threads, device=torch.device("cpu")):
        model, split = build(config.transformer_spec, seed=0), task.split("train")
        optimizer = make_optimizer(config.optim, model.parameters())

        def begin() -> MeanLoss:
            train = ChunkedSequences.of(split.tokens, model, position=task.read_position)
            return MeanLoss(model, task, train, precision=config.optim.precision)

        loss: list[MeanLoss] = []

        def step() -> float:
            if not loss:
                loss.append(begin())  # counted in the memory, once, and in no step
            optimizer.zero_grad(set_to_none=True)
            value = loss[0].backward()
            optimizer.step()
            return value

        return timed(step, plan.n_steps)


def timed(step: Any, n_steps: int) -> Side:
    """Steps, the first few of them not counted."""
    before = held_memory()
    losses, seconds = [], []
    for _ in range(n_steps):
        start = time.perf_counter()
        losses.append(step())
        seconds.append(time.perf_counter() - start)
    return Side(losses, float(np.median(seconds[WARM_UP:])), peak_memory() - before)


def forward_products(config: RunConfig, rows: tuple[int, ...], read: int) -> list[Product]:
    """The products of a forward pass.

    Args:
        config: The run.
        rows: Rows of each layer but the last: positions of all examples, or distinct ones.
        read: Rows of the last layer: examples.
    """
    spec = config.transformer_spec
    d, mlp = spec.d_model, spec.d_mlp
    products = []
    for m in rows:
        products += [Product(m, d, d, 4), Product(m, d, mlp, 1), Product(m, mlp, d, 1)]
    # the last layer: queries, back through W_K, W_V of the mixed inputs, W_O, and the MLP
    return [
        *products,
        Product(read, d, d, 4),
        Product(read, d, mlp, 1),
        Product(read, mlp, d, 1),
    ]


def with_backward(products: list[Product]) -> list[Product]:
    """Those of the backward pass too: one for the input, one for the weights."""
    both = []
    for m, k, n, times in products:
        both += [Product(m, k, n, times), Product(m, n, k, times), Product(k, m, n, times)]
    return both


def pruned_products(config: RunConfig) -> list[Product]:
    """Each activation that the read position needs, once for each example."""
    n, spec = ShortcutTask.from_config(config.task, seed=0).n_train, config.transformer_spec
    layers = (n * spec.n_ctx,) * (spec.n_layers - 1)
    return with_backward(forward_products(config, layers, n))


def executed_products(config: RunConfig) -> list[Product]:
    """What the library takes: the first layer's MLP at distinct rows, its attention looked up."""
    task = ShortcutTask.from_config(config.task, seed=0)
    spec = config.transformer_spec
    model, tokens = build(spec, seed=0), task.split("train").tokens
    chunks = ChunkedSequences.of(tokens, model, position=task.read_position).chunks
    d, mlp, products = spec.d_model, spec.d_mlp, []
    for chunk in chunks:
        if chunk.shared is None:
            rows = (chunk.tokens.numel(),) * (spec.n_layers - 1)
            products += forward_products(config, rows, len(chunk.index))
            continue
        m, wide = chunk.shared.n_rows, chunk.shared.n_pairs * spec.n_heads
        products += [Product(m, wide, d, 1), Product(m, d, mlp, 1), Product(m, mlp, d, 1)]
        if spec.n_layers > 1:
            rows = (chunk.tokens.numel(),) * (spec.n_layers - 2)
            products += forward_products(config, rows, len(chunk.index))
    return with_backward(products)


class torch_threads:  # noqa: N801 - a context manager
    """Torch's thread count for a block."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def __enter__(self) -> None:
        self.before = torch.get_num_threads()
        torch.set_num_threads(self.threads)

    def __exit__(self, *_: object) -> None:
        torch.set_num_threads(self.before)


def seconds_of(products: list[Product]) -> float:
    """How long the products take by themselves, each at the rate of its own shape."""
    total, known = 0.0, {}
    for product in products:
        shape = product[:3]
        if shape not in known:
            m, k, n = shape
            left, right = torch.randn(m, k), torch.randn(k, n)
            out = left @ right
            taken = []
            for _ in range(5):
                start = time.perf_counter()
                torch.mm(left, right, out=out)
                taken.append(time.perf_counter() - start)
            known[shape] = min(taken)
        total += known[shape] * product.times
    return total


def bfloat16_in_hardware() -> bool | None:
    """Whether the processor multiplies bfloat16 by itself; None where that is not known."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return None
    flags = next((line for line in info.read_text().splitlines() if line.startswith("flags")), "")
    return "avx512_bf16" in flags or "amx_bf16" in flags


def grown(base: RunConfig, threads: int) -> dict[str, dict[str, float]]:
    """Seconds a step, and what doubling one size at a time does to it."""
    smaller = base.replace(n_train=4096)
    sizes: dict[str, dict[str, Any]] = {
        "4,096 examples, length 7, d_model 64, 2 layers": {},
        "8,192 examples": {"n_train": 8192},
        "16,384 examples": {"n_train": 16_384},
        "length 14": {"length": 14},
        "d_model 128, d_mlp 256": {"d_model": 128, "d_mlp": 256},
        "4 layers": {"n_layers": 4},
        "1 layer": {"n_layers": 1},
        "40 integers, length 4": {"n_integers": 40, "length": 4},
    }
    found = {}
    for name, changes in sizes.items():
        plan = Plan(smaller.replace(**changes), threads, WARM_UP + 3)
        plain, library = alone(plan, "plain"), alone(plan, "float32")
        found[name] = {"plain": plain.seconds, "float32": library.seconds}
    return found


def print_table(results: dict[str, Any]) -> None:
    """What was found, to standard output."""
    seconds, gflops = results["seconds"], results["gflops_of_pruned_step"]
    memory = results["peak_memory_mib"]
    print(
        f"a full-batch step on {results['n_examples']:,} examples of length 7, 2 layers, "
        f"d_model 64, {results['threads']} threads"
    )
    print(f"{'':28}{'seconds':>10}{'plain / it':>12}{'GFLOP/s *':>12}{'memory, MiB':>13}")
    for kind, label in (
        ("plain", "TransformerLens, float32"),
        ("float32", "this package, float32"),
        ("bfloat16", "this package, bfloat16"),
    ):
        ratio = seconds["plain"] / seconds[kind]
        print(
            f"{label:28}{seconds[kind]:10.3f}{ratio:12.2f}{gflops[kind]:12.1f}{memory[kind]:13.0f}"
        )
    print(f"{'matrix products alone *':28}{seconds['products_pruned']:10.3f}", end="")
    print(f"{'':12}{gflops['products_alone']:12.1f}")
    print(f"{'those that it takes':28}{seconds['products_executed']:10.3f}")
    print(
        f"* {results['products']['pruned_gflop']:.1f} GFLOP: the products of a step that computes "
        "what the read\n  position needs once for each example; "
        f"{results['products']['executed_gflop']:.1f} GFLOP are in fact taken"
    )
    print(
        f"share of the matrix-product rate, float32: {results['float32_share_of_matmul']:.2f} "
        f"(of the products taken: {results['float32_share_of_matmul_executed']:.2f})"
    )
    print(
        f"largest difference of the losses: {results['max_abs_difference']:.1e} "
        f"(bfloat16: {results['max_abs_difference_bfloat16']:.1e})"
    )
    if results["bfloat16_in_hardware"] is False:
        print("this processor has no bfloat16 arithmetic: it is emulated, and slower than float32")
    if "growth" in results:
        print()
        print(f"{'seconds a step':50}{'plain':>10}{'float32':>10}{'ratio':>8}")
        for name, one in results["growth"].items():
            ratio = one["plain"] / one["float32"]
            print(f"{name:50}{one['plain']:10.3f}{one['float32']:10.3f}{ratio:8.1f}")


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
