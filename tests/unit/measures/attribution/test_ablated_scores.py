"""Many ablations at once against each under hooks, token by token."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from copying import SEQUENCES, SORTING, CopyTask, copies, random_model, wired_model

from interp_shortcuts.errors import MeasureError, TaskError
from interp_shortcuts.interventions.ablate import Ablate
from interp_shortcuts.interventions.apply import applied
from interp_shortcuts.measures.attribution.ablated_scores import ablated_scores
from interp_shortcuts.models.sites import components
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.tasks.target_scores import exact_match, token_loss
from interp_shortcuts.tasks.target_split import TargetSplit


def every_ablation(model, reference):
    parts = components(ModelSpec.from_model(model))
    sets = [(part,) for part in parts] + list(combinations(parts, 2)) + [parts]
    return [
        Ablate(members, kind=kind, reference=None if kind == "zero" else reference, seed=3)
        for members in sets
        for kind in ("mean", "zero", "resample")
    ]


@pytest.mark.parametrize(
    "changes", [{}, {"normalization": "none", "size": 0.4}, {"n_layers": 3, "size": 0.6}], ids=str
)
def test_every_run_equals_the_model_under_applied(changes):
    model = random_model(**changes)
    split = SEQUENCES.split("length_5")
    reference = SEQUENCES.batch(9, torch.Generator().manual_seed(1), 5)
    runs = every_ablation(model, reference)
    found = ablated_scores(model, split, [(), *runs], chunk=split.n, at_once=7)
    for index, run in enumerate([(), *runs]):
        each = run if isinstance(run, tuple) else (run,)
        with torch.no_grad(), applied(model, *each) as ablated:
            logits = ablated(split.tokens)
        loss = token_loss(logits, split.targets).double()
        assert (torch.from_numpy(found.loss[index]) - loss).abs().max() < 1e-5, run
        matched = exact_match(logits, split.targets)
        assert torch.equal(torch.from_numpy(found.exact_match[index]), matched)
    assert len({tuple(row.round(4)) for row in found.loss}) == len(runs) + 1  # all differ


def test_chunks_change_nothing_and_nothing_is_left_in_the_model():
    model = random_model()
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    split, reference = SORTING.split("length_6"), SORTING.split("length_6")
    runs = [run for run in every_ablation(model, reference) if run.kind != "resample"]
    whole = ablated_scores(model, split, runs)
    parts = ablated_scores(model, split, runs, chunk=5, at_once=3)
    assert abs(whole.loss - parts.loss).max() < 1e-6
    assert (whole.exact_match == parts.exact_match).all()
    for name, weight in model.named_parameters():
        assert torch.equal(weight, before[name])
        assert weight.grad is None


def test_splits_of_several_lengths():
    model = random_model()
    padded = SEQUENCES.padded([SEQUENCES.split("length_3"), SEQUENCES.split("length_5")])
    run = Ablate("L1.H0")
    found = ablated_scores(model, padded, [run])
    alone = [ablated_scores(model, SEQUENCES.split(f"length_{n}"), [run]) for n in (3, 5)]
    assert abs(found.loss[:, :12] - alone[0].loss).max() < 1e-5
    assert abs(found.loss[:, 12:] - alone[1].loss).max() < 1e-5


def test_two_copies_of_a_head():
    """Alone neither is missed; together they are all there is."""
    model = wired_model([(2.0, 1.0), (1.0, 2.0)])
    split = CopyTask().split("length_1")
    runs = [Ablate("L0.H0"), Ablate("L0.H1"), Ablate(("L0.H0", "L0.H1")), Ablate("L0.mlp")]
    drops = ablated_scores(model, split, [(), *runs]).drops().mean(1)
    assert drops.tolist() == [0, 0, 1, 0]


def test_errors():
    model = wired_model([(2.0, 1.0)])
    with pytest.raises(MeasureError, match=r"`split` must hold at least one example; .* none"):
        ablated_scores(model, copies(torch.arange(0)), [()])
    split = copies(torch.arange(1, 4))
    unscored = TargetSplit("unscored", split.tokens, split.targets.clone())
    unscored.targets[1] = -100
    with pytest.raises(TaskError, match="every example must have a target; example 1"):
        ablated_scores(model, unscored, [()])
