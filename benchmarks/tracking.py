"""Tracking a trajectory with every measure, against a plain loop over TransformerLens's hooks.

    python benchmarks/tracking.py
    python benchmarks/tracking.py --quick --json tracking.json

The demo model (2 layers, 2 heads) is trained, and all measures are taken of its checkpoints by
`CircuitTracker` and by `plain_tracking`, each in a process of its own. The plain side is asked
about some of the checkpoints, evenly spread, and its time is scaled to all of them. Training,
imports and one checkpoint to warm up are not counted.

The library measures with as many processes as the plain side has threads, each with one thread;
starting them counts, and so does their memory, imports and all.

On a machine that does other work too, trust the CPU time rather than the seconds, and use
`--threads 1`: threads that wait for each other lose more than they gain there.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from json import dumps
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import tyro
from machine.costs import cpu_time, held_memory, other_processes, peak_memory
from plain_tracking.comparison import TOLERANCE, Difference, agree, differences
from plain_tracking.loop import measure_checkpoint
from plain_tracking.reading import Sizes

from interp_shortcuts.measures.ablation import Ablation
from interp_shortcuts.measures.base import Measure, WeightsMeasure
from interp_shortcuts.measures.gradients import GradientConflict
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.measures.ov_ablation import OVAblation
from interp_shortcuts.measures.patching import CrossSplitPatching
from interp_shortcuts.measures.qk_ablation import QKAblation
from interp_shortcuts.measures.registry import default_measures
from interp_shortcuts.models.build import build
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.presets import max_parity_demo
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.tasks.task import ShortcutTask
from interp_shortcuts.timelines.layout import measured_part
from interp_shortcuts.timelines.tracker import CircuitTracker
from interp_shortcuts.training.loop import train

MIB = 2**20
STRIDE = 6
"""Training steps between checkpoints: 100 of them are the demo's 600 steps."""


@dataclass(frozen=True)
class Plan:
    """What both sides are asked about."""

    run: Path
    plain_steps: tuple[int, ...]
    sizes: Sizes
    threads: int
    workers: int
    """Processes of the library's tracker, which share the threads."""
    in_process: bool
    """Both sides share a process, whose memory says nothing then."""


class Side(NamedTuple):
    """What one side found, and what it cost."""

    numbers: dict[str, np.ndarray]
    """[step ...], at the plain side's steps."""
    seconds: float
    cpu_seconds: float
    n_checkpoints: int
    peak: float
    """Bytes beyond those held before the first checkpoint, and all bytes of other processes."""
    per_measure: dict[str, float]
    """CPU seconds for each of the plain side's checkpoints."""


def main(
    *,
    quick: bool = False,
    json: Path | None = None,
    threads: int = 2,
    checkpoints: int | None = None,
    plain_checkpoints: int | None = None,
    examples: int | None = None,
    default_sizes: bool = False,
    workers: int | None = None,
    in_process: bool = False,
) -> int:
    """Times both sides, compares their numbers and prints a table.

    Args:
        quick: 6 checkpoints and splits of 256 examples.
        json: File to write the results to.
        threads: Torch's thread count.
        checkpoints: Number of checkpoints; 100 unless quick.
        plain_checkpoints: How many of them the plain side is asked about; 10, or 1 if quick.
        examples: Examples of the validation and of the adversarial split, half of those of train.
        default_sizes: Leave the causal measures at their default numbers of examples; otherwise
            they use every example of the splits, also as reference and for the residual stream.
        workers: Processes of the library's tracker; as many as threads, or 1 if quick: a process
            takes some seconds to start.
        in_process: Run both sides in this process; no memory is measured then.

    Returns:
        1 if the two sides disagree, else 0.
    """
    n_checkpoints = checkpoints or (6 if quick else 100)
    n_plain = plain_checkpoints or (1 if quick else 10)
    n = examples or (256 if quick else 1024)
    sizes = Sizes(256, 512, 256, 128) if default_sizes else Sizes(n, 2 * n, n, n)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        steps = trained_steps(run, n_checkpoints=n_checkpoints, n_examples=n, threads=threads)
        asked = np.unique(np.linspace(len(steps) - 1, 0, n_plain).round().astype(int))
        n_workers = workers or (1 if quick or in_process else threads)
        plan = Plan(run, tuple(steps[i] for i in asked), sizes, threads, n_workers, in_process)
        if in_process:
            library, plain = library_side(plan), plain_side(plan)
        else:
            library, plain = alone(library_side, plan), alone(plain_side, plan)
    apart = differences(library.numbers, plain.numbers)
    results = compared(library, plain, apart)
    results |= {"threads": threads, "workers": n_workers, "n_examples": n, "sizes": vars(sizes)}
    print_table(results)
    if json is not None:
        json.write_text(dumps(results, indent=2) + "\n")
    return 0 if agree(apart) else 1


def trained_steps(
    run: Path, *, n_checkpoints: int, n_examples: int, threads: int
) -> tuple[int, ...]:
    """Trains the demo, shorter, and returns the steps that were kept."""
    config = max_parity_demo(
        n_train=2 * n_examples,
        n_validation=n_examples,
        n_adversarial=n_examples,
        n_steps=max(STRIDE * (n_checkpoints - 1), 1),
        dense_until=0,
        every=STRIDE,
    )
    train(config, out=run, progress=False, threads=threads)
    return Trajectory.open(run).steps


def alone(side: Callable[[Plan], Side], plan: Plan) -> Side:
    """A side in a fresh process, so that its memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(side, plan).result()


def in_memory(plan: Plan) -> Trajectory:
    """The run's checkpoints as state dicts."""
    torch.set_num_threads(plan.threads)
    run = Trajectory.open(plan.run)
    weights = [(step, run.weights(step)) for step in run.steps]
    return Trajectory.from_checkpoints(weights, spec=run.spec, task=run.task)


def measures_of(sizes: Sizes) -> tuple[Measure, ...]:
    """The default measures, at these sizes."""
    n, reference = sizes.examples, sizes.reference_examples
    sized = (
        Ablation(examples=n, reference_examples=reference),
        QKAblation(examples=n, reference_examples=reference),
        OVAblation(examples=n, reference_examples=reference),
        CrossSplitPatching(n_pairs=sizes.n_pairs, n_residual_pairs=sizes.n_residual_pairs),
        GradientConflict(norm_examples=sizes.norm_examples),
    )
    by_name = {measure.name: measure for measure in sized}
    return tuple(by_name.get(measure.name, measure) for measure in default_measures())


def library_side(plan: Plan) -> Side:
    """`CircuitTracker` on all checkpoints."""
    trajectory, measures = in_memory(plan), measures_of(plan.sizes)

    def track(part: Trajectory) -> CircuitTracker:
        tracker = CircuitTracker(
            part, measures=measures, cache=False, progress=False, workers=plan.workers
        )
        tracker.track()
        return tracker

    before = np.nan if plan.in_process else held_memory()
    track(trajectory[: trajectory.steps[0] + 1])
    start, cpu_start = time.perf_counter(), cpu_time()
    with other_processes() as others:
        data = track(trajectory).timeline.data
    seconds, cpu_seconds = time.perf_counter() - start, cpu_time() - cpu_start
    peak = peak_memory() - before + sum(others.values())
    steps = list(plan.plain_steps)
    numbers = {}
    for name, array in data.data_vars.items():
        part = measured_part(array)
        if "step" in part.dims:
            part = part.sel(step=steps)
        numbers[str(name)] = part.to_numpy()
    per_measure = seconds_per_measure(trajectory, measures, steps)
    return Side(numbers, seconds, cpu_seconds, len(trajectory), peak, per_measure)


def seconds_per_measure(
    trajectory: Trajectory, measures: Sequence[Measure], steps: Sequence[int]
) -> dict[str, float]:
    """CPU seconds a checkpoint, in a pass of its own; also of the forward pass that they share."""
    seconds = dict.fromkeys(("forward pass", *(measure.name for measure in measures)), 0.0)
    weights = trajectory.stacked(steps)
    for measure in measures:
        if isinstance(measure, WeightsMeasure):
            start = time.process_time()
            measure.of_weights(weights, trajectory.task)
            seconds[measure.name] += time.process_time() - start
    for step in steps:
        observation = Observation(trajectory.model(step), trajectory.task, step)
        start = time.process_time()
        for split in trajectory.task.splits:
            observation.logits(split)
        seconds["forward pass"] += time.process_time() - start
        for measure in measures:
            if not isinstance(measure, WeightsMeasure):
                start = time.process_time()
                measure.measure(observation)
                seconds[measure.name] += time.process_time() - start
    return {name: total / len(steps) for name, total in seconds.items()}


def plain_side(plan: Plan) -> Side:
    """`plain_tracking` on the plan's steps."""
    trajectory = in_memory(plan)
    task, spec = trajectory.task, trajectory.spec
    assert isinstance(task, ShortcutTask)
    assert isinstance(spec, ModelSpec)
    model = build(spec)

    def measure(step: int) -> tuple[dict[str, np.ndarray], dict[str, float]]:
        model.load_state_dict(trajectory.weights(step), strict=False)  # masks are no weights
        return measure_checkpoint(model, task, plan.sizes)

    before = np.nan if plan.in_process else held_memory()
    measure(plan.plain_steps[0])
    start, cpu_start = time.perf_counter(), cpu_time()
    found = [measure(step) for step in plan.plain_steps]
    seconds, cpu_seconds = time.perf_counter() - start, cpu_time() - cpu_start
    peak = peak_memory() - before
    numbers = {name: np.stack([one[name] for one, _ in found]) for name in found[0][0]}
    per_measure = {
        name: float(np.mean([taken[name] for _, taken in found])) for name in found[0][1]
    }
    return Side(numbers, seconds, cpu_seconds, len(found), peak, per_measure)


def compared(library: Side, plain: Side, apart: Mapping[str, Difference]) -> dict[str, Any]:
    """The results, fit for JSON."""
    ours, theirs = library.seconds / library.n_checkpoints, plain.seconds / plain.n_checkpoints
    cpu = [side.cpu_seconds / side.n_checkpoints for side in (library, plain)]
    memory = None
    if np.isfinite(library.peak):
        memory = {"library": library.peak / MIB, "plain": plain.peak / MIB}
    return {
        "ratio": theirs / ours,
        "seconds": library.seconds,
        "max_abs_difference": apart["continuous"].largest,
        "peak_memory_ratio": None if memory is None else plain.peak / library.peak,
        "plain_seconds": theirs * library.n_checkpoints,
        "cpu_seconds": {
            "library": library.cpu_seconds,
            "plain": cpu[1] * library.n_checkpoints,
            "ratio": cpu[1] / cpu[0],
        },
        "peak_memory_mib": memory,
        "n_checkpoints": library.n_checkpoints,
        "n_plain_checkpoints": plain.n_checkpoints,
        "differences": {kind: one._asdict() for kind, one in apart.items()},
        "not_compared": sorted(set(library.numbers) - set(plain.numbers)),
        "cpu_milliseconds_per_checkpoint": {
            name: {"library": 1000 * taken, "plain": 1000 * plain.per_measure[name]}
            for name, taken in library.per_measure.items()
        },
    }


def print_table(results: dict[str, Any]) -> None:
    """What was found, to standard output."""
    n, n_plain = results["n_checkpoints"], results["n_plain_checkpoints"]
    print(
        f"{n} checkpoints of the 2-layer 2-head demo, {results['n_examples']} examples a split, "
        f"{results['threads']} threads, {results['workers']} processes of the library"
    )
    print(f"the plain loop was run on {n_plain} of the checkpoints; its time is scaled to {n}")
    print()
    print(f"{'':26}{'library':>10}{'plain':>10}{'plain / library':>18}")
    _row("seconds", results["seconds"], results["plain_seconds"])
    _row("CPU seconds", results["cpu_seconds"]["library"], results["cpu_seconds"]["plain"])
    if results["peak_memory_mib"] is not None:
        _row("peak memory, MiB", *results["peak_memory_mib"].values())
    print()
    print("CPU milliseconds a checkpoint, each measure by itself")
    for name, taken in results["cpu_milliseconds_per_checkpoint"].items():
        _row(f"  {name}", taken["library"], taken["plain"])
    print()
    for kind, apart in results["differences"].items():
        print(
            f"{apart['n']} numbers {_KINDS[kind]}: {apart['n_differ']} differ by more than "
            f"{TOLERANCE:g}; largest difference {apart['largest']:.1e}"
            + (f" ({apart['variable']})" if apart["variable"] else "")
        )


_KINDS = {
    "continuous": "that are continuous (relative where above 1)",
    "gradient ratios": "that are ratios of gradients, of which float32 keeps few digits",
    "by example": "that single examples decide, at a tie by rounding",
}


def _row(label: str, library: float, plain: float) -> None:
    ratio = plain / library if library > 0 else np.nan
    print(f"{label:26}{library:10.1f}{plain:10.1f}{ratio:18.1f}")


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
