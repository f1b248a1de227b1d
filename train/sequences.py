"""Sequences to be sorted and to be reversed, at the paper's size and over the paper's ten seeds.

The paper (arXiv 2602.01442) trains each until 90% of the answers are right in full, and asks about
the first held-out length at which 20% to 75% are. A run takes one to a few minutes. Run again, the
script goes on where it stopped. `--learned-positions` gives the model of the paper's text rather
than that of its code: the positions of the held-out lengths are then never trained.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tyro

from interp_shortcuts import Run, presets
from interp_shortcuts.sweeps import SeedResult, parse_seeds, train_seeds

SEEDS = "42,123,456,789,1010,2020,3030,4040,5050,6060"
OPERATIONS = ["sorting", "reversal"]


def main(
    *,
    seeds: str = SEEDS,
    out: Path = Path("runs/sequences"),
    workers: int | None = None,
    threads: int | None = None,
    learned_positions: bool = False,
    demo: bool = False,
    smoke: bool = False,
) -> int:
    """Trains both tasks at every seed, and says which held-out length each run is asked about.

    Args:
        seeds: Which seeds of each task: 0-4, 0,3,7 or 0-2,9.
        out: The folder of the run folders.
        workers: How many runs at once; none: one for each CPU.
        threads: Torch's thread count for each run; none: 1, or torch's own choice for one worker.
        learned_positions: Learned positional embeddings rather than none.
        demo: Small sizes that train in seconds.
        smoke: Tiny models for some steps, to see that the script runs.
    """
    size = "demo" if demo or smoke else "paper"
    changes = {"positions": "learned" if learned_positions else "none"}
    if smoke:
        changes |= {"n_layers": 1, "d_model": 16, "d_mlp": 16, "n_steps": 4, "n_per_length": 5}
    configs = [
        presets.preset(f"sequence_{operation}_{size}")(seed, **changes)
        for operation in OPERATIONS
        for seed in parse_seeds(seeds)
    ]
    results = train_seeds(
        configs, out=out, resume=True, workers=workers, threads=threads, on_end=tell
    )
    return 0 if all(result.ok for result in results) else 1


def tell(result: SeedResult) -> None:
    """A line on how a run ended, and what it can be asked about."""
    if result.ok:
        length = Run.open(result.path).ood_length
        asked = "excluded: no held-out length qualifies" if length is None else f"length {length}"
        print(f"{result.path}: finished, {asked}")
    else:
        print(f"{result.path}: {result.status} {result.error or ''}")


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
