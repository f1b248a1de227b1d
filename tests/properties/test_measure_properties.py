"""The vectorised measures equal slow plain ones: loops, scipy and TransformerLens's own cache."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from interp_shortcuts.measures.attention import Attention
from interp_shortcuts.measures.behaviour import Behaviour
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.measures.ov import OVSpearman
from interp_shortcuts.measures.ov_fraction import OVClassFraction
from interp_shortcuts.measures.qk import QKSpearman
from interp_shortcuts.models.build import build
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.tasks.task import ShortcutTask

RULES = {2: ("max_parity", "first_parity"), 3: ("max_mod3", "first_mod3")}
quick = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


@st.composite
def cases(draw):
    n_classes = draw(st.sampled_from([2, 3]))
    task = ShortcutTask.named(
        draw(st.sampled_from(RULES[n_classes])),
        length=draw(st.integers(2, 5)),
        n_integers=draw(st.integers(5, 9)),
        n_train=16,
        n_validation=7,
        n_adversarial=6,
        ratio=0.75,
        seed=draw(st.integers(0, 3)),
    )
    n_heads = draw(st.integers(1, 3))
    spec = ModelSpec(
        n_layers=draw(st.integers(1, 3)),
        n_heads=n_heads,
        d_model=n_heads * draw(st.integers(2, 5)),
        d_mlp=6,
        normalization=draw(st.sampled_from(["none", "LN", "LNPre", "RMS", "RMSPre"])),
        attention=draw(st.sampled_from(["causal", "bidirectional"])),
        d_vocab=task.n_tokens + draw(st.integers(0, 2)),
        d_vocab_out=n_classes,
        n_ctx=task.context + draw(st.integers(0, 2)),
    )
    return spec, draw(st.integers(0, 1000)), task


def random_model(spec, seed):
    """A model whose biases and gains do something too."""
    model = build(spec, seed=seed)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "b_" in name or name.endswith((".w", ".b")):
                weight.add_(0.3 * torch.randn(weight.shape, generator=generator))
    return model


def clustered(values, resolution):
    """The values with near-ties made exact, one group at a time."""
    values = np.array(values, dtype=np.float64)
    order = np.argsort(values)
    reach = resolution * np.abs(values).max()
    made = values.copy()
    for before, after in itertools.pairwise(order):
        near = values[after] - values[before] <= reach
        made[after] = made[before] if near else values[after]
    return made


def plain_spearman(first, second, resolution=1e-10):
    first, second = clustered(first, resolution), clustered(second, 1e-10)
    if len(set(first.tolist())) < 2 or len(set(second.tolist())) < 2:
        return np.nan
    return stats.spearmanr(first, second).statistic


def normalised(x, model, name):
    """One vector through a normalisation, written out."""
    kind = model.cfg.normalization_type
    if kind is None:
        return x
    weights = dict(model.named_parameters())
    if kind.startswith("LN"):
        x = x - x.mean()
    x = x / np.sqrt((x**2).mean() + model.cfg.eps)
    if kind in ("LN", "RMS"):
        x = x * weights[f"{name}.w"].detach().double().numpy()
    if kind == "LN":
        x = x + weights[f"{name}.b"].detach().double().numpy()
    return x


class Plain:
    """The weights form of every measure, one head and one integer at a time."""

    def __init__(self, model, task):
        self.model, self.task = model, task
        self.weights = {
            name: weight.detach().double().numpy() for name, weight in model.named_parameters()
        }
        positions = self.weights["pos_embed.W_pos"]
        self.mean_position = positions[: task.length].mean(axis=0)
        self.equals = self.weights["embed.W_E"][task.equals_token] + positions[task.length]

    def part(self, layer, head, kind):
        attention = f"blocks.{layer}.attn"
        return (
            self.weights[f"{attention}.W_{kind}"][head],
            self.weights[f"{attention}.b_{kind}"][head] if kind != "O" else None,
        )

    def integer(self, value, layer):
        x = self.weights["embed.W_E"][value] + self.mean_position
        return normalised(x, self.model, f"blocks.{layer}.ln1")

    def score(self, layer, head, value):
        (W_Q, b_Q), (W_K, b_K) = self.part(layer, head, "Q"), self.part(layer, head, "K")
        query = normalised(self.equals, self.model, f"blocks.{layer}.ln1") @ W_Q + b_Q
        return float(query @ (self.integer(value, layer) @ W_K + b_K))

    def output(self, layer, head, value):
        (W_V, b_V), (W_O, _) = self.part(layer, head, "V"), self.part(layer, head, "O")
        return (self.integer(value, layer) @ W_V + b_V) @ W_O

    def logit(self, layer, head, value):
        o = self.output(layer, head, value)
        kind = self.model.cfg.normalization_type or ""
        if kind.startswith("LN"):
            o = o - o.mean()
        if kind in ("LN", "RMS"):
            o = o * self.weights["ln_final.w"]
        return o @ self.weights["unembed.W_U"]


@quick
@given(cases())
def test_weights_forms_equal_loops(case):
    spec, seed, task = case
    model = random_model(spec, seed)
    plain, integers = Plain(model, task), range(task.n_integers)
    label = task.label_feature
    classes = label.values(task.n_integers)
    qk = QKSpearman(feature=("magnitude", label), splits=())(model, task)
    ov, fraction = OVSpearman()(model, task), OVClassFraction()(model, task)
    for layer in range(model.cfg.n_layers):
        for head in range(model.cfg.n_heads):
            at = {"layer": layer, "head": head}
            scores = [plain.score(layer, head, v) for v in integers]
            assert qk.qk_score.sel(at).values == pytest.approx(scores, rel=1e-5, abs=1e-6)
            rho = [plain_spearman(scores, np.arange(task.n_integers))]
            rho.append(plain_spearman(scores, classes))
            assert qk.qk_spearman.sel(at).values == pytest.approx(rho, abs=1e-6)

            logits = np.array([plain.logit(layer, head, v) for v in integers])
            assert ov.ov_logit.sel(at).values == pytest.approx(logits, rel=1e-5, abs=1e-6)
            if task.n_classes == 2:
                pairs = [(logits[:, 1] - logits[:, 0], classes)]
            else:
                centred = logits - logits.mean(axis=1, keepdims=True)
                pairs = [(centred[:, c], classes == c) for c in range(task.n_classes)]
            rho = np.mean([plain_spearman(a, b) for a, b in pairs])
            top = np.mean([plain_spearman(sorted(a), sorted(b)) for a, b in pairs])
            assert float(ov.ov_spearman.sel(at)[0]) == pytest.approx(rho, abs=1e-6)
            assert float(ov.ov_spearman_ceiling.sel(at)[0]) == pytest.approx(top, abs=1e-6)
            assert float(ov.ov_spearman_relative.sel(at)[0]) == pytest.approx(rho / top, abs=1e-6)
            assert rho <= top + 1e-12

            outputs = np.array([plain.output(layer, head, v) for v in integers])
            total = sum(((o - outputs.mean(axis=0)) ** 2).sum() for o in outputs)
            between = 0.0
            for c in set(classes):
                group = outputs[classes == c]
                between += len(group) * ((group.mean(axis=0) - outputs.mean(axis=0)) ** 2).sum()
            share = float(fraction.ov_class_fraction.sel(at)[0])
            assert share == pytest.approx(between / total, abs=1e-6)


@quick
@given(cases())
def test_activation_forms_equal_loops(case):
    spec, seed, task = case
    model = random_model(spec, seed)
    observation = Observation(model, task)
    qk = QKSpearman(feature=("magnitude", task.label_feature)).measure(observation)
    seen, behaviour = Attention().measure(observation), Behaviour().measure(observation)
    assert behaviour.split.values.tolist() == list(task.splits)
    for name, split in task.splits.items():
        logits, cache = model.run_with_cache(split.tokens)
        logits = logits[:, task.read_position].detach().double()
        losses = [
            float(torch.logsumexp(row, 0) - row[label])
            for row, label in zip(logits, split.labels, strict=True)
        ]
        predicted = logits.argmax(dim=1)
        here = behaviour.sel(split=name)
        assert float(here.loss) == pytest.approx(np.mean(losses), abs=1e-6)
        half = 1.959963984540054 * np.std(losses, ddof=1) / np.sqrt(len(losses))
        assert float(here.loss_interval.sel(bound="high")) == pytest.approx(
            np.mean(losses) + half, abs=1e-5
        )
        assert float(here.accuracy) == pytest.approx(
            float((predicted == split.labels).float().mean())
        )
        assert float(here.shortcut_rate) == pytest.approx(
            float((predicted == split.shortcut_labels).float().mean())
        )
        assert int(here.n_examples) == split.n
        if name not in ("validation", "adversarial"):
            continue
        for layer in range(model.cfg.n_layers):
            pattern = cache["pattern", layer].detach().double().numpy()[:, :, -1]
            scores = cache["attn_scores", layer].detach().numpy()[:, :, -1]
            for head in range(model.cfg.n_heads):
                at = {"layer": layer, "head": head, "split": name}
                check_qk(qk.sel(at), scores[:, head], split, task)
                check_attention(seen.sel(at), pattern[:, head], split)


def check_qk(found, scores, split, task):
    for feature in ("magnitude", task.label_feature.name):
        rhos = []
        for row, integers in zip(scores, split.integers.numpy(), strict=True):
            values = integers if feature == "magnitude" else integers % task.n_classes
            rhos.append(plain_spearman(row[: task.length], values, resolution=1e-6))
        ours = found.sel(feature=feature)
        assert int(ours.qk_spearman_activation_undefined) == int(np.isnan(rhos).sum())
        if not np.isnan(rhos).all():
            expected = np.nanmean(rhos)
            assert float(ours.qk_spearman_activation) == pytest.approx(expected, abs=1e-6)


def check_attention(found, pattern, split):
    to_max, entropy = [], []
    for row, integers in zip(pattern, split.integers.numpy(), strict=True):
        to_max.append(sum(w for w, v in zip(row, integers, strict=False) if v == max(integers)))
        entropy.append(-sum(w * np.log(w) for w in row if w > 0))
    assert found.attention.values == pytest.approx(pattern.mean(axis=0), abs=1e-6)
    assert float(found.attention_to_max) == pytest.approx(np.mean(to_max), abs=1e-6)
    assert float(found.attention_entropy) == pytest.approx(np.mean(entropy), abs=1e-5)
    interval = found.attention_to_max_interval.values
    half = 1.959963984540054 * np.std(to_max, ddof=1) / np.sqrt(len(to_max))
    assert interval == pytest.approx([np.mean(to_max) - half, np.mean(to_max) + half], abs=1e-6)
