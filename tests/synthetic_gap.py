"""A made-up timeline of a sequence run with the variables of attribution and causal importance.

Nothing is trained and no torch is loaded: tests of gap statistics, their figures and pages build
on it. Unless told otherwise, importance grows with the index of a component at every step, and
the attribution moves over training from that order to one in which `HERO` is ranked far too low
and `BLOAT` far too high.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from interp_shortcuts.timelines.timeline import Timeline

HERO, BLOAT = "L3.H3", "L1.H1"
READINGS = ("W_V", "W_V+W_O")
KINDS = ("mean", "zero", "resample")
SETS = ("heroes", "bloats", "all components")
PRUNED = ("heroes", "bloats", "random")
N_EXAMPLES = 100
_BOUNDS = np.array(["low", "high"])


def component_names(n_layers: int = 4, n_heads: int = 4) -> list[str]:
    """Heads and MLP of each layer."""
    heads = [f"H{head}" for head in range(n_heads)]
    return [f"L{layer}.{part}" for layer in range(n_layers) for part in (*heads, "mlp")]


def gap_dataset(
    seed: int = 0,
    *,
    steps: tuple[int, ...] = (0, 100, 200, 400, 800),
    n_layers: int = 4,
    n_heads: int = 4,
    separated_from: int = 2,
    noise: float = 1.0,
    shapley: bool = True,
    joint: bool = True,
    pruning: bool = True,
    constant_importance: bool = False,
) -> xr.Dataset:
    """A plausible full dataset.

    Args:
        seed: Seed of the noise, and of the run.
        steps: Training steps.
        n_layers: Layers.
        n_heads: Heads a layer.
        separated_from: Index of the step from which `HERO` and `BLOAT` have their roles.
        noise: Size of the noise, in ranks.
        shapley: Whether Shapley values are among the variables.
        joint: Whether joint ablations are.
        pruning: Whether pruning is.
        constant_importance: Whether no ablation costs anything.
    """
    stream = np.random.default_rng(seed)
    names = component_names(n_layers, n_heads)
    n, size = len(steps), len(names)
    importance = np.empty((n, size))
    attribution = np.empty((n, size))
    for index in range(n):
        place = np.arange(size, dtype=float)
        importance[index] = 0.02 + 0.4 * (place + noise * stream.normal(size=size)) / size
        if index >= separated_from and HERO in names:
            place[names.index(HERO)] = -3.0
            place[names.index(BLOAT)] = size + 3.0
        attribution[index] = 0.1 + 0.01 * (place + 10 + noise * stream.normal(size=size))
    importance = np.round(importance, 2)
    if constant_importance:
        importance[:] = 0.0
    rise = 3.0 * importance
    everywhere: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        "gradient_norm": (
            ("step", "reading", "component"),
            np.stack([attribution[:, ::-1], attribution], axis=1),
        ),
        "weight_gradient": (("step", "component"), attribution**2),
        "activation_gradient": (
            ("step", "component"),
            importance * (1 + 0.02 * stream.normal(size=importance.shape)),
        ),
        "integrated_gradients": (("step", "component"), importance),
        "exact_match_drop": (
            ("step", "ablation_kind", "component"),
            np.stack([importance, importance + 0.05, importance[:, ::-1]], axis=1),
        ),
        "loss_rise": (
            ("step", "ablation_kind", "component"),
            np.stack([rise, rise + 0.1, rise], axis=1),
        ),
        "exact_match": (("step",), np.linspace(0.0, 0.55, n)),
        "token_loss": (("step",), np.linspace(4.6, 0.4, n)),
    }
    if shapley:
        everywhere["shapley"] = (("step", "component"), importance + 0.01)
        everywhere["shapley_se"] = (("step", "component"), np.full((n, size), 0.01))
    coords: dict[str, Any] = {
        "step": np.array(steps),
        "component": np.array(names),
        "reading": np.array(READINGS),
        "ablation_kind": np.array(KINDS),
        "bound": _BOUNDS,
    }
    if joint:
        single = np.tile([0.05, 0.06, 0.9], (n, 1))
        together = np.tile([0.35, 0.55, 0.6], (n, 1))
        coords["component_set"] = np.array(SETS)
        everywhere["sum_of_drops"] = (("step", "component_set"), single)
        everywhere["joint_drop"] = (("step", "component_set"), together)
        everywhere["super_additivity"] = (("step", "component_set"), together / single)
    if pruning:
        coords |= {"pruned_kind": np.array(PRUNED), "k": np.array(list("01234"))}
        coords["split"] = np.array(["in distribution", "out of distribution"])
        slope = np.array([0.2, 0.05, 0.12])  # a component costs most among heroes
        share = 1 - slope[:, None, None] * np.arange(5)[:, None]
        left = np.tile(share * np.array([0.95, 0.55]), (n, 1, 1, 1))  # step kind k split
        left[:, 1, 3:] = np.nan  # a run with two bloats
        everywhere["pruned_exact_match"] = (("step", "pruned_kind", "k", "split"), left)
    variables = {
        name: (dims, values.astype(np.float32), _attrs(name))
        for name, (dims, values) in everywhere.items()
    }
    with_interval = ("exact_match_drop", "loss_rise", "exact_match", "token_loss", "joint_drop",
                     "pruned_exact_match")  # fmt: skip
    for name in with_interval:
        if name in everywhere:
            dims, values = everywhere[name]
            ends = np.stack([values - 0.05, values + 0.05], axis=-1)
            interval = f"{name}_interval"
            variables[interval] = ((*dims, "bound"), ends.astype(np.float32), _attrs(interval))
    variables["n_examples"] = ((), np.array(N_EXAMPLES), _attrs("n_examples"))
    return xr.Dataset(variables, coords=coords, attrs=_run_attrs(seed, n_layers, n_heads))


def gap_timeline(seed: int = 0, **options: Any) -> Timeline:
    """`gap_dataset` as a timeline."""
    return Timeline(gap_dataset(seed, **options))


def _attrs(name: str) -> dict[str, str]:
    return {
        "long_name": name.replace("_", " "),
        "units": "fraction",
        "definition": f"made up {name}",
        "range": "(-inf, inf)",
        "nan_means": "fewer than k of that kind" if name.startswith("pruned") else "never NaN",
        "measure": "Synthetic",
        "measure_key": "synthetic",
    }


def _run_attrs(seed: int, n_layers: int, n_heads: int) -> dict[str, Any]:
    task = {"operation": "sorting", "n_integers": 99}
    config = {"name": "sequence_sorting", "seed": seed, "task": task, "n_layers": n_layers,
              "n_heads": n_heads}  # fmt: skip
    return {
        "run_id": f"{seed:016x}",
        "config": json.dumps(config),
        "task": json.dumps(task),
        "spec": json.dumps({"n_layers": n_layers, "n_heads": n_heads}),
        "task_name": "sequence sorting",
        "task_fingerprint": "made-up",
        "n_classes": 104,
        "chance": 1 / 104,
        "seed": seed,
        "versions": json.dumps({"interp-shortcuts": "0.1.0"}),
        "created": "2026-01-01T00:00:00+00:00",
        "source": "run",
        "path": f"seed{seed}",
    }
