"""The causal and gradient variables of the made-up timeline in `synthetic_timeline`.

Two curves drive them: the shortcut's strength, which rises with validation accuracy and falls as
the rule takes over, and the rule's strength, which follows adversarial accuracy from the shortcut
level to 1. In phase 1 the heads of layer 0 together and the last MLP carry the shortcut; after the
hand-over all heads together and the last MLP carry the rule. One head alone disrupts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np

DIRECTIONS = ("validation<-adversarial", "adversarial<-validation")
ABLATIONS = ("zero", "mean", "resample")
QK_ABLATIONS = ("uniform", "mean")
GROUPS = ("consistent", "anti")
BOUNDS = ("low", "high")
PAIRS = 256

Variable = tuple[tuple[str, ...], np.ndarray, dict[str, str]]

TRANSFER_ROLES: dict[str, tuple[float, float, float, float, float, float]] = {
    # rule in phase 1, rule at the end, shortcut in phase 1, at the end, disruption, at the end
    "last mlp": (0.01, 0.99, 0.60, 0.00, 0.04, 0.00),
    "first mlp": (0.00, 0.10, 0.08, 0.02, 0.05, 0.06),
    "first head": (0.02, 0.31, 0.35, 0.30, 0.22, 0.27),
    "head": (0.01, 0.12, 0.15, 0.05, 0.08, 0.09),
    "first heads": (0.01, 0.60, 0.56, 0.22, 0.03, 0.05),
    "later heads": (0.01, 0.20, 0.10, 0.02, 0.05, 0.06),
    "all heads": (0.01, 0.74, 0.58, 0.18, 0.03, 0.01),
    "all mlps": (0.01, 0.995, 0.62, 0.00, 0.04, 0.00),
}
REACH = {
    # share of the accuracy above chance that ablation takes: in phase 1, at the end
    "last mlp": (0.75, 0.95),
    "first mlp": (0.10, 0.25),
    "first head": (0.60, 0.35),
    "head": (0.08, 0.20),
    "first heads": (0.95, 0.70),
    "later heads": (0.10, 0.45),
    "all heads": (1.0, 1.0),
    "all mlps": (0.8, 1.0),
}


@dataclass(frozen=True)
class Causal:
    """The variables, and labels of their dims."""

    variables: dict[str, Variable] = field(default_factory=dict)
    coords: dict[str, np.ndarray] = field(default_factory=dict)


def component_labels(n_layers: int, n_heads: int, *, mlps: bool = True) -> list[str]:
    """Heads and MLPs layer by layer, then the sets."""
    found = []
    for layer in range(n_layers):
        found += [f"L{layer}.H{head}" for head in range(n_heads)]
        found += [f"L{layer}.mlp"] if mlps else []
    found += [f"L{layer}.heads" for layer in range(n_layers)]
    return [*found, "all heads", *(["all mlps"] if mlps else [])]


def part_labels(n_layers: int, n_heads: int) -> list[str]:
    """The model, then its parts in the order of the forward pass."""
    found = ["model", "embed", "pos_embed"]
    for layer in range(n_layers):
        found += [f"L{layer}.H{head}.{letter}" for head in range(n_heads) for letter in "QKVO"]
        found += [f"L{layer}.b_O", f"L{layer}.mlp"]
    return [*found, "unembed"]


def causal_variables(
    curves: dict[str, np.ndarray],
    *,
    outcome: str,
    n_layers: int,
    n_heads: int,
    n_positions: int,
    splits: tuple[str, ...],
    chance: float,
    ratio: float,
) -> Causal:
    """Variables of ablation, QK and OV ablation, patching, gradient conflict and saturation.

    Args:
        curves: Accuracy per split.
        outcome: The outcome that the curves were made for.
        n_layers: Layers.
        n_heads: Heads a layer.
        n_positions: Positions with "=".
        splits: All splits of the timeline, over which the ablations are padded.
        chance: 1 / classes.
        ratio: Fraction of consistent examples in train.
    """
    rule, shortcut = strengths(curves, outcome, chance)
    labels = component_labels(n_layers, n_heads)
    heads = component_labels(n_layers, n_heads, mlps=False)
    roles = [_role(label, n_layers) for label in labels]
    parts = part_labels(n_layers, n_heads)
    sites = [f"resid_pre L{layer}" for layer in range(n_layers)] + [f"resid_post L{n_layers - 1}"]
    measured = ("validation", "adversarial")
    accuracy = np.stack([curves[split] for split in measured], axis=-1)
    lost = (
        np.stack([(REACH[r][0] * shortcut + REACH[r][1] * rule)[:, None] for r in roles], axis=1)
        * (accuracy - chance)[:, None, :]
    )  # step component split
    variables: dict[str, Variable] = {}

    covers: dict[str, list[str]] = {"split": list(measured)}
    strength = np.array([1.05, 1.0, 0.9])[:, None]  # zero, mean, resample
    every = np.clip(lost[:, :, None, :] * strength, -1, 1)
    dims = ("step", "component", "ablation")
    variables |= _effects("ablation", "Ablation", dims, every, splits, covers)
    looks = [0.8 if "mlp" not in label else 0.0 for label in labels]
    on_heads = np.array(looks)[:, None] * lost
    queries = np.clip(on_heads[:, :, None, :] * np.array([0.9, 0.7])[:, None], -1, 1)
    some: dict[str, list[str]] = {**covers, "component": heads}
    absent = np.array([label not in heads for label in labels])
    queries[:, absent] = np.nan
    dims = ("step", "component", "qk_ablation")
    variables |= _effects("qk_ablation", "QKAblation", dims, queries, splits, some)
    values = np.clip(on_heads, -1, 1)
    values[:, absent] = np.nan
    variables |= _effects("ov_ablation", "OVAblation", ("step", "component"), values, splits, some)

    variables |= _transfers(roles, rule, shortcut)
    variables |= _residual(sites, n_positions, rule, shortcut)
    variables |= _gradients(parts, rule, shortcut, ratio)
    variables |= _saturation(curves, chance, ratio)
    coords = {
        "component": labels,
        "ablation": ABLATIONS,
        "qk_ablation": QK_ABLATIONS,
        "direction": DIRECTIONS,
        "site": sites,
        "group": GROUPS,
        "part": parts,
    }
    return Causal(variables, {name: np.array(names) for name, names in coords.items()})


def strengths(
    curves: dict[str, np.ndarray], outcome: str, chance: float
) -> tuple[np.ndarray, np.ndarray]:
    """How strong the rule and the shortcut are at each evaluation, in [0, 1]."""
    none = np.zeros_like(curves["validation"])
    if outcome in ("never learned", "memorised"):
        return none, none
    adversarial = curves["adversarial"]
    floor = chance if outcome == "direct" else float(adversarial.min())
    risen = np.clip((adversarial - floor) / (1 - floor), 0, 1)
    first = int(adversarial.argmin())  # before it, accuracy falls from chance
    rule = np.where(np.arange(len(risen)) >= first, risen, 0.0)
    learned = np.clip((curves["validation"] - chance) / (1 - chance), 0, 1)
    return rule, none if outcome == "direct" else learned * (1 - rule)


def _role(label: str, n_layers: int) -> str:
    if label in ("all heads", "all mlps"):
        return label
    if label.endswith(".mlp"):
        return "last mlp" if label == f"L{n_layers - 1}.mlp" else "first mlp"
    if label.endswith(".heads"):
        return "first heads" if label == "L0.heads" else "later heads"
    return "first head" if label == "L0.H0" else "head"


def _attrs(
    measure: str,
    long_name: str,
    units: str,
    definition: str,
    value_range: str,
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
    return attrs | ({"covers": json.dumps(covers)} if covers else {})


def _bounds(values: np.ndarray, width: float, low: float, high: float) -> np.ndarray:
    return np.stack([np.clip(values + side * width, low, high) for side in (-1, 1)], axis=-1)


def _effects(
    prefix: str,
    measure: str,
    dims: tuple[str, ...],
    lost: np.ndarray,
    splits: tuple[str, ...],
    covers: dict[str, list[str]],
) -> dict[str, Variable]:
    """Accuracy drop, loss increase, logit difference drop, on validation and adversarial."""
    wide = np.full((*lost.shape[:-1], len(splits)), np.nan)
    for index, split in enumerate(("validation", "adversarial")):
        wide[..., splits.index(split)] = lost[..., index]
    inf = np.inf
    found: dict[str, Variable] = {}
    for name, words, units, factor, width, low in (
        ("accuracy_drop", "accuracy drop", "fraction", 1.0, 0.015, -1.0),
        ("loss_increase", "loss increase", "nats", 4.0, 0.08, -inf),
        ("logit_difference_drop", "logit difference drop", "nats", 9.0, 0.2, -inf),
    ):
        high = 1.0 if low == -1.0 else inf
        values = factor * wide
        value_range = "[-1, 1]" if low == -1.0 else "(-inf, inf)"
        text = f"{prefix}: {words}, paired on the same examples"
        args = (units, text, value_range, "the split is empty", covers)
        found[f"{prefix}_{name}"] = (
            (*dims, "split"),
            values.astype(np.float32),
            _attrs(measure, words, *args),
        )
        found[f"{prefix}_{name}_interval"] = (
            (*dims, "split", "bound"),
            _bounds(values, width, low, high).astype(np.float32),
            _attrs(measure, f"{words}, 95% interval", *args),
        )
    n = np.full(len(splits), np.nan)
    n[[splits.index("validation"), splits.index("adversarial")]] = 256
    attrs = _attrs(
        measure, "examples of the ablations", "examples", "number of examples", "[0, inf)"
    )
    attrs |= {"covers": json.dumps({"split": covers["split"]}), "measured_dtype": "int64"}
    found[f"{prefix}_n"] = (("split",), n, attrs)
    return found


def _transfers(roles: list[str], rule: np.ndarray, shortcut: np.ndarray) -> dict[str, Variable]:
    levels = np.array([TRANSFER_ROLES[role] for role in roles]).T[:, None, :]  # level, 1, component
    r, s = rule[:, None], shortcut[:, None]
    reverse = np.array([1.0, 0.9])
    between = 4 * r * (1 - r) * 0.06
    found: dict[str, Variable] = {}
    dims = ("step", "component", "direction")
    pairs = {
        "rule_transfer": levels[0] * s + levels[1] * r,
        "shortcut_transfer": levels[2] * s + levels[3] * r,
        "disruption": levels[4] * s + levels[5] * r + between,
    }
    texts = {
        "rule_transfer": "share of pairs with another true and the same shortcut label whose "
        "prediction moves to the source's true label",
        "shortcut_transfer": "share of pairs with the same true and another shortcut label whose "
        "prediction moves to the source's shortcut label",
        "disruption": "share of pairs with both labels equal whose prediction changes",
    }
    no_pairs = "there is no such pair"
    for name, values in pairs.items():
        full = np.clip(values[..., None] * reverse, 0, 1)
        words = name.replace("_", " ")
        args = ("fraction", texts[name], "[0, 1]", no_pairs)
        found[name] = (
            dims,
            full.astype(np.float32),
            _attrs("CrossSplitPatching", words, *args),
        )
        found[f"{name}_interval"] = (
            (*dims, "bound"),
            _bounds(full, 0.03, 0, 1).astype(np.float32),
            _attrs("CrossSplitPatching", f"{words}, 95% interval", *args),
        )
        found[f"{name}_n"] = (
            dims,
            np.full(full.shape, PAIRS, dtype=np.int64),
            _attrs("CrossSplitPatching", f"{words}, pairs", "pairs", "pairs counted", ">= 0"),
        )
    for name in ("rule_recovered", "shortcut_recovered"):
        full = 0.95 * pairs[name.replace("recovered", "transfer")][..., None] * reverse + 0.01
        words = name.replace("_", " ")
        args = (
            "fraction",
            "mean of (LD_patched - LD_target) / (LD_source - LD_target)",
            "(-inf, inf)",
            no_pairs,
        )
        found[name] = (dims, full.astype(np.float32), _attrs("CrossSplitPatching", words, *args))
        found[f"{name}_interval"] = (
            (*dims, "bound"),
            _bounds(full, 0.03, -np.inf, np.inf).astype(np.float32),
            _attrs("CrossSplitPatching", f"{words}, 95% interval", *args),
        )
        found[f"{name}_n"] = (
            dims,
            np.full(full.shape, PAIRS - 12, dtype=np.int64),
            _attrs("CrossSplitPatching", f"{words}, pairs", "pairs", "pairs counted", ">= 0"),
        )
        found[f"{name}_left_out"] = (
            dims,
            np.full(full.shape, 12, dtype=np.int64),
            _attrs("CrossSplitPatching", f"{words}, left out", "pairs", "pairs left out", ">= 0"),
        )
    return found


def _residual(
    sites: list[str], n_positions: int, rule: np.ndarray, shortcut: np.ndarray
) -> dict[str, Variable]:
    """Early, the integers' positions carry the answer; late, only "=" does."""
    late = np.linspace(0, 1, len(sites))
    place = np.empty((len(sites), n_positions))
    place[:, :-1] = ((1 - late) * 0.35)[:, None]
    place[:, -1] = late
    reverse = np.array([1.0, 0.9])
    found: dict[str, Variable] = {}
    for name, curve in (
        ("rule_transfer", rule),
        ("shortcut_transfer", shortcut),
        ("disruption", 0.05 * (rule + shortcut)),
    ):
        values = np.clip(curve[:, None, None, None] * place[None, :, :, None] * reverse, 0, 1)
        dims = ("step", "site", "position", "direction")
        words = f"residual {name.replace('_', ' ')}"
        args = (
            "fraction",
            f"{name} with the residual stream patched at one position",
            "[0, 1]",
            "there is no such pair",
        )
        found[f"residual_{name}"] = (
            dims,
            values.astype(np.float32),
            _attrs("CrossSplitPatching", words, *args),
        )
        found[f"residual_{name}_interval"] = (
            (*dims, "bound"),
            _bounds(values, 0.05, 0, 1).astype(np.float32),
            _attrs("CrossSplitPatching", f"{words}, 95% interval", *args),
        )
        found[f"residual_{name}_n"] = (
            dims,
            np.full(values.shape, PAIRS // 2, dtype=np.int64),
            _attrs("CrossSplitPatching", f"{words}, pairs", "pairs", "pairs counted", ">= 0"),
        )
    return found


def _gradients(
    parts: list[str], rule: np.ndarray, shortcut: np.ndarray, ratio: float
) -> dict[str, Variable]:
    """Amplification goes to its floor r/(1-r) with the shortcut, and to 1 with the rule."""
    floor = ratio / (1 - ratio)
    wobble = 0.04 * np.sin(np.arange(len(rule))[:, None] / 4 + np.arange(len(parts)))
    wobble[:, 0] = 0
    near = shortcut[:, None] ** 2
    amplification = 1 + (0.97 * floor - 1) * near * (1 + wobble)
    cosine = np.clip(0.3 * (1 - rule[:, None]) * (1 - near) - near + wobble, -1, 1)
    size = np.array([1.0, *np.linspace(0.15, 0.5, len(parts) - 1)])
    alone = (0.5 - 0.45 * shortcut[:, None] - 0.04 * rule[:, None]) * size
    norm = np.stack([alone, alone * amplification], axis=-1)
    anti = 0.5 + 0.6 * near * (1 + wobble)
    share = np.stack([1 - anti, anti], axis=-1)
    single = np.stack([0.6 - 0.5 * shortcut - 0.08 * rule, 0.6 + 4 * shortcut - 0.5 * rule], -1)
    measure = "GradientConflict"
    ratio_args = ("ratio", "A = |g_a| / |g_c|", "[0, inf)", "a gradient is zero")
    norm_args = ("nats per unit of weight", "|g|", "[0, inf)", "the group is empty")
    f32 = np.float32
    return {
        "gradient_norm": (
            ("step", "part", "group"),
            norm.astype(f32),
            _attrs(measure, "gradient norm", *norm_args),
        ),
        "gradient_cosine": (
            ("step", "part"),
            cosine.astype(f32),
            _attrs(
                measure,
                "gradient cosine",
                "cosine",
                "<g_c, g_a> / (|g_c| |g_a|)",
                "[-1, 1]",
                "a gradient is zero",
            ),
        ),
        "gradient_amplification": (
            ("step", "part"),
            amplification.astype(f32),
            _attrs(measure, "gradient amplification", *ratio_args),
        ),
        "gradient_amplification_floor": (
            (),
            np.asarray(floor, dtype=f32),
            _attrs(
                measure,
                "gradient amplification, floor",
                "ratio",
                "r/(1-r)",
                "(0, inf)",
                "a group is empty",
            ),
        ),
        "gradient_excess": (
            ("step", "part"),
            (amplification / floor).astype(f32),
            _attrs(
                measure,
                "gradient excess",
                "ratio",
                "A (1-r)/r",
                "[0, inf)",
                "a gradient is zero",
            ),
        ),
        "gradient_share": (
            ("step", "part", "group"),
            share.astype(f32),
            _attrs(
                measure,
                "share of the gradient",
                "fraction",
                "<w_g g_g, g> / |g|^2",
                "(-inf, inf)",
                "the weighted gradients cancel",
            ),
        ),
        "gradient_n": (
            ("group",),
            np.array([1843, 205]),
            _attrs(measure, "examples behind the gradients", "examples", "n", "[0, inf)"),
        ),
        "gradient_example_norm": (
            ("step", "group"),
            single.astype(f32),
            _attrs(measure, "gradient norm of single examples", *norm_args),
        ),
        "gradient_example_norm_interval": (
            ("step", "group", "bound"),
            _bounds(single, 0.05, -np.inf, np.inf).astype(f32),
            _attrs(measure, "gradient norm of single examples, 95% interval", *norm_args),
        ),
        "gradient_example_norm_n": (
            ("group",),
            np.array([64, 64]),
            _attrs(measure, "examples behind the norm", "examples", "n", "[0, inf)"),
        ),
    }


def _saturation(curves: dict[str, np.ndarray], chance: float, ratio: float) -> dict[str, Variable]:
    loss = np.stack([curves[group] for group in GROUPS], axis=-1)
    loss = np.clip(-3 * np.log(chance) * (1 - loss), 1e-4, None)
    pull = (1 - np.exp(-loss)) * np.array([ratio, 1 - ratio])
    measure = "Saturation"
    loss_args = ("nats", "mean loss over the group", "[0, inf)", "the group is empty")
    f32 = np.float32
    return {
        "group_loss": (
            ("step", "group"),
            loss.astype(f32),
            _attrs(measure, "loss of the group", *loss_args),
        ),
        "group_loss_interval": (
            ("step", "group", "bound"),
            _bounds(loss, 0.02, 0, np.inf).astype(f32),
            _attrs(measure, "loss of the group, 95% interval", *loss_args),
        ),
        "group_loss_n": (
            ("group",),
            np.array([1843, 205]),
            _attrs(measure, "examples of the group", "examples", "n", "[0, inf)"),
        ),
        "group_gradient_share": (
            ("step", "group"),
            (pull / pull.sum(axis=-1, keepdims=True)).astype(f32),
            _attrs(
                measure,
                "share of the gradient at the logits",
                "fraction",
                "the group's share of the summed gradient norms",
                "[0, 1]",
                "every gradient is zero",
            ),
        ),
    }
