"""Many seeds: the demo preset in bulk against a plain loop, and when stacking seeds pays.

    python benchmarks/seeds.py
    python benchmarks/seeds.py --quick --json seeds.json

First, seeds per minute of `train_seeds`, start-up of its processes included, against a loop that
trains one seed after another as one writes it with TransformerLens: the same task, steps,
evaluations and checkpoints, on all cores. The plain side trains a few of the seeds, and its time is
scaled to all of them.

Second, the rule that decides between stacking seeds and training each by itself: for several batch
sizes, the time of one step of four seeds stacked, against four steps one after another, with one
thread on the CPU (processes share the cores the same way for both), and on a GPU if there is one.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from json import dumps
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro

from interp_shortcuts.models.build import build
from interp_shortcuts.presets import max_parity_demo
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.schedule import evaluation_steps
from interp_shortcuts.sweeps.seeds import train_seeds
from interp_shortcuts.tasks.task import ShortcutTask
from interp_shortcuts.training.classification import Classification
from interp_shortcuts.training.environment import training_environment
from interp_shortcuts.training.loop import Trainee
from interp_shortcuts.training.stacked import StackedLoss, stacking_pays

STACKED_SEEDS = 4
WARM_UP = 2


def main(
    *,
    quick: bool = False,
    json: Path | None = None,
    seeds: int | None = None,
    plain_seeds: int = 1,
    workers: int = 2,
) -> int:
    """Times both sides and prints a table.

    Args:
        quick: 2 seeds of 60 steps, and two batch sizes.
        json: File to write the results to.
        seeds: Seeds of the demo preset; 20, or 2 if quick.
        plain_seeds: How many of them the plain loop trains.
        workers: Processes of the library's side, and threads of the plain one.
    """
    changes = {"n_steps": 60, "dense_points": 6} if quick else {}
    n_seeds = seeds or (2 if quick else 20)
    configs = [max_parity_demo(seed, **changes) for seed in range(n_seeds)]
    library = seconds_of(lambda folder: train_in_bulk(configs, folder, workers))
    plain = seconds_of(lambda folder: train_plainly(configs[:plain_seeds], folder, workers))
    plain *= n_seeds / plain_seeds
    sizes = (16, 256) if quick else (16, 64, 128, 256, 1024, None)
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    results: dict[str, Any] = {
        "ratio": plain / library,
        "seconds": library,
        "plain_seconds": plain,
        "seeds_per_minute": {"library": 60 * n_seeds / library, "plain": 60 * n_seeds / plain},
        "n_seeds": n_seeds,
        "n_plain_seeds": plain_seeds,
        "workers": workers,
        "n_steps": configs[0].schedule.n_steps,
        "stacking": {
            device: [stacking(size, device, quick=quick) for size in sizes] for device in devices
        },
    }
    print_table(results)
    if json is not None:
        json.write_text(dumps(results, indent=2) + "\n")
    return 0


def seconds_of(work: Callable[[Path], None]) -> float:
    """How long some work takes that writes into a folder."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        work(Path(folder))
        return time.perf_counter() - start


def train_in_bulk(configs: Sequence[RunConfig], folder: Path, workers: int) -> None:
    """The library's side."""
    results = train_seeds(configs, out=folder, workers=workers, threads=1, progress=False)
    failed = [result for result in results if not result.ok]
    assert not failed, failed


def train_plainly(configs: Sequence[RunConfig], folder: Path, threads: int) -> None:
    """The loop that one writes with TransformerLens."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    for config in configs:
        task = ShortcutTask.from_config(config.task, seed=config.seed)
        model, train = build(config.transformer_spec, seed=config.seed), task.split("train")
        optimizer = torch.optim.AdamW(
            model.parameters(), lr=config.optim.lr, weight_decay=config.optim.weight_decay
        )
        evaluated = set(evaluation_steps(config.schedule))
        curves = []
        for step in range(config.schedule.n_steps + 1):
            if step in evaluated:
                with torch.no_grad():
                    scores = {
                        name: [
                            (logits.argmax(-1) == split.labels).float().mean().item(),
                            (logits.argmax(-1) == split.shortcut_labels).float().mean().item(),
                            torch.nn.functional.cross_entropy(logits, split.labels).item(),
                        ]
                        for name, split in task.splits.items()
                        if split.n
                        for logits in [model(split.tokens)[:, -1]]
                    }
                curves.append({"step": step, **scores})
                torch.save(model.state_dict(), folder / f"seed{config.seed}_{step}.pt")
            loss = torch.nn.functional.cross_entropy(model(train.tokens)[:, -1], train.labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        (folder / f"seed{config.seed}.json").write_text(dumps(curves))
    torch.set_num_threads(before)


def stacking(batch_size: int | None, device: str, *, quick: bool) -> dict[str, Any]:
    """Seconds of a step of all seeds, stacked and one after another, at one batch size."""
    config = max_parity_demo(batch_size=batch_size)
    n_steps = WARM_UP + (3 if quick else 12)
    found = {}
    with training_environment(threads=1, device=torch.device(device)):
        for kind in ("alone", "stacked"):
            trainees = [
                Trainee.start(
                    config.replace(seed=seed),
                    ShortcutTask.from_config(config.task, seed=seed),
                    None,
                    device=device,
                )
                for seed in range(STACKED_SEEDS)
            ]
            loss = StackedLoss(trainees) if kind == "stacked" else None
            objectives = [trainee.objective for trainee in trainees]
            orders = [one.batches for one in objectives if isinstance(one, Classification)]
            taken = []
            for _ in range(n_steps):
                start = time.perf_counter()
                if loss is None:
                    for trainee in trainees:
                        trainee.advance()
                else:
                    values = loss.backward([order.next() for order in orders])
                    for trainee, value in zip(trainees, values, strict=True):
                        trainee.update(value)
                if device == "cuda":
                    torch.cuda.synchronize()
                taken.append(time.perf_counter() - start)
            found[kind] = float(np.median(taken[WARM_UP:]))
    return {
        "batch_size": batch_size,
        **found,
        "ratio": found["alone"] / found["stacked"],
        "rule_says_stack": stacking_pays(config, device=device),
    }


def print_table(results: dict[str, Any]) -> None:
    """What was found, to standard output."""
    rates = results["seeds_per_minute"]
    print(
        f"{results['n_seeds']} seeds of the demo preset, {results['n_steps']} steps each; the "
        f"plain loop trained {results['n_plain_seeds']} of them"
    )
    print(f"{'':30}{'seconds':>10}{'seeds a minute':>16}")
    label = f"train_seeds, {results['workers']} processes"
    print(f"{label:30}{results['seconds']:10.1f}{rates['library']:16.2f}")
    label = f"plain loop, {results['workers']} threads"
    print(f"{label:30}{results['plain_seconds']:10.1f}{rates['plain']:16.2f}")
    print(f"ratio {results['ratio']:.2f}")
    for device, rows in results["stacking"].items():
        print()
        print(f"a step of {STACKED_SEEDS} seeds on {device}, milliseconds")
        print(f"{'batch size':>12}{'alone':>10}{'stacked':>10}{'ratio':>8}   the rule")
        for row in rows:
            size = "all (2048)" if row["batch_size"] is None else row["batch_size"]
            says = "stack" if row["rule_says_stack"] else "one by one"
            print(
                f"{size:>12}{1000 * row['alone']:10.1f}{1000 * row['stacked']:10.1f}"
                f"{row['ratio']:8.2f}   {says}"
            )


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
