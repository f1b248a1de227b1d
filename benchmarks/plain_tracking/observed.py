"""What a model answers, where its heads look, what they write, and which examples still pull."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from scipy import stats
from torch import Tensor

from plain_tracking.reading import (
    HEADS,
    N_HEADS,
    N_LAYERS,
    SPLITS,
    Numbers,
    Read,
    fraction_and_interval,
    mean_and_interval,
    pattern_name,
    spearman,
)

N_SHOWN = 4


def behaviour(read: Read) -> Numbers:
    train = read.task.split("train")
    rows = {"train": slice(None), "consistent": train.consistent, "anti": ~train.consistent}
    losses, counts = [], []
    for name, split in read.task.splits.items():
        logits = read.passes["train"][0][rows[name]] if name in rows else read.passes[name][0]
        loss = F.cross_entropy(logits, split.labels, reduction="none")
        losses.append(mean_and_interval(loss.double().numpy()))
        predicted = logits.argmax(-1)
        correct = int((predicted == split.labels).sum())
        counts.append((correct, int((predicted == split.shortcut_labels).sum()), split.n))
    correct, shortcut, n = np.array(counts).T
    found = {"loss": np.stack([loss[0] for loss in losses])}
    found["loss_interval"] = np.stack([loss[1] for loss in losses])
    found["accuracy"], found["accuracy_interval"] = fraction_and_interval(correct, n)
    found["shortcut_rate"], found["shortcut_rate_interval"] = fraction_and_interval(shortcut, n)
    return found


def qk_spearman(read: Read) -> Numbers:
    model, n_integers = read.model, read.task.n_integers
    with torch.no_grad():
        embed, position = model.W_E.double(), model.W_pos.double()
        integers = embed[:n_integers] + position[:-1].mean(0)
        equals = embed[n_integers] + position[-1]
        query = torch.einsum("m,lhmd->lhd", equals, model.W_Q.double()) + model.b_Q
        keys = torch.einsum("vm,lhmd->lhvd", integers, model.W_K.double()) + model.b_K[:, :, None]
        scores = torch.einsum("lhd,lhvd->lhv", query, keys).numpy()
    rho = [
        [[spearman(scores[layer, head], np.arange(n_integers))] for head in (0, 1)]
        for layer in (0, 1)
    ]
    means, intervals, undefined = [], [], []
    for name in SPLITS:
        ranks = stats.rankdata(read.task.split(name).integers.numpy(), axis=-1)
        cache = read.passes[name][1]
        per_head = [
            cache[f"blocks.{layer}.attn.hook_attn_scores"][:, head, -1, :-1].numpy()
            for layer, head in HEADS
        ]
        of_scores = stats.rankdata(np.stack(per_head, 1), axis=-1)  # example head position
        first = ranks[:, None] - ranks.mean(-1)[:, None, None]
        second = of_scores - of_scores.mean(-1, keepdims=True)
        with np.errstate(invalid="ignore"):
            spread = np.sqrt((first**2).sum(-1) * (second**2).sum(-1))
            mean, interval, n = mean_and_interval((first * second).sum(-1) / spread)
        means.append(mean.reshape(N_LAYERS, N_HEADS, 1))
        intervals.append(interval.reshape(N_LAYERS, N_HEADS, 1, 2))
        undefined.append((len(ranks) - n).reshape(N_LAYERS, N_HEADS, 1))
    return {
        "qk_spearman": np.array(rho),
        "qk_score": scores,
        "qk_spearman_activation": np.stack(means, -1),
        "qk_spearman_activation_interval": np.stack(intervals, -2),
        "qk_spearman_activation_undefined": np.stack(undefined, -1),
    }


def attention(read: Read) -> Numbers:
    per_position, to_max, entropy, shown = [], [], [], []
    for name in SPLITS:
        cache = read.passes[name][1]
        pattern = np.stack(
            [cache[pattern_name(layer)][:, :, -1].double().numpy() for layer in range(N_LAYERS)], 1
        )  # example layer head position
        integers = read.task.split(name).integers.numpy()
        largest = integers == integers.max(-1, keepdims=True)
        per_position.append(pattern.mean(0))
        to_max.append(
            mean_and_interval((pattern[..., :-1] * largest[:, None, None]).sum(-1)),
        )
        entropy.append(mean_and_interval(np.asarray(stats.entropy(pattern, axis=-1))))
        shown.append(np.moveaxis(pattern[:N_SHOWN], 0, 2))
    return {
        "attention": np.stack(per_position, -1),
        "attention_to_max": np.stack([one[0] for one in to_max], -1),
        "attention_to_max_interval": np.stack([one[1] for one in to_max], -2),
        "attention_entropy": np.stack([one[0] for one in entropy], -1),
        "attention_entropy_interval": np.stack([one[1] for one in entropy], -2),
        "attention_example": np.concatenate(shown, axis=2),
    }


def ov_outputs(read: Read) -> Tensor:
    model, n_integers = read.model, read.task.n_integers
    with torch.no_grad():
        integers = model.W_E.double()[:n_integers] + model.W_pos.double()[:-1].mean(0)
        values = torch.einsum("vm,lhmd->lhvd", integers, model.W_V.double()) + model.b_V[:, :, None]
        return torch.einsum("lhvd,lhdm->lhvm", values, model.W_O.double())


def ov_spearman(read: Read) -> Numbers:
    parity = np.arange(read.task.n_integers) % 2
    logits = (ov_outputs(read) @ read.model.W_U.detach().double()).numpy()
    written = logits[..., 1] - logits[..., 0]
    rho, ceiling = np.zeros((N_LAYERS, N_HEADS, 1)), np.zeros((N_LAYERS, N_HEADS, 1))
    for layer, head in HEADS:
        one = written[layer, head]
        rho[layer, head] = spearman(one, parity)
        ceiling[layer, head] = spearman(np.sort(one), np.sort(parity))
    return {
        "ov_spearman": rho,
        "ov_spearman_ceiling": ceiling,
        "ov_spearman_relative": rho / ceiling,
        "ov_logit": logits,
    }


def ov_class_fraction(read: Read) -> Numbers:
    outputs = ov_outputs(read).numpy()
    centred = outputs - outputs.mean(-2, keepdims=True)
    classes = [centred[..., which::2, :] for which in (0, 1)]
    between = sum(part.shape[-2] * (part.mean(-2) ** 2).sum(-1) for part in classes)
    return {"ov_class_fraction": (between / (centred**2).sum((-2, -1)))[..., None]}


def saturation(read: Read) -> Numbers:
    train = read.task.split("train")
    logits = read.passes["train"][0].double()
    loss = F.cross_entropy(logits, train.labels, reduction="none").numpy()
    slopes = (logits.softmax(-1) - F.one_hot(train.labels, 2)).norm(dim=-1).numpy()
    groups = [train.consistent.numpy(), ~train.consistent.numpy()]
    means = [mean_and_interval(loss[group]) for group in groups]
    pulls = np.array([slopes[group].sum() for group in groups])
    return {
        "group_loss": np.array([mean[0] for mean in means]),
        "group_loss_interval": np.array([mean[1] for mean in means]),
        "group_gradient_share": pulls / pulls.sum(),
    }
