"""The four tasks at one setting: maximum or first element as shortcut, sum modulo 2 or 3 as rule.

The paper (arXiv 2607.10116) has the same four; the shortcut label for modulo 3 (maximum or first
element modulo 3) is ours. Demo sizes show the hand-over in minutes; `--paper` takes the paper's
sizes. Run again, the script goes on where it stopped; then

    python analyses/phase2_report.py runs/shortcut-types
"""

from __future__ import annotations

import sys
from pathlib import Path

import tyro

from interp_shortcuts import presets
from interp_shortcuts.sweeps import parse_seeds, train_seeds

RULES = ["max_parity", "first_parity", "max_mod3", "first_mod3"]


def main(
    *,
    seeds: str = "0-4",
    out: Path = Path("runs/shortcut-types"),
    workers: int | None = None,
    threads: int | None = None,
    paper: bool = False,
    smoke: bool = False,
) -> int:
    """Trains each of the four tasks at ratio 0.9 with 2 layers and 2 heads.

    Args:
        seeds: Which seeds of each task: 0-4, 0,3,7 or 0-2,9.
        out: The folder of the run folders.
        workers: How many runs at once; none: one for each CPU.
        threads: Torch's thread count for each run; none: 1, or torch's own choice for one worker.
        paper: The paper's sizes instead of the demo's.
        smoke: Tiny models for some steps, to see that the script runs.
    """
    size = "paper" if paper else "demo"
    configs = [
        presets.smoke(seed, rule=rule) if smoke else presets.preset(f"{rule}_{size}")(seed)
        for rule in RULES
        for seed in parse_seeds(seeds)
    ]
    results = train_seeds(
        configs,
        out=out,
        resume=True,
        workers=workers,
        threads=threads,
        on_end=lambda result: print(f"{result.path}: {result.status} {result.error or ''}"),
    )
    return 0 if all(result.ok for result in results) else 1


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
