"""Max parity over layers and spurious ratio: the cells of the paper's abstract and of its summary.

The paper (arXiv 2607.10116) reports the fraction of seeds that generalise: 2 layers 0% at ratio 0.5
and 77% at 0.9; 1 layer 33% at 0.5 and 0% at 0.9. The sizes are those of `presets.max_parity_paper`,
whose docstring says which of them are ours. Run again, the script goes on where it stopped; then

    python analyses/phase2_report.py runs/max-parity
"""

from __future__ import annotations

import sys
from pathlib import Path

import tyro

from interp_shortcuts import presets
from interp_shortcuts.sweeps import parse_seeds, train_seeds

CELLS = [{"n_layers": n_layers, "ratio": ratio} for n_layers in (1, 2) for ratio in (0.5, 0.9)]


def main(
    *,
    seeds: str = "0-4",
    out: Path = Path("runs/max-parity"),
    workers: int | None = None,
    threads: int | None = None,
    smoke: bool = False,
) -> int:
    """Trains max parity with 1 and 2 layers at the ratios 0.5 and 0.9.

    Args:
        seeds: Which seeds of each cell: 0-4, 0,3,7 or 0-2,9.
        out: The folder of the run folders.
        workers: How many runs at once; none: one for each CPU.
        threads: Torch's thread count for each run; none: 1, or torch's own choice for one worker.
        smoke: Tiny models for some steps, to see that the script runs.
    """
    preset = presets.smoke if smoke else presets.max_parity_paper
    configs = [preset(seed, **cell) for cell in CELLS for seed in parse_seeds(seeds)]
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
