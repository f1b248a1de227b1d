"""What components cost alone and in sets, and how much is redundant: known answers and loops."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
import torch
from copying import SEQUENCES, CopyTask, copies, random_model, wired_model

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.interventions.ablate import Ablate
from interp_shortcuts.interventions.apply import applied
from interp_shortcuts.measures.attribution.importance import ComponentImportance
from interp_shortcuts.measures.attribution.interaction import ComponentInteraction
from interp_shortcuts.measures.attribution.joint import JointImportance, super_additivity
from interp_shortcuts.measures.attribution.shapley import ShapleyImportance, shapley_values
from interp_shortcuts.streams import derive_seed, torch_stream
from interp_shortcuts.tasks.target_scores import exact_match, token_loss

SIZES = {"split": "length_2", "reference_examples": 40, "examples": 24}
NAMES = ["L0.H0", "L0.H1", "L0.mlp", "L1.H0", "L1.H1", "L1.mlp"]


def twins():
    """Two heads that each carry the answer."""
    return wired_model([(2.0, 1.0), (1.0, 2.0)])


def test_importance_equals_one_run_at_a_time_under_hooks():
    model = random_model()
    sizes = {"split": "length_5", "examples": 30, "reference_examples": 20}
    found = ComponentImportance(**sizes)(model, SEQUENCES)
    asked, reference = (
        SEQUENCES.batch(n, torch_stream(0, "attribution", "length_5", name), 5)
        for n, name in ((30, "examples"), (20, "reference"))
    )
    with torch.no_grad():
        plain = model(asked.tokens)
    losses = token_loss(plain, asked.targets).double()
    assert float(found.token_loss) == pytest.approx(float(losses.mean()), abs=1e-5)
    matched = exact_match(plain, asked.targets).double()
    assert float(found.exact_match) == pytest.approx(float(matched.mean()))
    assert found.component.values.tolist() == NAMES
    seed = derive_seed(0, "attribution", "length_5")
    for kind in ("mean", "zero", "resample"):
        for name in NAMES:
            given = None if kind == "zero" else reference
            run = Ablate(name, kind=kind, reference=given, seed=seed)
            with torch.no_grad(), applied(model, run) as ablated:
                logits = ablated(asked.tokens)
            rise = token_loss(logits, asked.targets).double() - losses
            here = found.sel(ablation_kind=kind, component=name)
            assert float(here.loss_rise) == pytest.approx(float(rise.mean()), abs=1e-5)
            half = 1.959964 * float(rise.std()) / 30**0.5
            low, high = here.loss_rise_interval.values
            assert high - low == pytest.approx(2 * half, rel=1e-3, abs=1e-6)
            drop = matched - exact_match(logits, asked.targets).double()
            assert float(here.exact_match_drop) == pytest.approx(float(drop.mean()))
    assert abs(found.loss_rise).max() > 0.05
    assert int(found.n_examples) == 30


def test_redundant_copies_cost_nothing_alone_and_everything_together():
    sets = {"twins": ["L0.H0", "L0.H1"], "one": "L0.H0", "none": [], "mlp": ["L0.mlp"]}
    for kind in ("mean", "zero"):
        found = JointImportance(**SIZES, sets=sets, ablation=kind)(twins(), CopyTask())
        assert found.component_set.values.tolist() == list(sets)
        assert found.joint_drop.values.tolist() == [1, 0, 0, 0]
        assert found.sum_of_drops.values.tolist() == [0, 0, 0, 0]
        assert found.super_additivity.values[0] == np.inf
        assert np.isnan(found.super_additivity.values[1:]).all()
        assert "both 0" in found.super_additivity.attrs["nan_means"]
        assert found.joint_drop_interval.sel(component_set="twins").values.tolist() == [1, 1]
        assert int(found.joint_n) == 24
    alone = ComponentImportance(**SIZES)(twins(), CopyTask())
    assert (alone.exact_match_drop.sel(ablation_kind=["mean", "zero"]) == 0).all()
    assert float(alone.exact_match) == 1
    assert float(alone.exact_match_interval[0]) < 1


def test_shapley_shares_what_twins_carry():
    found = ShapleyImportance(**SIZES, max_permutations=8)(twins(), CopyTask())
    assert found.shapley.values.tolist() == [0.5, 0.5, 0]  # pairs of an order and its reverse
    assert found.shapley_se.values.tolist() == [0, 0, 0]
    assert int(found.shapley_permutations) == 8
    alone = ShapleyImportance(**SIZES, value="loss", max_permutations=8)(twins(), CopyTask())
    assert float(alone.shapley[0]) == pytest.approx(float(alone.shapley[1]), rel=0.05)
    assert float(alone.shapley[0]) > 0.3


def test_interactions_of_twins_and_of_independent_parts():
    found = ComponentInteraction(**SIZES)(twins(), CopyTask())
    one, other, mlp = found.component.values
    assert float(found.interaction.sel(component=one, component_b=other)) == 1
    assert float(found.interaction.sel(component=other, component_b=one)) == 1
    assert float(found.interaction.sel(component=one, component_b=mlp)) == 0
    assert np.isnan(np.diag(found.interaction)).all()
    assert "itself" in found.interaction.attrs["nan_means"]


def test_sets_and_pairs_equal_single_runs():
    """On a random model: the joint drop of a pair is what the interaction adds to the two alone."""
    model = random_model(size=1.2)
    sizes = {"split": "length_3", "examples": 200, "reference_examples": 20}
    task = SEQUENCES
    alone = ComponentImportance(**sizes)(model, task).exact_match_drop.sel(ablation_kind="mean")
    pairs = dict(list({f"{a}&{b}": (a, b) for a, b in combinations(NAMES, 2)}.items()))
    joint = JointImportance(**sizes, sets=pairs)(model, task)
    both = ComponentInteraction(**sizes)(model, task).interaction
    for name, (a, b) in pairs.items():
        summed = float(alone.sel(component=a) + alone.sel(component=b))
        here = joint.sel(component_set=name)
        assert float(here.sum_of_drops) == pytest.approx(summed, abs=1e-6)
        added = float(both.sel(component=a, component_b=b))
        assert float(here.joint_drop) == pytest.approx(summed + added, abs=1e-6)


def test_the_sets_that_are_there_by_default():
    found = JointImportance(**SIZES | {"split": "length_5"})(random_model(), SEQUENCES)
    assert found.component_set.values.tolist() == ["L0.heads", "L1.heads", "all heads", "all mlps"]


def test_super_additivity():
    joint = np.array([0.4, 0.4, -0.2, 0.0, 0.3, 0.0])
    total = np.array([0.2, 0.0, 0.0, 0.0, -0.1, 0.5])
    expected = [2, np.inf, -np.inf, np.nan, -3, 0]
    np.testing.assert_allclose(super_additivity(joint, total), expected)


GAME = {frozenset(c): float(len(c) ** 2 + 3 * ({0, 2, 3} <= set(c)) - 2 * (1 in c))
        for n in range(5) for c in combinations(range(4), n)}  # fmt: skip


def exact_shapley(worth, n):
    total = np.zeros(n)
    orders = list(permutations(range(n)))
    for order in orders:
        for place, player in enumerate(order):
            before = frozenset(order[:place])
            total[player] += worth[before | {player}] - worth[before]
    return total / len(orders)


def test_shapley_by_sampling_approaches_the_enumeration():
    exact = exact_shapley(GAME, 4)
    asked = []

    def values_of(coalitions):
        asked.extend(coalitions)
        return [GAME[c] for c in coalitions]

    found = shapley_values(
        values_of, 4, np.random.default_rng(0), precision=1e-9, max_permutations=400
    )
    assert (abs(found.value - exact) <= 4 * found.se + 1e-9).all()
    assert found.value.sum() == pytest.approx(GAME[frozenset(range(4))] - GAME[frozenset()])
    assert found.n_permutations == 400
    assert len(asked) == len(set(asked)) <= 16
    early = shapley_values(
        values_of, 4, np.random.default_rng(0), precision=0.5, max_permutations=400
    )
    assert early.n_permutations == 16
    assert early.se.max() <= 0.5
    one = shapley_values(values_of, 4, np.random.default_rng(0), precision=1.0, max_permutations=3)
    assert one.n_permutations == 2
    assert np.isnan(one.se).all()


def test_shapley_of_a_model_equals_the_enumeration_of_its_coalitions():
    model, task = wired_model([(2.0, 1.0), (1.0, 2.0), (1.0, 0.5)]), CopyTask()
    sizes = SIZES | {"examples": 12}
    asked, reference = (
        task.batch(n, torch_stream(0, "attribution", "length_2", name))
        for n, name in ((12, "examples"), (40, "reference"))
    )
    parts = ["L0.H0", "L0.H1", "L0.H2", "L0.mlp"]
    worth = {}
    for n in range(5):
        for present in combinations(range(4), n):
            absent = [part for number, part in enumerate(parts) if number not in present]
            runs = [Ablate(absent, kind="mean", reference=reference)] if absent else []
            with torch.no_grad(), applied(model, *runs) as ablated:
                logits = ablated(asked.tokens)
            worth[frozenset(present)] = -float(token_loss(logits, asked.targets).mean())
    found = ShapleyImportance(**sizes, value="loss", precision=1e-3, max_permutations=300)(
        model, task
    )
    exact = exact_shapley(worth, 4)
    assert (abs(found.shapley.values - exact) <= 4 * found.shapley_se.values + 1e-5).all()
    assert float(found.shapley_se.max()) <= 1e-3 or int(found.shapley_permutations) == 300
    assert exact[2] > 0.05
    assert float(found.shapley.sum()) == pytest.approx(
        worth[frozenset(range(4))] - worth[frozenset()], abs=1e-5
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ComponentImportance(ablations="avg"), "`ablations` must be 'zero', .*; got 'avg'"),
        (lambda: JointImportance(sets={}), "`sets` must name at least one set"),
        (lambda: JointImportance(sets=[("a", ["L0.H0"]), ("a", [])]), "each once; got .'a', 'a'"),
        (lambda: ShapleyImportance(value="logit"), "`value` must be 'exact_match' or 'loss'"),
        (lambda: ShapleyImportance(max_permutations=1), r"`max_permutations` \(=1\) must be at"),
        (lambda: ShapleyImportance(precision=0.0), r"`precision` \(=0.0\) above 0"),
        (lambda: ComponentImportance(examples=0), r"`examples` \(=0\) must be at least 1"),
        (
            lambda: JointImportance(**SIZES, sets={"a": ["L7.H0"]})(twins(), CopyTask()),
            "`components` must name 'L0.H0', .*; got 'L7.H0'",
        ),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(MeasureError, match=message):
        make()


def test_copies_are_what_they_say():
    split = copies(torch.tensor([2, 1]))
    with torch.no_grad():
        assert exact_match(twins()(split.tokens), split.targets).all()
