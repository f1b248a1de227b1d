"""Modular arithmetic: true answers, the splits, and label noise: exact, wrong and uniform."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
import torch
from scipy import stats

from interp_shortcuts.errors import TaskError
from interp_shortcuts.tasks.base import Task, is_answered
from interp_shortcuts.tasks.label_noise import with_noise
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.tasks.modular_config import ModularConfig
from interp_shortcuts.tasks.pair_split import PairSplit

PINNED = {
    "train": "af500f189ec95772",
    "clean": "63a6fde7da0d3ae3",
    "noisy": "7aa4e45d53055d8d",
    "noisy_true": "3057a3f7b3157cab",
    "test": "9e453d2dc8d02f69",
}
OPERATIONS = {
    "add": lambda a, b, p: (a + b) % p,
    "subtract": lambda a, b, p: (a - b) % p,
    "multiply": lambda a, b, p: (a * b) % p,
}


def pairs_of(*splits):
    return sorted(tuple(pair) for split in splits for pair in split.tokens.tolist())


@pytest.mark.parametrize("arithmetic", OPERATIONS)
@pytest.mark.parametrize("modulus", [3, 11])
def test_true_labels_are_the_operation(arithmetic, modulus):
    task = ModularArithmetic(arithmetic=arithmetic, modulus=modulus, noise=0.5, seed=2)
    for split in task.splits.values():
        for (a, b), label in zip(split.tokens.tolist(), split.true_labels.tolist(), strict=True):
            assert label == OPERATIONS[arithmetic](a, b, modulus)
        assert torch.equal(task.true_answers(split.tokens), split.true_labels)


@pytest.mark.parametrize(("arithmetic", "modulus"), [("add", 12), ("subtract", 9), ("add", 2)])
def test_train_and_test_are_all_pairs_once(arithmetic, modulus):
    task = ModularArithmetic(arithmetic=arithmetic, modulus=modulus, train_fraction=0.6)
    together = pairs_of(task.split("train"), task.split("test"))
    assert together == [(a, b) for a in range(modulus) for b in range(modulus)]
    assert task.split("train").n == round(0.6 * modulus**2)


def test_multiplication_leaves_zero_out():
    task = ModularArithmetic(arithmetic="multiply", modulus=7, noise=1.0)
    together = pairs_of(task.split("train"), task.split("test"))
    assert together == [(a, b) for a in range(1, 7) for b in range(1, 7)]
    assert all(int(split.labels.min()) > 0 for split in task.splits.values() if split.n)
    assert task.n_tokens == task.n_classes == 7
    assert task.record["n_left_out"] == 13


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.4, 0.8, 1.0])
def test_the_number_of_wrong_labels_is_exact(noise):
    task = ModularArithmetic(modulus=23, noise=noise, seed=5)
    train, n_noisy = task.split("train"), round(noise * round(0.8 * 23**2))
    assert int((train.labels != train.true_labels).sum()) == n_noisy
    assert task.split("noisy").n == task.split("noisy_true").n == n_noisy
    assert task.split("clean").n == train.n - n_noisy
    assert task.record["n_noisy"] == n_noisy
    assert task.record["noise"] == n_noisy / train.n
    assert task.record["train_fraction"] == train.n / 23**2


def test_without_noise_every_label_is_right_and_the_noisy_part_is_empty():
    task = ModularArithmetic(modulus=7, noise=0)
    assert torch.equal(task.split("train").labels, task.split("train").true_labels)
    assert task.split("noisy").n == 0
    assert task.split("clean") == task.split("train").take(
        torch.arange(task.split("train").n), name="clean"
    )


def test_the_parts_are_the_training_pairs_by_whether_the_label_is_wrong():
    task = ModularArithmetic(modulus=11, noise=0.3)
    splits = task.splits
    assert list(splits) == ["train", "clean", "noisy", "noisy_true", "test"]
    assert pairs_of(splits["clean"], splits["noisy"]) == pairs_of(splits["train"])
    assert torch.equal(splits["noisy"].tokens, splits["noisy_true"].tokens)
    assert splits["noisy"].noisy.all()
    assert torch.equal(splits["noisy_true"].labels, splits["noisy"].true_labels)
    for name in ("clean", "test", "noisy_true"):
        assert not splits[name].noisy.any()


def test_wrong_labels_are_uniform_over_the_other_classes():
    """Chi-square over the shift from the true label, and over the label itself, 40,000 draws."""
    labels = torch.from_numpy(np.random.default_rng(0).integers(0, 8, size=40_000))
    classes = np.arange(8)
    observed = with_noise(labels, classes, noise=1.0, seed=1)
    shifts = np.bincount(((observed - labels) % 8).numpy(), minlength=8)
    assert shifts[0] == 0
    assert stats.chisquare(shifts[1:]).pvalue > 1e-3
    assert stats.chisquare(np.bincount(observed.numpy(), minlength=8)).pvalue > 1e-3


def test_the_examples_with_wrong_labels_are_drawn_uniformly():
    """Over seeds, each of 20 examples is wrong equally often: chi-square over 4,000 draws of 5."""
    counts = np.zeros(20)
    for seed in range(4000):
        counts += (with_noise(torch.zeros(20).long(), np.arange(2), noise=0.25, seed=seed)).numpy()
    assert counts.sum() == 20_000
    assert stats.chisquare(counts).pvalue > 1e-3


def test_more_noise_keeps_the_wrong_labels_of_less():
    less, more = (ModularArithmetic(modulus=23, noise=noise) for noise in (0.2, 0.6))
    wrong = less.split("train").noisy
    assert torch.equal(less.split("train").tokens, more.split("train").tokens)
    assert torch.equal(less.split("train").labels[wrong], more.split("train").labels[wrong])
    assert torch.equal(less.split("test").tokens, more.split("test").tokens)


def test_a_seed_means_the_same_examples_and_another_seed_others():
    one, again, other = (ModularArithmetic(modulus=11, seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one.splits["train"] == again.splits["train"]
    assert one != other
    assert pairs_of(one.splits["train"]) != pairs_of(other.splits["train"])
    assert hash(one) == hash(again)
    assert pickle.loads(pickle.dumps(one)).splits["noisy"] == one.splits["noisy"]


def test_the_splits_are_pinned():
    """A seed must go on meaning these examples."""
    shas = {name: split.sha for name, split in ModularArithmetic(modulus=13, seed=3).splits.items()}
    assert shas == PINNED


def test_members_of_a_task():
    task = ModularArithmetic(modulus=13)
    assert isinstance(task, Task)
    assert not is_answered(task)
    assert (task.n_tokens, task.n_classes, task.context) == (13, 13, 2)
    assert task.chance == pytest.approx(1 / 13)
    assert task.name == "modular_add"
    assert json.loads(json.dumps(task.record))["splits"]["train"]["n"] == task.split("train").n
    assert ModularArithmetic.from_config(task.config, seed=99) == task
    assert ModularArithmetic.from_config(ModularConfig(modulus=13), seed=4).seed == 4


def test_loss_and_correctness_by_hand():
    task = ModularArithmetic(modulus=3)
    logits = torch.tensor([[0.0, 0.0, 0.0], [0.0, np.log(2.0), 0.0]], dtype=torch.float64)
    labels = torch.tensor([2, 1])
    torch.testing.assert_close(
        task.loss(logits, labels), torch.tensor([np.log(3), np.log(2)], dtype=torch.float64)
    )
    assert task.correct(logits, labels).tolist() == [False, True]
    with pytest.raises(TaskError, match=r"\[example class\] with 3 classes; got \(2, 2\)"):
        task.predictions(logits[:, :2])


def test_pair_splits_are_equal_by_content():
    split = ModularArithmetic(modulus=5).split("train")
    same = PairSplit(
        name="train",
        tokens=split.tokens.clone(),
        labels=split.labels.clone(),
        true_labels=split.true_labels.clone(),
    )
    assert split == same
    assert hash(split) == hash(same)
    assert len(split) == split.n == 20
    assert split != split.take(torch.arange(19))
    assert split != split.take(torch.arange(20), name="other")
    assert split != split.with_true_labels(name="train")
    assert repr(split) == f"PairSplit('train': 20 examples, 8 noisy, {split.sha})"


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"modulus": 1}, "`modulus` should be greater than or equal to 2; got 1."),
        ({"noise": 1.2}, "`noise` should be less than or equal to 1; got 1.2."),
        ({"train_fraction": 1.0}, "`train_fraction` should be less than 1; got 1.0."),
        (
            {"arithmetic": "multiply", "modulus": 15},
            r"`modulus` \(=15\) must be a prime for `arithmetic` 'multiply'",
        ),
        (
            {"modulus": 5, "train_fraction": 0.01},
            r"`train_fraction` \(=0.01\) must leave at least one pair .* of 25 pairs it trains 0",
        ),
        (
            {"modulus": 5, "train_fraction": 0.99},
            r"at least one pair .* one to test; of 25 pairs it trains 25",
        ),
        ({"arithmetic": "multiply", "modulus": 2}, "of 1 pairs it trains 1"),
    ],
)
def test_impossible_sizes_are_refused(sizes, message):
    with pytest.raises(TaskError, match=message):
        ModularArithmetic(**sizes)


def test_mistyped_names_are_refused(unchecked):
    with pytest.raises(TaskError, match=r"`arithmetic` should be 'add', 'subtract' or 'multiply'"):
        ModularArithmetic(arithmetic="power")
    with pytest.raises(TaskError, match="`seed` should be a valid integer; got None"):
        ModularArithmetic(seed=None)
    with pytest.raises(TaskError, match=r"`split` must be one of 'train', .*; got 'validation'"):
        ModularArithmetic().split("validation")
    with pytest.raises(TaskError, match=r"`noise` must be a fraction in \[0, 1\]; got -0.1"):
        with_noise(torch.zeros(3).long(), np.arange(2), noise=-0.1, seed=0)
    with pytest.raises(TaskError, match=r"`noise` \(=1.0\) needs at least 2 classes; got 1"):
        with_noise(torch.zeros(3).long(), np.arange(1), noise=1.0, seed=0)


def test_the_config_says_the_sizes():
    config = ModularConfig(arithmetic="multiply", modulus=11, noise=0.5, train_fraction=0.7)
    assert (config.n_answers, config.n_pairs, config.n_train, config.n_noisy) == (10, 100, 70, 35)
    assert (config.n_tokens, config.context, config.label) == (11, 2, "multiply modulo 11")
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        ModularConfig(mod=5)
