"""Loss and exact match of answers that are sequences, against values worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from interp_shortcuts.errors import TaskError
from interp_shortcuts.tasks.ood_length import choose_ood_length
from interp_shortcuts.tasks.target_scores import exact_match, token_loss
from interp_shortcuts.tasks.target_split import IGNORED, TargetSplit

TARGETS = torch.tensor([[IGNORED, 2, 1], [IGNORED, IGNORED, 0]])


def logits_of(probabilities: list[list[list[float]]]) -> torch.Tensor:
    return torch.tensor(probabilities).log()


def test_uniform_logits_cost_the_logarithm_of_the_classes():
    loss = token_loss(torch.zeros(2, 3, 7), TARGETS)
    torch.testing.assert_close(loss, torch.full((2,), math.log(7)))


def test_every_example_counts_alike_however_long_its_answer():
    """Probability 1/2 and 1/4 on the two targets of one example, 1/8 on the one of the other."""
    sure = [0.98, 0.01, 0.01]  # on what is not scored
    logits = logits_of(
        [
            [sure, [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]],
            [sure, sure, [0.125, 0.5, 0.375]],
        ]
    )
    expected = torch.tensor([(math.log(2) + math.log(4)) / 2, math.log(8)])
    torch.testing.assert_close(token_loss(logits, TARGETS), expected)


def test_half_precision_is_scored_in_float32():
    logits = torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(0)).bfloat16()
    loss = token_loss(logits, TARGETS)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, token_loss(logits.float(), TARGETS))


def test_exact_match_needs_every_target_and_nothing_else():
    right = torch.nn.functional.one_hot(TARGETS.clamp(min=0), 4).float()
    assert exact_match(right, TARGETS).tolist() == [True, True]
    elsewhere = right.clone()
    elsewhere[:, 0] = torch.tensor([0.0, 0.0, 0.0, 1.0])  # wrong where nothing is due
    assert exact_match(elsewhere, TARGETS).tolist() == [True, True]
    for position, wrong in ((1, [False, True]), (2, [False, False])):
        spoilt = right.clone()
        spoilt[:, position] = torch.tensor([0.0, 0.0, 0.0, 1.0])
        assert exact_match(spoilt, TARGETS).tolist() == wrong


def test_an_example_without_a_target_is_refused():
    targets = torch.full((2, 3), IGNORED)
    targets[0, 1] = 1
    for score in (token_loss, exact_match):
        with pytest.raises(TaskError, match="example 1 of `targets` has none"):
            score(torch.zeros(2, 3, 4), targets)


def test_splits_are_equal_by_name_and_content():
    split = TargetSplit("a", torch.tensor([[1, 2, 3], [4, 5, 6]]), TARGETS)
    assert (split.n, len(split), split.first_scored) == (2, 2, 1)
    assert split == TargetSplit("a", split.tokens.clone(), TARGETS.clone())
    assert split != split.take(torch.tensor([1, 0]))
    assert split.take(torch.tensor([0, 1]), name="b") != split
    assert split.take(torch.tensor([1])).tokens.tolist() == [[4, 5, 6]]
    assert split.take(torch.tensor([1])).first_scored == 2
    changed = TargetSplit("a", split.tokens, TARGETS.clone().fill_(1))
    assert changed.sha != split.sha


def test_tokens_and_targets_have_one_shape(unchecked: None):
    with pytest.raises(TaskError, match=r"same shape .*; got \(2, 2\) and \(2, 3\)"):
        TargetSplit("a", torch.ones(2, 2, dtype=torch.int64), TARGETS)


@pytest.mark.parametrize(
    ("accuracies", "length"),
    [
        ({8: 0.9, 9: 0.6, 10: 0.3}, 9),
        ({10: 0.3, 8: 0.75, 9: 0.6}, 8),
        ({8: 0.76, 9: 0.2}, 9),
        ({8: 0.9, 9: 0.8}, None),
        ({8: 0.19, 9: 0.0}, None),
        ({}, None),
    ],
)
def test_the_held_out_length_is_the_first_in_the_range(accuracies, length):
    assert choose_ood_length(accuracies) == length
