"""The smallest runs that still learn something: what the tests of runs and training share.

Run this file to make the stored learning curve of `tests/golden/tiny_curve.json` again, after a
change that is meant to alter numbers: `python tests/tiny_runs.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

from interp_shortcuts.runs.config import RunConfig

GOLDEN = Path(__file__).parent / "golden" / "tiny_curve.json"

TINY = RunConfig().replace(
    length=3,
    n_integers=6,
    ratio=0.75,
    n_train=64,
    n_validation=24,
    n_adversarial=24,
    n_layers=1,
    d_model=16,
    d_mlp=32,
    lr=1e-2,
    n_steps=30,
    dense_until=10,
    dense_points=5,
    every=5,
    resume_every=7,
)


def tree(folder: Path) -> dict[str, bytes]:
    """What two equal runs have in common, byte for byte: curves and checkpoints."""
    files = [folder / "curves.jsonl", *sorted((folder / "checkpoints").iterdir())]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


if __name__ == "__main__":
    import tempfile

    from interp_shortcuts.training.loop import train

    with tempfile.TemporaryDirectory() as out:
        run = train(TINY, out=out, threads=1, progress=False)
        lines = (run.path / "curves.jsonl").read_text().splitlines()
    GOLDEN.write_text(json.dumps([json.loads(line) for line in lines], indent=1) + "\n")
