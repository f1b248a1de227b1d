"""A made-up timeline of modular arithmetic under label noise, with the variables of its measures.

Nothing is trained and no torch is loaded: tests of what is read of such runs, of their figures and
pages build on it. Unless told otherwise, noisy labels are fitted from the second step on, clean
ones from the third, network G with the quadratic activation answers every test pair from the
fourth, with ReLU three quarters of them, and the network itself none.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from interp_shortcuts.timelines.timeline import Timeline

GROUPS = ("train", "clean", "noisy", "noisy_true", "test")
NETWORKS = ("full", "G", "R", "G joint", "R joint")
ACTINGS = ("trained", "relu", "quadratic", "reverse_relu")
VECTORS = ("u", "v", "w")
SCORES = ("ipr", "strength", "random")
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
STEPS = (0, 100, 250, 500, 1000, 2000)
G_RELU, R_NOISY, RAW_TEST = 0.75, 0.77, 0.02


def modular_dataset(
    seed: int = 0,
    *,
    steps: tuple[int, ...] = STEPS,
    width: int = 65,
    noise: float = 0.4,
    modulus: int = 59,
    hidden_from: int | None = 3,
    noisy_from: int = 1,
    clean_from: int = 2,
    full_test: float = RAW_TEST,
    filtered: bool = True,
    spectra: bool = True,
    partition: bool = True,
    name: str = "modular_noise",
    weight_decay: float = 0.5,
) -> xr.Dataset:
    """A plausible full dataset.

    Args:
        seed: Seed of the noise, and of the run.
        steps: Training steps.
        width: Neurons.
        noise: Fraction of wrong training labels, in the config; 0 leaves the noisy groups empty.
        modulus: The modulus P.
        hidden_from: Index of the step from which network G with the quadratic activation answers
            every test pair; None: never.
        noisy_from: Index of the step from which the noisy labels are fitted.
        clean_from: Index of the step from which the clean ones are.
        full_test: Test accuracy of the network itself from the second step on.
        filtered: Whether the frequency filter is among the variables.
        spectra: Whether the spectra of neurons are.
        partition: Whether partitions by neuron are.
        name: Name of the run's config.
        weight_decay: Weight decay in the config.
    """
    n = len(steps)
    places = np.arange(n)
    hidden = places >= (n if hidden_from is None else hidden_from)
    full = np.empty((n, len(GROUPS)))
    full[:, 1] = np.where(places >= clean_from, 1.0, 0.1 * places)
    full[:, 2] = np.where(places >= noisy_from, 1.0, 0.05)
    full[:, 3] = 0.01
    full[:, 4] = np.where(places > 0, full_test, 1 / modulus)
    full[:, 0] = (1 - noise) * full[:, 1] + noise * full[:, 2]
    if noise == 0:
        full[:, 2:4] = np.nan
        full[:, 0] = full[:, 1]
    variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        "group_accuracy": (("step", "group"), full),
        "group_loss": (("step", "group"), 4.0 * (1.05 - full)),
    }
    coords: dict[str, Any] = {
        "step": np.array(steps),
        "group": np.array(GROUPS),
        "bound": np.array(["low", "high"]),
    }
    variables["group_n"] = (("group",), group_sizes(noise, modulus))
    variables["group_accuracy_interval"] = (("step", "group", "bound"), _interval(full))
    if filtered:
        coords |= {"network": np.array(NETWORKS), "acting": np.array(ACTINGS)}
        accuracy = _filtered(full, hidden)
        dims = ("step", "network", "acting", "group")
        variables["filtered_accuracy"] = (dims, accuracy)
        variables["filtered_loss"] = (dims, 4.0 * (1.05 - accuracy))
        variables["filtered_accuracy_interval"] = ((*dims, "bound"), _interval(accuracy))
    if spectra:
        own, sizes = _spectra(np.random.default_rng(seed), n, width, modulus)
        variables |= own
        coords |= sizes
    if partition:
        own, sizes = _partition(full)
        variables |= own
        coords |= sizes
    made = {
        key: (dims, values.astype(np.float32), _attrs(key))
        for key, (dims, values) in variables.items()
    }
    attrs = _run_attrs(seed, width, noise, modulus, name, weight_decay)
    return xr.Dataset(made, coords=coords, attrs=attrs)


def modular_timeline(seed: int = 0, **options: Any) -> Timeline:
    """`modular_dataset` as a timeline."""
    return Timeline(modular_dataset(seed, **options))


def group_sizes(noise: float = 0.4, modulus: int = 59) -> np.ndarray:
    """The number of examples of each group."""
    n_train = round(0.8 * modulus**2)
    n_noisy = round(noise * n_train)
    return np.array([n_train, n_train - n_noisy, n_noisy, n_noisy, modulus**2 - n_train])


def _interval(accuracy: np.ndarray) -> np.ndarray:
    return np.clip(np.stack([accuracy - 0.01, accuracy + 0.01], axis=-1), 0.0, 1.0)


def _filtered(full: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Accuracy [step network acting group]: G answers, R remembers the noisy labels."""
    n = len(full)
    found = np.empty((n, len(NETWORKS), len(ACTINGS), len(GROUPS)))
    grown = np.linspace(0.02, 1.0, n)
    for acting, name in enumerate(ACTINGS):
        found[:, 0, acting] = full if name in ("trained", "relu") else 0.5 * full
        quadratic = name == "quadratic"
        right = np.where(hidden, 1.0, 0.6 * grown) if quadratic else G_RELU * grown
        for network, factor in ((1, 1.0), (3, 0.9)):
            found[:, network, acting] = (factor * right)[:, None]
            found[:, network, acting, 2] = 0.01
        for network in (2, 4):
            found[:, network, acting] = 0.02
            found[:, network, acting, 2] = R_NOISY * full[:, 2]
    found[..., np.isnan(full).any(0)] = np.nan
    return found


def _spectra(
    stream: np.random.Generator, n: int, width: int, modulus: int
) -> tuple[dict[str, tuple[tuple[str, ...], np.ndarray]], dict[str, Any]]:
    """Neurons that settle on one of five frequencies, the more so the later; one has died."""
    n_frequencies = modulus // 2 + 1
    settled = stream.choice([3, 8, 12, 20, 27], size=width) * (modulus // 2) // 29
    settled = np.maximum(settled, 1)
    grown = np.linspace(0.15, 0.95, n)[:, None, None]
    power = stream.uniform(0.0, 1.0, size=(n, len(VECTORS), width, n_frequencies))
    power /= power.sum(-1, keepdims=True) / (1 - grown[..., None])
    power[..., np.arange(width), settled] += np.broadcast_to(grown, (n, len(VECTORS), width))
    power[..., 0, :] = 0.0
    nonzero = power[..., 1:]
    total = power.sum(-1)
    dominant = 1.0 + nonzero.argmax(-1)
    with np.errstate(invalid="ignore"):
        concentration = nonzero.max(-1) / total
    concentration[..., 0] = np.nan
    dominant[..., 0] = np.nan
    joint = 1.0 + nonzero.sum(1).argmax(-1)
    joint[:, 0] = np.nan
    spread = np.linspace(1.5, 0.1, n)[:, None]
    error = np.angle(np.exp(1j * spread * stream.normal(size=(n, width))))
    error[:, 0] = np.nan
    ipr = np.stack([concentration[:, 2] ** 2, concentration[:, 2] ** 2 / 2], axis=1)
    variables = {
        "power": (("step", "vector", "neuron", "frequency"), power),
        "dominant_frequency": (("step", "vector", "neuron"), dominant),
        "concentration": (("step", "vector", "neuron"), concentration),
        "joint_frequency": (("step", "neuron"), joint),
        "phase_error": (("step", "neuron"), error),
        "ipr": (("step", "convention", "neuron"), ipr),
        "strength": (("step", "neuron"), stream.uniform(0.5, 3.0, size=(n, width))),
    }
    coords = {
        "vector": np.array(VECTORS),
        "neuron": np.arange(width),
        "frequency": np.arange(n_frequencies),
        "convention": np.array(["rfft", "fft"]),
    }
    return variables, coords


def _partition(
    full: np.ndarray,
) -> tuple[dict[str, tuple[tuple[str, ...], np.ndarray]], dict[str, Any]]:
    """The more neurons are kept, the more of the network is left; IPR is a little better."""
    shares = np.array(SHARES)
    kept = np.array([1.0, 0.8, 0.6])[:, None, None] * shares[None, None, :]
    kept = np.repeat(kept, 2, axis=1)  # score keep share
    accuracy = kept[None, ..., None] * full[:, None, None, None, :]
    accuracy[:, 0, 0, :, -1] = 0.3 * (1 - shares) + 0.02  # IPR's top neurons answer a little
    random = accuracy[:, SCORES.index("random")]
    dims = ("step", "keep", "share", "group")
    variables = {
        "partition_accuracy": (("step", "score", *dims[1:]), accuracy),
        "partition_random_low": (dims, 0.9 * random),
        "partition_random_high": (dims, np.minimum(1.1 * random, 1.0)),
    }
    coords = {"score": np.array(SCORES), "keep": np.array(["top", "bottom"]), "share": shares}
    return variables, coords


def _attrs(name: str) -> dict[str, str]:
    return {
        "long_name": name.replace("_", " "),
        "units": "fraction",
        "definition": f"made up {name}",
        "range": "(-inf, inf)",
        "nan_means": "an empty group" if "accuracy" in name else "the vector is zero",
        "measure": "Synthetic",
        "measure_key": "synthetic",
    }


def _run_attrs(
    seed: int, width: int, noise: float, modulus: int, name: str, weight_decay: float
) -> dict[str, Any]:
    task = {"arithmetic": "add", "modulus": modulus, "noise": noise, "train_fraction": 0.8,
            "data_seed": None}  # fmt: skip
    model = {"width": width, "activation": "relu", "tied": False, "init_scale": 1.0}
    optim = {"lr": 0.001, "weight_decay": weight_decay}
    config = {"name": name, "seed": seed, "task": task, "model": model, "optim": optim}
    return {
        "run_id": f"{seed:016x}",
        "config": json.dumps(config),
        "task": json.dumps(task),
        "spec": json.dumps({"n_tokens": modulus, "n_classes": modulus, **model}),
        "task_name": f"add modulo {modulus}",
        "task_fingerprint": "made-up",
        "n_classes": modulus,
        "chance": 1 / modulus,
        "seed": seed,
        "versions": json.dumps({"interp-shortcuts": "0.1.0"}),
        "created": "2026-01-01T00:00:00+00:00",
        "source": "run",
        "path": f"seed{seed}",
    }
