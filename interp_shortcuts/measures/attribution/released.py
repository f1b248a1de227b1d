"""What the released code of arXiv 2602.01442 does in place of ablating a head.

It writes the mean of a head's output before W_O into a slice of the attention's output after W_O:
other numbers, of no head. Kept here to be compared with; importances are in `importance.py`.
"""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from interp_shortcuts.measures.attribution.gap import rank_gap
from interp_shortcuts.measures.attribution.importance import ComponentImportance
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.build import eager
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.tasks.target_scores import exact_match
from interp_shortcuts.tasks.target_split import TargetSplit


def compared_with_released(
    observation: Observation, measured: xr.Dataset, *, length: int
) -> dict[str, float]:
    """A head's mean ablation beside the released code's, and both beside the gradient norm.

    Args:
        observation: A transformer on a sequence task.
        measured: `exact_match_drop` and `gradient_norm` of this model, without steps, measured at
            that length.
        length: The held-out length that is asked.

    Returns:
        Means over heads of the exact match lost, `mean_drop_at_head` and `mean_drop_after_w_o`;
        Spearman's rho of the two over heads; and of each with the gradient norm over all
        components, by its reading. NaN where one of two is constant.
    """
    split = f"length_{length}"
    measure = ComponentImportance(split=split, ablations=("mean",))
    asked, reference = measure.asked(observation, split), measure.reference(observation, split)
    drops = measured["exact_match_drop"].sel(ablation_kind="mean")
    names = [str(name) for name in drops["component"].to_numpy()]
    heads = [place for place, name in enumerate(names) if ".H" in name]
    ours = drops.to_numpy().astype(np.float64)
    theirs = ours.copy()
    theirs[heads] = sliced_drops(eager(observation.model), asked, reference)
    found = {
        "mean_drop_at_head": float(ours[heads].mean()),
        "mean_drop_after_w_o": float(theirs[heads].mean()),
        "rho_of_both": rank_gap(ours[heads], theirs[heads]).rho,
    }
    for reading in measured["reading"].to_numpy().tolist():
        norm = measured["gradient_norm"].sel(reading=reading).to_numpy()
        found[f"rho_{reading}_at_head"] = rank_gap(norm, ours).rho
        found[f"rho_{reading}_after_w_o"] = rank_gap(norm, theirs).rho
    return found


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
