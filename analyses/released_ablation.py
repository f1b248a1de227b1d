"""What the paper's released code ablates, beside an ablation of the head itself.

    python analyses/released_ablation.py runs/sequences --csv released_ablation.csv

The released code of arXiv 2602.01442 writes the mean of a head's output before W_O into a slice of
the attention's output after W_O. For the last checkpoint of each tracked run: the exact match that
every head costs in either way, on the same sequences, and how each order of the components agrees
with that of the gradient norm. Runs that are not tracked, or were excluded, are left out.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import tyro
import xarray as xr
from torch import Tensor

from interp_shortcuts import Run, Timeline, Trajectory
from interp_shortcuts.cli.folders import run_folders
from interp_shortcuts.errors import InterpShortcutsError
from interp_shortcuts.measures.attribution.gap import rank_gap
from interp_shortcuts.measures.attribution.importance import ComponentImportance
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.build import eager
from interp_shortcuts.models.build import eager
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.tasks.target_scores import exact_match
from interp_shortcuts.tasks.target_split import TargetSplit

METHODS = ("W_V", "W_V+W_O")


def main(paths: tyro.conf.Positional[tuple[Path, ...]], *, csv: Path | None = None) -> int:
    """Prints one line a run, and writes the table.

    Args:
        paths: Run folders, or folders of run folders.
        csv: Also write the table here.
    """
    rows = []
    try:
        for path in run_folders(
            paths, on_skip=lambda path: print(f"left out: {path}", file=sys.stderr)
        ):
            run = Run.open(path)
            file = path / "timeline.nc"
            if not file.exists() or run.ood_length is None:
                print(f"left out: {path} (not tracked, or excluded)", file=sys.stderr)
                continue
            rows.append(compared(path, Timeline.open(file).data))
            print(
                {name: round(v, 3) if isinstance(v, float) else v for name, v in rows[-1].items()}
            )
    except InterpShortcutsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    table = pd.DataFrame(rows)
    for task, runs in table.groupby("task") if rows else ():
        means = runs.drop(columns=["task", "seed", "length"]).agg(["mean", "std", "count"])
        print(f"\n{task}\n{means.round(3).to_string()}")
    if csv is not None:
        table.to_csv(csv, index=False, float_format="%.4f")
    return 0


def compared(path: Path, data: xr.Dataset) -> dict[str, str | int | float]:
    """Both ablations at a run's last checkpoint, and their ranks beside the gradient norm's."""
    trajectory = Trajectory.open(path)
    step, config = trajectory.steps[-1], trajectory.config
    if config is None:
        raise InterpShortcutsError(f"`{path}` has no config.")
    length = Run.open(path).ood_length
    observation = Observation(trajectory.model(step), trajectory.task, step)
    measure = ComponentImportance(split=f"length_{length}", ablations=("mean",))
    asked = measure.asked(observation, f"length_{length}")
    reference = measure.reference(observation, f"length_{length}")
    ours = data["exact_match_drop"].sel(step=step, ablation_kind="mean")
    names = [str(name) for name in ours["component"].to_numpy()]
    heads = [name for name in names if ".H" in name]
    theirs = ours.to_numpy().astype(float).copy()
    theirs[[names.index(name) for name in heads]] = sliced_drops(
        eager(trajectory.model(step)), asked, reference
    )
    at_head = ours.sel(component=heads).to_numpy().astype(float)
    sliced = theirs[[names.index(name) for name in heads]]
    row: dict[str, str | int | float] = {
        "task": trajectory.task.name,
        "seed": config.seed,
        "length": int(length or 0),
        "mean_drop_at_head": float(at_head.mean()),
        "mean_drop_after_w_o": float(sliced.mean()),
        "spearman_of_both_over_heads": rank_gap(at_head, sliced).rho,
    }
    for reading in METHODS:
        norm = data["gradient_norm"].sel(step=step, reading=reading).to_numpy()
        row[f"rho_{reading}_at_head"] = rank_gap(norm, ours.to_numpy()).rho
        row[f"rho_{reading}_after_w_o"] = rank_gap(norm, theirs).rho
    return row


def sliced_drops(
    model: HookedTransformer, asked: TargetSplit, reference: TargetSplit
) -> np.ndarray:
    """Exact match lost when a slice after W_O is overwritten with the mean of z, head by head.

    Args:
        model: The model.
        asked: The sequences that it answers.
        reference: The sequences over which the mean is taken, position by position.

    Returns:
        One drop a head, layer by layer.
    """
    drops = []
    with torch.no_grad():
        clean = exact_match(model(asked.tokens), asked.targets).double().mean()
        _, cache = model.run_with_cache(
            reference.tokens, names_filter=lambda name: name.endswith("hook_z")
        )
        for layer in range(model.cfg.n_layers):
            for head in range(model.cfg.n_heads):
                mean = cache["z", layer][:, :, head].mean(0)
                start = head * model.cfg.d_head

                def overwrite(
                    out: Tensor, hook: object, mean: Tensor = mean, start: int = start
                ) -> Tensor:
                    del hook
                    out = out.clone()
                    out[..., start : start + mean.shape[-1]] = mean
                    return out

                logits = model.run_with_hooks(
                    asked.tokens, fwd_hooks=[(f"blocks.{layer}.hook_attn_out", overwrite)]
                )
                drops.append((clean - exact_match(logits, asked.targets).double().mean()).item())
    return np.array(drops)


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
