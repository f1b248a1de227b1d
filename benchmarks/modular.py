"""A training step on modular arithmetic, against a plain loop over dense layers.

    python benchmarks/modular.py
    python benchmarks/modular.py --quick --json modular.json

Both sides take the same full-batch steps of the same network from the same weights, in turns, so
that whatever else the machine does falls on both: the plain side runs one-hot vectors of the two
tokens through `nn.Linear`, goes backward and lets AdamW update; the library side is what `train`
does at a step, without its evaluations. The first two steps are not counted. Losses of both are
compared.

A step cannot do without the three matrix products with W: forward, to the neurons, and to W. They
are timed in the same turns, alone, on the shapes that the library takes them in; the share is their
time over the time of a step.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from json import dumps
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import tyro
from torch import Tensor, nn
from torch.nn import functional

from interp_shortcuts.models.two_layer import TwoLayerNet, build_two_layer
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.runs.config import OptimConfig
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.training.environment import training_environment
from interp_shortcuts.training.optim import make_optimizer
from interp_shortcuts.training.pair_gradient import PAIRS_AT_ONCE, PairLoss

WARM_UP = 2
WIDTHS = (513, 2049)
FASTER = 2.0
LARGEST_DIFFERENCE = 1e-4


class Cost(NamedTuple):
    """What a step costs, the median of some."""

    seconds: float
    cpu_seconds: float


def main(
    *,
    quick: bool = False,
    json: Path | None = None,
    threads: int = 1,
    n_steps: int | None = None,
    modulus: int | None = None,
    widths: tuple[int, ...] = WIDTHS,
) -> int:
    """Times both sides, compares their losses and prints a table.

    Args:
        quick: Modulus 59 and few steps.
        json: File to write the results to.
        threads: Torch's thread count; 1 is what each run of a sweep has.
        n_steps: Steps that are timed on each side; 10, or 4 if quick.
        modulus: The modulus P; 113, or 59 if quick.
        widths: Numbers of hidden neurons, M.

    Returns:
        1 if a step is less than twice as fast as the plain one by the clock, or losses differ by
        more than 1e-4; else 0. If quick, only the losses count.
    """
    task = ModularArithmetic(modulus=modulus or (59 if quick else 113), train_fraction=0.8)
    n_steps = n_steps or (4 if quick else 10)
    results: dict[str, Any] = {
        "modulus": task.modulus,
        "n_examples": task.split("train").n,
        "threads": threads,
        "max_abs_difference": 0.0,
        "widths": list(widths),
    }
    for width in widths:
        found = compared(task, width, threads=threads, n_steps=n_steps)
        apart = found.pop("max_abs_difference")
        results["max_abs_difference"] = max(results["max_abs_difference"], apart)
        results |= {f"{name}_{width}": value for name, value in found.items()}
    print_table(results)
    if json is not None:
        json.write_text(dumps(results, indent=2) + "\n")
    slow = not quick and min(results[f"ratio_{width}"] for width in widths) < FASTER
    return int(slow or not results["max_abs_difference"] <= LARGEST_DIFFERENCE)


def compared(task: ModularArithmetic, width: int, *, threads: int, n_steps: int) -> dict[str, Any]:
    """What steps at one width cost on both sides, and how far their losses are apart."""
    spec = TwoLayerSpec(n_tokens=task.n_tokens, n_classes=task.n_classes, width=width)
    net = build_two_layer(spec, seed=0)
    sides = {"plain": plain_step(task, net)}  # it copies the weights
    losses: dict[str, list[float]] = {"plain": [], "library": []}
    with ExitStack() as stack:
        stack.enter_context(training_environment(threads=threads, device=torch.device("cpu")))
        sides |= {"library": library_step(task, net), "products": products(task, width)}
        costs: dict[str, list[Cost]] = {name: [] for name in sides}
        for _ in range(WARM_UP + n_steps):
            for name, step in sides.items():
                began, used = time.perf_counter(), time.process_time()
                value = step()
                costs[name].append(Cost(time.perf_counter() - began, time.process_time() - used))
                if name in losses:
                    losses[name].append(value)
    median = {name: Cost(*np.median(some[WARM_UP:], axis=0)) for name, some in costs.items()}
    plain, library, alone = (median[name] for name in ("plain", "library", "products"))
    flops = 6.0 * task.split("train").n * width * task.n_classes
    return {
        "ratio": plain.seconds / library.seconds,
        "cpu_ratio": plain.cpu_seconds / library.cpu_seconds,
        "share": alone.seconds / library.seconds,
        "cpu_share": alone.cpu_seconds / library.cpu_seconds,
        "gflops_of_products": flops / alone.seconds / 1e9,
        "seconds": {name: one.seconds for name, one in median.items()},
        "cpu_seconds": {name: one.cpu_seconds for name, one in median.items()},
        "max_abs_difference": float(np.abs(np.subtract(losses["plain"], losses["library"])).max()),
    }


class Dense(nn.Module):
    """The network as one writes it with dense layers."""

    def __init__(self, net: TwoLayerNet) -> None:
        super().__init__()
        spec = net.spec
        self.first = nn.Linear(spec.n_tokens, spec.width, bias=False)
        self.second = nn.Linear(spec.n_tokens, spec.width, bias=False)
        self.out = nn.Linear(spec.width, spec.n_classes)
        with torch.no_grad():
            self.first.weight.copy_(net.U.T)
            self.second.weight.copy_(net.V.T)
            self.out.weight.copy_(net.W.T)
            self.out.bias.copy_(net.mu)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """The logits of one-hot vectors of the two tokens."""
        return self.out(torch.relu(self.first(first) + self.second(second)))


def plain_step(task: ModularArithmetic, net: TwoLayerNet) -> Callable[[], float]:
    """The loop that one writes with torch."""
    model, train, optim = Dense(net), task.split("train"), OptimConfig()
    first, second = (
        functional.one_hot(tokens, task.n_tokens).float() for tokens in train.tokens.unbind(1)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=optim.lr, weight_decay=optim.weight_decay)

    def step() -> float:
        loss = functional.cross_entropy(model(first, second), train.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def library_step(task: ModularArithmetic, net: TwoLayerNet) -> Callable[[], float]:
    """What `train` does at a step."""
    train = task.split("train")
    loss = PairLoss(net, task, train.tokens, train.labels)
    optimizer = make_optimizer(OptimConfig(), net.parameters())

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        value = loss.backward()
        optimizer.step()
        return value

    return step


def products(task: ModularArithmetic, width: int) -> Callable[[], float]:
    """The three matrix products of a step alone, in the chunks that the library takes."""
    n, classes = task.split("train").n, task.n_classes
    rows = PAIRS_AT_ONCE
    post, logits = torch.randn(n, width), torch.randn(n, classes)
    weight = torch.randn(width, classes)
    to_post = torch.empty(min(n, rows), width)
    to_logits, to_weight = torch.empty(min(n, rows), classes), torch.zeros(width, classes)

    def step() -> float:
        for some, grads in zip(post.split(rows), logits.split(rows), strict=True):
            torch.mm(some, weight, out=to_logits[: len(some)])
            torch.mm(grads, weight.T, out=to_post[: len(some)])
            to_weight.addmm_(some.T, grads)
        return 0.0

    return step


def print_table(results: dict[str, Any]) -> None:
    """What was found, to standard output."""
    print(
        f"a full-batch step on {results['n_examples']:,} pairs modulo {results['modulus']}, "
        f"{results['threads']} threads; milliseconds, and of CPU time"
    )
    print(f"{'width':>8}{'plain':>16}{'library':>16}{'products':>16}{'ratio':>14}{'share':>14}")
    for width in results["widths"]:
        taken, used = results[f"seconds_{width}"], results[f"cpu_seconds_{width}"]
        sides = "".join(
            f"{f'{1000 * taken[name]:.1f} ({1000 * used[name]:.0f})':>16}" for name in taken
        )
        ratio, share = (
            f"{results[f'{name}_{width}']:.2f} ({results[f'cpu_{name}_{width}']:.2f})"
            for name in ("ratio", "share")
        )
        print(f"{width:>8}{sides}{ratio:>14}{share:>14}")
    print(f"largest difference of the losses: {results['max_abs_difference']:.1e}")


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
