"""Pruning of heroes and bloats against a slow reference: one ablation at a time, under hooks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.interventions.ablate import Ablate
from interp_shortcuts.interventions.apply import applied
from interp_shortcuts.measures.attribution.gap import rank_gap
from interp_shortcuts.measures.attribution.gradient_measures import GradientNorm
from interp_shortcuts.measures.attribution.importance import ComponentImportance
from interp_shortcuts.measures.attribution.ood_examples import fresh_examples
from interp_shortcuts.measures.attribution.pruning import PRUNED, SETS, RolePruning
from interp_shortcuts.measures.observation import Observation
from interp_shortcuts.models.build import build
from interp_shortcuts.models.sites import components
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.tasks.sequences import SequenceSorting
from interp_shortcuts.tasks.target_split import IGNORED, TargetSplit

SIZES: dict[str, Any] = {
    "split": "length_3",
    "examples": 40,
    "reference_examples": 16,
    "n_batches": 2,
    "batch_size": 8,
}
PRUNING = RolePruning(**SIZES, threshold=2.0, max_k=2, n_random=2)


class Answered:
    """A sequence task whose answers are what a model says: it is right until it is ablated."""

    def __init__(self, task: SequenceSorting, model: torch.nn.Module) -> None:
        self._task, self._model = task, model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)

    train_lengths = property(lambda self: self._task.train_lengths)
    heldout_lengths = property(lambda self: self._task.heldout_lengths)

    def batch(
        self, size: int, generator: torch.Generator, length: int | None = None
    ) -> TargetSplit:
        drawn = self._task.batch(size, generator, length)
        with torch.no_grad():
            said = self._model(drawn.tokens).argmax(-1)
        targets = torch.where(drawn.scored, said, torch.full_like(said, IGNORED))
        return TargetSplit(drawn.name, drawn.tokens, targets)


@pytest.fixture(scope="module")
def observation() -> Observation:
    task = SequenceSorting(
        n_integers=4, train_min=1, train_max=2, heldout_max=3, n_per_length=4, seed=0
    )
    spec = ModelSpec(
        n_layers=2,
        n_heads=2,
        d_model=8,
        d_mlp=8,
        d_vocab=task.n_tokens,
        d_vocab_out=task.n_classes,
        n_ctx=task.context,
        normalization="LN",
    )
    model = build(spec, seed=9)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3.0)  # so that an ablation changes some answers
    return Observation(model, Answered(task, model))


@pytest.fixture(scope="module")
def found(observation: Observation):
    return PRUNING.measure(observation)


def exact_match(observation: Observation, split: str, members: tuple) -> np.ndarray:
    """Whether each sequence is answered, under hooks, with these components mean-ablated."""
    asked = fresh_examples(observation, split, "pruned", n=40, seed=0)
    reference = fresh_examples(observation, split, "reference", n=16, seed=0)
    with torch.no_grad():
        if members:
            with applied(observation.model, Ablate(members, kind="mean", reference=reference)):
                logits = observation.model(asked.tokens)
        else:
            logits = observation.model(asked.tokens)
    right = (logits.argmax(-1) == asked.targets) | ~asked.scored
    return right.all(-1).numpy().astype(float)


def roles_by_hand(observation: Observation) -> dict[str, list]:
    norms = GradientNorm(**{k: v for k, v in SIZES.items() if k != "examples"})
    drops = ComponentImportance(**{k: v for k, v in SIZES.items() if "batch" not in k})
    norm = norms.measure(observation)["gradient_norm"].sel(reading="W_V+W_O").to_numpy()
    drop = drops.measure(observation)["exact_match_drop"].sel(ablation_kind="mean").to_numpy()
    delta, parts = rank_gap(norm, drop).delta, components(observation.spec)
    order = np.argsort(-np.abs(delta), kind="stable")
    return {
        "heroes": [parts[i] for i in order if delta[i] <= -2],
        "bloats": [parts[i] for i in order if delta[i] >= 2],
    }


def test_roles_are_those_of_the_measures_that_they_come_from(observation: Observation):
    by_hand = roles_by_hand(observation)
    assert {
        name: list(own) for name, own in PRUNING.roles(observation, "length_3").items()
    } == by_hand
    assert all(by_hand.values())  # else the tests below test nothing


@pytest.mark.parametrize(
    ("place", "split"), [("in distribution", "length_2"), ("out of distribution", "length_3")]
)
def test_curves_equal_one_ablation_at_a_time(observation: Observation, found, place, split):
    for kind, members in roles_by_hand(observation).items():
        curve = found["pruned_exact_match"].sel(pruned_kind=kind, split=place)
        for k in range(3):
            value = float(curve.sel(k=str(k)))
            if k > len(members):
                assert np.isnan(value)
            else:
                expected = exact_match(observation, split, tuple(members[:k])).mean()
                assert value == pytest.approx(expected)
    assert float(curve.sel(k="0")) == 1.0


def test_random_curves_are_means_over_orders(observation: Observation, found):
    orders = PRUNING._random_orders(observation.spec)
    assert len(orders) == 2
    each = [exact_match(observation, "length_3", order[:2]) for order in orders]
    at = {"pruned_kind": "random", "k": "2", "split": "out of distribution"}
    assert float(found["pruned_exact_match"].sel(at)) == pytest.approx(np.mean(each))


def test_sets_cost_jointly_and_one_by_one(observation: Observation, found):
    for kind, members in roles_by_hand(observation).items():
        clean = exact_match(observation, "length_3", ())
        joint = clean - exact_match(observation, "length_3", tuple(members))
        single = sum(clean - exact_match(observation, "length_3", (part,)) for part in members)
        own = found.sel(role_set=kind)
        assert float(own["role_size"]) == len(members)
        assert float(own["role_joint_drop"]) == pytest.approx(joint.mean())
        assert float(own["role_sum_of_drops"]) == pytest.approx(single.mean())
        spread = 1.959964 * joint.std(ddof=1) / np.sqrt(40)
        low = float(own["role_joint_drop_interval"].sel(bound="low"))
        assert low == pytest.approx(joint.mean() - spread, abs=1e-5)
    assert int(found["pruned_n"]) == 40


def test_other_sequences_are_asked_than_those_that_ranked(observation: Observation):
    pruned = fresh_examples(observation, "length_3", "pruned", n=40, seed=0)
    ranked = fresh_examples(observation, "length_3", "examples", n=40, seed=0)
    assert pruned.sha != ranked.sha


def test_without_roles_only_random_components_are_pruned(observation: Observation):
    task = observation.targeting
    untouched = Observation(observation.model, task._task)  # it never answers right
    found = PRUNING.measure(untouched)
    curves = found["pruned_exact_match"].sel(split="out of distribution")
    assert curves.sel(pruned_kind="random").notnull().all()
    assert float(curves.sel(pruned_kind="heroes", k="0")) == 0.0
    assert curves.sel(pruned_kind="heroes", k=["1", "2"]).isnull().all()
    assert found["role_joint_drop"].isnull().all()
    assert "there are no roles" in found["role_joint_drop"].attrs["nan_means"]


def test_labels_name_kinds_and_sets(found):
    assert tuple(found["pruned_kind"].to_numpy()) == PRUNED
    assert tuple(found["role_set"].to_numpy()) == SETS
    assert found["k"].to_numpy().tolist() == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0.0}, "`threshold` must be above 0; got 0"),
        ({"reading": "W_Q"}, "`reading` must be 'W_V' or"),
        ({"max_k": 0}, r"`max_k` \(=0\) must be at least 1"),
        ({"n_random": 0}, r"`n_random` \(=0\) must be at least 1"),
    ],
)
def test_misuse_is_said(options: dict[str, Any], message: str):
    with pytest.raises(MeasureError, match=message):
        RolePruning(**options)
