"""A made-up timeline with the variables, dims and attributes of a real one, and known events.

Nothing is trained and no torch is loaded: tests of phases, timelines, plots and reports build on
it. Evaluations lie 10 steps apart. Unless an outcome says otherwise, the shortcut is learned at
evaluation 3, adversarial accuracy leaves the shortcut level after evaluation 0.3 n, and is
complete at evaluation 0.5 n.
"""

from __future__ import annotations

import json

import numpy as np
import xarray as xr
from synthetic_causal import causal_variables

SPLITS = ("train", "consistent", "anti", "validation", "adversarial")
SPACING = 10
N_EXAMPLES = {
    "train": 2048,
    "consistent": 1843,
    "anti": 205,
    "validation": 1024,
    "adversarial": 1024,
}
OUTCOMES = (
    "never learned",
    "memorised",
    "shortcut",
    "partial",
    "generalised",
    "transient",
    "direct",
)


def _ramp(n: int, points: dict[float, float]) -> np.ndarray:
    """Piecewise linear over evaluation indices, given as {index: value}."""
    return np.interp(np.arange(n), list(points), list(points.values()))


def behaviour_curves(outcome: str, n: int, chance: float, ratio: float) -> dict[str, np.ndarray]:
    """Accuracy per split for an outcome; `consistent` follows validation, train is the mix."""
    begin, end = int(0.3 * n), int(0.5 * n)
    late = n - 1
    learned = {0: chance, 3: 0.97, 8: 1.0}
    fallen = {0: chance, 3: 0.04, begin: 0.04}
    if outcome == "never learned":
        validation, adversarial = _ramp(n, {0: chance}), _ramp(n, {0: chance})
        consistent, anti = validation, adversarial
    elif outcome == "memorised":
        validation = _ramp(n, {0: chance, begin: chance + 0.02})
        adversarial = _ramp(n, {0: chance, begin: chance - 0.02})
        consistent = anti = _ramp(n, {0: chance, begin: 1.0})
    else:
        validation = _ramp(n, learned)
        adversarial = _ramp(
            n,
            {
                "shortcut": fallen,
                "partial": {**fallen, end: 0.8, late: 0.82},
                "generalised": {**fallen, end: 1.0},
                "transient": {**fallen, end: 1.0, end + 5: 1.0, late - 5: 0.6, late: 0.6},
                "direct": {0: chance, end: 1.0},
            }[outcome],
        )
        consistent, anti = validation, np.clip(adversarial + 0.01, 0, 1)
    return {
        "train": ratio * consistent + (1 - ratio) * anti,
        "consistent": consistent,
        "anti": anti,
        "validation": validation,
        "adversarial": adversarial,
    }


def _attrs(
    long_name: str,
    units: str,
    definition: str,
    measure: str,
    value_range: str = "",
    nan_means: str = "never NaN",
    covers: dict[str, list[str]] | None = None,
) -> dict[str, str]:
    attrs = {
        "long_name": long_name,
        "units": units,
        "definition": definition,
        "range": value_range,
        "nan_means": nan_means,
        "measure": measure,
        "measure_key": f"{measure.lower()}-synthetic",
    }
    if covers:
        attrs["covers"] = json.dumps(covers)
    return attrs


def synthetic_dataset(
    outcome: str = "generalised",
    n_layers: int = 2,
    n_heads: int = 2,
    n_steps: int = 70,
    seed: int = 0,
    n_classes: int = 2,
    n_integers: int = 10,
    length: int = 4,
    causal: bool = True,
    causal_every: int = 1,
) -> xr.Dataset:
    """A plausible full timeline.

    Args:
        outcome: One of `OUTCOMES`.
        n_layers: Layers.
        n_heads: Heads a layer.
        n_steps: Number of evaluations (10 training steps apart).
        seed: Seed of the small wobble on the curves.
        n_classes: Label classes.
        n_integers: Vocabulary of integers.
        length: Integers a sequence; position `length` is "=".
        causal: With the variables of `synthetic_causal`; without, only behaviour and fingerprints.
        causal_every: The causal variables are measured at every so many evaluations and the last,
            and padded as the tracker pads them.
    """
    if outcome not in OUTCOMES:
        raise ValueError(f"`outcome` must be one of {OUTCOMES}; got {outcome!r}.")
    random = np.random.default_rng(seed)
    chance = 1.0 / n_classes
    ratio = 0.9
    label_feature = "parity" if n_classes == 2 else f"residue_{n_classes}"
    features = ["magnitude", label_feature]
    kinds = ["validation", "adversarial"]
    L, H, S, V, P = n_layers, n_heads, n_steps, n_integers, length + 1
    E = 8
    begin, end = int(0.3 * S), int(0.5 * S)
    moves = outcome in ("generalised", "transient", "partial", "direct")
    learns = outcome not in ("never learned", "memorised")

    curves = behaviour_curves(outcome, S, chance, ratio)
    accuracy = np.stack([curves[s] for s in SPLITS], axis=1)
    n_examples = np.array([N_EXAMPLES[s] for s in SPLITS])
    # near-perfect accuracy means a loss near zero, so that saturation happens
    loss = np.clip((1 - accuracy) * 3 * np.log(n_classes), 1e-4, None)
    shortcut_rate = np.where(
        np.array([s in ("anti", "adversarial") for s in SPLITS])[None, :],
        (1 - accuracy) / max(n_classes - 1, 1),
        accuracy,
    )

    def around(values: np.ndarray, width: np.ndarray, low: float, high: float) -> np.ndarray:
        return np.stack(
            [np.clip(values - width, low, high), np.clip(values + width, low, high)], -1
        )

    accuracy_width = 1.96 * np.sqrt(np.clip(accuracy * (1 - accuracy), 1e-4, None) / n_examples)
    rate_width = 1.96 * np.sqrt(
        np.clip(shortcut_rate * (1 - shortcut_rate), 1e-4, None) / n_examples
    )

    # circuits: head (0, 0) reads magnitude and declines; the last head grows a parity OV
    qk = np.zeros((S, L, H))
    ov = np.zeros((S, L, H))
    eta = np.full((S, L, H), 0.2)
    for layer in range(L):
        for head in range(H):
            wobble = 0.02 * np.sin(np.arange(S) / 5 + layer + 2 * head)
            top = 0.7 if (layer, head) == (0, 0) else 0.2 + 0.1 * layer - 0.1 * head
            points = {0: 0.0, 5: top if learns else 0.05}
            if moves and (layer, head) == (0, 0):
                points.update({begin: top, end: 0.3})
            qk[:, layer, head] = _ramp(S, points) + wobble
            points = {0: 0.0, begin: 0.1}
            grows = {0: 0.1}
            if moves and (layer, head) == (L - 1, H - 1):
                points[end] = 0.85
                grows = {0: 0.1, begin: 0.3, end: 0.8}
            ov[:, layer, head] = _ramp(S, points) + wobble
            eta[:, layer, head] = np.clip(_ramp(S, grows) + wobble, 0, 1)
    ceiling = np.sqrt(3) / 2 * np.sqrt(V**2 / (V**2 - 1)) if n_classes == 2 else 0.7

    def on_features(values: np.ndarray, index: int) -> np.ndarray:
        full = np.full((*values.shape, len(features)), np.nan)
        full[..., index] = values
        return full

    def on_splits(values: np.ndarray) -> np.ndarray:
        """[..., kind] -> [..., split], NaN for splits that are not measured."""
        full = np.full((*values.shape[:-1], len(SPLITS)), np.nan)
        full[..., SPLITS.index("validation")] = values[..., 0]
        full[..., SPLITS.index("adversarial")] = values[..., 1]
        return full

    def on_splits_bound(values: np.ndarray, width: float, low: float, high: float) -> np.ndarray:
        return np.stack([on_splits(np.clip(values + s * width, low, high)) for s in (-1, 1)], -1)

    to_max = np.clip(0.25 + 0.7 * qk, 0, 1)[..., None] * np.array([1.0, 0.95])
    entropy = np.log(P) * (1 - 0.6 * to_max)
    attention = np.full((S, L, H, P, 2), 0.0)
    attention[..., 0, :] = to_max
    attention[..., 1:, :] = ((1 - to_max) / (P - 1))[..., None, :]
    attention = np.stack(
        [on_splits(attention[..., p, :]) for p in range(P)], axis=3
    )  # step layer head position split
    activation = np.stack([0.9 * qk, 0.85 * qk], -1)  # step layer head kind

    tokens = random.integers(0, V, size=(E, P))
    tokens[:, -1] = V
    labels = tokens[:, :-1].sum(1) % n_classes
    shortcut = tokens[:, :-1].max(1) % n_classes
    largest = tokens[:, :-1] == tokens[:, :-1].max(1, keepdims=True)
    weight = np.concatenate([largest / largest.sum(1, keepdims=True), np.zeros((E, 1))], 1)
    focus = np.clip(0.25 + 0.7 * qk, 0, 1)[..., None, None]
    attention_example = focus * weight + (1 - focus) / P

    integers = np.arange(V)
    qk_score = 4 * qk[..., None] * (integers / max(V - 1, 1) - 0.5)
    qk_score = qk_score + 0.1 * random.standard_normal((L, H, V))
    target = (integers[:, None] % n_classes == np.arange(n_classes)) - chance
    ov_logit = 3 * ov[..., None, None] * target + 0.1 * random.standard_normal((L, H, V, n_classes))

    one = {"feature": ["magnitude"]}
    other = {"feature": [label_feature]}
    measured = {"split": kinds}
    lhf = ("step", "layer", "head", "feature")
    f32 = np.float32
    variables = {
        "loss": (
            ("step", "split"),
            loss.astype(f32),
            _attrs("Loss", "nats", "mean cross-entropy at the read position", "Behaviour", ">= 0"),
        ),
        "loss_interval": (
            ("step", "split", "bound"),
            around(loss, 0.05 * loss, 0, np.inf).astype(f32),
            _attrs(
                "Loss, 95% interval", "nats", "mean -+ 1.96 standard errors", "Behaviour", ">= 0"
            ),
        ),
        "accuracy": (
            ("step", "split"),
            accuracy.astype(f32),
            _attrs(
                "Accuracy",
                "fraction",
                "share of examples whose largest logit is the true label",
                "Behaviour",
                "[0, 1]",
            ),
        ),
        "accuracy_interval": (
            ("step", "split", "bound"),
            around(accuracy, accuracy_width, 0, 1).astype(f32),
            _attrs(
                "Accuracy, 95% interval",
                "fraction",
                "95% interval over examples",
                "Behaviour",
                "[0, 1]",
            ),
        ),
        "shortcut_rate": (
            ("step", "split"),
            shortcut_rate.astype(f32),
            _attrs(
                "Shortcut rate",
                "fraction",
                "share of examples whose prediction is the shortcut label",
                "Behaviour",
                "[0, 1]",
            ),
        ),
        "shortcut_rate_interval": (
            ("step", "split", "bound"),
            around(shortcut_rate, rate_width, 0, 1).astype(f32),
            _attrs(
                "Shortcut rate, 95% interval",
                "fraction",
                "95% interval over examples",
                "Behaviour",
                "[0, 1]",
            ),
        ),
        "n_examples": (
            ("step", "split"),
            np.broadcast_to(n_examples, (S, len(SPLITS))).astype(np.int64),
            _attrs("Examples", "examples", "number of examples in the split", "Behaviour"),
        ),
        "qk_spearman": (
            lhf,
            on_features(qk, 0).astype(f32),
            _attrs(
                "QK Spearman",
                "1",
                "Spearman over integers v of (s_v, f(v))",
                "QKSpearman",
                "[-1, 1]",
                "the scores or the feature are constant",
                one,
            ),
        ),
        "qk_score": (
            ("step", "layer", "head", "integer"),
            qk_score.astype(f32),
            _attrs("QK score", "1", "s_v = (x_q W_Q + b_Q) . (x_v W_K + b_K)", "QKSpearman"),
        ),
        "qk_spearman_activation": (
            (*lhf, "split"),
            np.stack([on_splits(activation), np.full((S, L, H, len(SPLITS)), np.nan)], 3).astype(
                f32
            ),
            _attrs(
                "QK Spearman, activations",
                "1",
                "mean over examples of the Spearman over positions",
                "QKSpearman",
                "[-1, 1]",
                "no example defines a rank correlation",
                {**one, **measured},
            ),
        ),
        "qk_spearman_activation_interval": (
            (*lhf, "split", "bound"),
            np.stack(
                [
                    on_splits_bound(activation, 0.02, -1, 1),
                    np.full((S, L, H, len(SPLITS), 2), np.nan),
                ],
                3,
            ).astype(f32),
            _attrs(
                "QK Spearman, activations, 95% interval",
                "1",
                "mean -+ 1.96 standard errors",
                "QKSpearman",
                "[-1, 1]",
                "no example defines a rank correlation",
                {**one, **measured},
            ),
        ),
        "qk_spearman_activation_undefined": (
            (*lhf, "split"),
            np.stack(
                [on_splits(np.zeros_like(activation)), np.full((S, L, H, len(SPLITS)), np.nan)], 3
            ).astype(f32),
            _attrs(
                "Examples without a rank correlation",
                "examples",
                "examples whose scores or features are constant",
                "QKSpearman",
                ">= 0",
                "not measured",
                {**one, **measured},
            ),
        ),
        "attention": (
            ("step", "layer", "head", "position", "split"),
            attention.astype(f32),
            _attrs(
                "Attention",
                "fraction",
                "mean attention weight from '=' to each position",
                "Attention",
                "[0, 1]",
                "the split is empty",
                measured,
            ),
        ),
        "attention_to_max": (
            ("step", "layer", "head", "split"),
            on_splits(to_max).astype(f32),
            _attrs(
                "Attention to the maximum",
                "fraction",
                "mean over examples of the weight on the position(s) of the maximum",
                "Attention",
                "[0, 1]",
                "the split is empty",
                measured,
            ),
        ),
        "attention_to_max_interval": (
            ("step", "layer", "head", "split", "bound"),
            on_splits_bound(to_max, 0.01, 0, 1).astype(f32),
            _attrs(
                "Attention to the maximum, 95% interval",
                "fraction",
                "mean -+ 1.96 standard errors",
                "Attention",
                "[0, 1]",
                "the split is empty",
                measured,
            ),
        ),
        "attention_entropy": (
            ("step", "layer", "head", "split"),
            on_splits(entropy).astype(f32),
            _attrs(
                "Attention entropy",
                "nats",
                "mean entropy of the attention from '='",
                "Attention",
                ">= 0",
                "the split is empty",
                measured,
            ),
        ),
        "attention_entropy_interval": (
            ("step", "layer", "head", "split", "bound"),
            on_splits_bound(entropy, 0.01, 0, np.inf).astype(f32),
            _attrs(
                "Attention entropy, 95% interval",
                "nats",
                "mean -+ 1.96 standard errors",
                "Attention",
                ">= 0",
                "the split is empty",
                measured,
            ),
        ),
        "attention_example": (
            ("step", "layer", "head", "example", "position"),
            attention_example.astype(f32),
            _attrs(
                "Attention in one example",
                "fraction",
                "attention weight from '='",
                "Attention",
                "[0, 1]",
            ),
        ),
        "example_tokens": (
            ("example", "position"),
            tokens.astype(np.int64),
            _attrs("Tokens", "token", "the example's tokens", "Attention"),
        ),
        "example_label": (
            ("example",),
            labels.astype(np.int64),
            _attrs("True label", "class", "the example's true label", "Attention"),
        ),
        "example_shortcut": (
            ("example",),
            shortcut.astype(np.int64),
            _attrs("Shortcut label", "class", "the example's shortcut label", "Attention"),
        ),
        "ov_spearman": (
            lhf,
            on_features(ov, 1).astype(f32),
            _attrs(
                "OV Spearman",
                "1",
                "Spearman over integers v of (d_v, f(v))",
                "OVSpearman",
                "[-1, 1]",
                "the logit differences are constant",
                other,
            ),
        ),
        "ov_spearman_ceiling": (
            lhf,
            on_features(np.full((S, L, H), ceiling), 1).astype(f32),
            _attrs(
                "OV Spearman, ceiling",
                "1",
                "largest value the ties allow",
                "OVSpearman",
                "[0, 1]",
                "the logit differences are constant",
                other,
            ),
        ),
        "ov_spearman_relative": (
            lhf,
            on_features(ov / ceiling, 1).astype(f32),
            _attrs(
                "OV Spearman / ceiling",
                "1",
                "rho / ceiling",
                "OVSpearman",
                "[-1, 1]",
                "the logit differences are constant",
                other,
            ),
        ),
        "ov_logit": (
            ("step", "layer", "head", "integer", "class"),
            ov_logit.astype(f32),
            _attrs("OV logit", "logits", "u_v = o_v W_U", "OVSpearman"),
        ),
        "ov_class_fraction": (
            lhf,
            on_features(eta, 1).astype(f32),
            _attrs(
                "OV class fraction",
                "fraction",
                "between-class share of the variance of o_v",
                "OVClassFraction",
                "[0, 1]",
                "o_v is constant",
                other,
            ),
        ),
        "ov_class_fraction_chance": (
            ("feature",),
            on_features(np.array((n_classes - 1) / (V - 1)), 1).astype(f32),
            _attrs(
                "OV class fraction, chance",
                "fraction",
                "(C-1)/(V-1)",
                "OVClassFraction",
                "[0, 1]",
                "not this feature",
                other,
            ),
        ),
    }
    coords = {
        "step": np.arange(S) * SPACING,
        "layer": np.arange(L),
        "head": np.arange(H),
        "split": np.array(SPLITS),
        "feature": np.array(features),
        "position": np.arange(P),
        "integer": integers,
        "class": np.arange(n_classes),
        "bound": np.array(["low", "high"]),
        "example": np.arange(E),
        "example_split": ("example", np.array(["validation"] * 4 + ["adversarial"] * 4)),
    }
    task = {"length": length, "n_integers": V, "ratio": ratio, "rule": "max_parity"}
    spec = {"n_layers": L, "n_heads": H, "d_model": 64, "d_mlp": 128, "normalization": "none"}
    attrs = {
        "run_id": f"synthetic-{outcome.replace(' ', '-')}-{seed}",
        "config": json.dumps({"task": task, "model": spec, "seed": seed}),
        "spec": json.dumps(spec),
        "task": json.dumps(task),
        "task_fingerprint": "synthetic",
        "task_name": "max_parity" if n_classes == 2 else f"max_mod{n_classes}",
        "n_classes": n_classes,
        "chance": chance,
        "seed": seed,
        "versions": json.dumps({"interp-shortcuts": "0.1.0"}),
        "created": "2025-01-01T00:00:00+00:00",
        "source": "run",
        "path": f"synthetic-{outcome.replace(' ', '-')}",
    }
    data = xr.Dataset(variables, coords=coords, attrs=attrs)
    if not causal:
        return data
    found = causal_variables(
        curves,
        outcome=outcome,
        n_layers=L,
        n_heads=H,
        n_positions=P,
        splits=SPLITS,
        chance=chance,
        ratio=ratio,
    )
    whole = xr.Dataset(found.variables, coords=found.coords)
    return data.assign(_sampled(whole, coords["step"], causal_every)).assign_coords(found.coords)


def _sampled(data: xr.Dataset, steps: np.ndarray, every: int) -> dict[str, xr.DataArray]:
    """The variables with all but every so many evaluations and the last left as padding."""
    arrays = {str(name): array for name, array in data.data_vars.items()}
    if every == 1:
        return arrays
    kept = sorted({*range(0, len(steps), every), len(steps) - 1})
    for name, array in arrays.items():
        if "step" not in array.dims:
            continue
        wide = array.assign_coords(step=steps).isel(step=kept).reindex(step=steps)
        covers = json.loads(array.attrs.get("covers", "{}")) | {"step": steps[kept].tolist()}
        wide.attrs |= {"covers": json.dumps(covers), "cadence": every}
        if wide.dtype != array.dtype:
            wide.attrs["measured_dtype"] = str(array.dtype)
        arrays[name] = wide
    return arrays
