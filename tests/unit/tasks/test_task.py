"""`ShortcutTask`: its splits and their record, its identity, its loss, and what it refuses.

The golden hashes are remade, after a change that is meant to change the examples of every seed, by
`python tests/unit/tasks/test_task.py`; say in the changelog that old runs will not be reproduced.
"""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest
import torch

from interp_shortcuts.canonical import canonical_json
from interp_shortcuts.errors import ConfigError, TaskError
from interp_shortcuts.tasks.base import Task
from interp_shortcuts.tasks.config import TaskConfig
from interp_shortcuts.tasks.rules import RULES, TaskRule, rule
from interp_shortcuts.tasks.split import Split
from interp_shortcuts.tasks.task import ShortcutTask

GOLDEN = Path(__file__).parents[2] / "golden" / "task_splits.json"
NAMES = ["train", "consistent", "anti", "validation", "adversarial"]


def last_parity(integers):
    return integers[:, -1] % 2


def sum_parity(integers):
    return integers.sum(axis=1) % 2


def sequences(split):
    return set(map(tuple, split.integers.tolist()))


def small(name="max_parity", **sizes):
    defaults = {"n_train": 200, "n_validation": 50, "n_adversarial": 40}
    return ShortcutTask.named(name, **{**defaults, **sizes})


def golden_hashes():
    return {
        name: {split.name: split.sha for split in ShortcutTask.named(name).splits.values()}
        for name in RULES
    }


def test_the_seed_means_the_same_examples_as_ever():
    assert golden_hashes() == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("name", sorted(RULES))
def test_the_demo_splits(name):
    task = ShortcutTask.named(name)
    assert list(task.splits) == NAMES
    assert {n: s.n for n, s in task.splits.items()} == {
        "train": 2048,
        "consistent": 1843,
        "anti": 205,
        "validation": 1024,
        "adversarial": 1024,
    }
    for split_name, split in task.splits.items():
        assert split.name == split_name
        assert (
            split.tokens.dtype == split.labels.dtype == split.shortcut_labels.dtype == torch.int64
        )
        assert split.tokens.shape == (split.n, 5)
        assert (split.tokens[:, task.read_position] == task.equals_token).all()
        assert split.integers.min() == 0
        assert split.integers.max() == 9
        assert split.labels.tolist() == [sum(s) % task.n_classes for s in split.integers.tolist()]
        assert len(sequences(split)) == split.n
    train, validation, adversarial = (
        sequences(task.split(n)) for n in ("train", "validation", "adversarial")
    )
    assert not train & validation
    assert not train & adversarial
    assert not validation & adversarial
    assert task.split("validation").consistent.all()
    assert not task.split("adversarial").consistent.any()
    assert task.split("consistent").consistent.all()
    assert not task.split("anti").consistent.any()


def test_consistent_and_anti_are_the_parts_of_train_in_its_order():
    task = small()
    train = task.split("train").integers.tolist()
    mask = task.split("train").consistent.tolist()
    parts = {True: iter(task.split("consistent").integers.tolist())}
    parts[False] = iter(task.split("anti").integers.tolist())
    assert train == [next(parts[is_consistent]) for is_consistent in mask]


def test_training_examples_are_mixed():
    consistent = ShortcutTask.named("max_parity", ratio=0.5).split("train").consistent
    # of 2,048 shuffled ones each half has 512 +- 16 consistent; by group it would be 1,024 or 0
    assert abs(int(consistent[:1024].sum()) - 512) < 80


@pytest.mark.parametrize("ratio", [0.0, 0.1, 1 / 3, 0.5, 0.75, 0.9, 0.999, 1.0, 1, 0])
@pytest.mark.parametrize("n_train", [1, 7, 200])
def test_the_ratio_is_met_to_a_whole_example(ratio, n_train):
    task = small(ratio=ratio, n_train=n_train)
    n_consistent = int(task.split("train").consistent.sum())
    assert n_consistent == round(ratio * n_train)
    assert abs(n_consistent - ratio * n_train) <= 0.5
    assert task.record["achieved_ratio"] == n_consistent / n_train


def test_an_empty_part_is_a_split_of_nothing():
    task = small(ratio=1.0, n_adversarial=0)
    for name in ("anti", "adversarial"):
        assert task.split(name).n == 0
        assert task.split(name).tokens.shape == (0, 5)
        assert task.record["splits"][name]["label_balance"] == []


def test_one_integer_leaves_no_anti_example():
    task = ShortcutTask.named(
        "first_parity", length=1, ratio=1, n_train=6, n_validation=4, n_adversarial=0
    )
    assert sequences(task.split("train")) | sequences(task.split("validation")) == {
        (v,) for v in range(10)
    }
    with pytest.raises(TaskError, match="none exists among the 10"):
        _ = replace(task, n_adversarial=1).splits


def test_same_seed_same_examples_and_other_seed_others():
    first, again, other = small(seed=1), small(seed=1), small(seed=2)
    for name in NAMES:
        assert torch.equal(first.split(name).tokens, again.split(name).tokens)
        assert first.split(name).sha != other.split(name).sha


@pytest.mark.parametrize("sizes", [{}, {"length": 7, "n_integers": 20}])
def test_training_does_not_depend_on_the_evaluation_sizes(sizes):
    task = small(**sizes)
    other = replace(task, n_adversarial=7, n_validation=0)
    assert other.split("train") == task.split("train")


def test_evaluation_does_not_depend_on_training_in_an_enumerated_space():
    task = small()
    other = replace(task, ratio=0.5, n_train=777)
    assert other.split("validation") == task.split("validation")
    assert other.split("adversarial") == task.split("adversarial")


OUTSIDE = """
import json, random
import numpy as np
import torch
from interp_shortcuts.errors import TaskError
from interp_shortcuts.tasks import ShortcutTask

def state():
    return repr((random.getstate(), np.random.get_state(), torch.get_rng_state().tolist()))

def parity(integers):
    return integers.sum(axis=1) % 2

before = state()
ShortcutTask.named("max_parity").record
ShortcutTask.named("first_mod3", length=9, n_integers=30).record
random_state_kept = before == state()

errors = []
for wrong in [dict(label=3), dict(shortcut="max"), dict(seed=None), dict(n_classes=None),
              dict(seed=0.5), dict(length="four"), dict(ratio="most")]:
    try:
        ShortcutTask(**{"label": parity, "shortcut": parity, **wrong})
    except TaskError as error:
        errors.append(str(error))

task = ShortcutTask(parity, parity, seed=np.int64(3), length=np.int64(4), ratio=np.float32(1))
types = [type(value).__name__ for value in (task.seed, task.length, task.ratio)]
print(json.dumps({"random_state_kept": random_state_kept, "errors": errors, "types": types}))
"""


@pytest.fixture(scope="module")
def outside():
    """What happens where nothing checks types at run time; beartype itself draws from `random`."""
    done = subprocess.run([sys.executable, "-c", OUTSIDE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_global_random_state_is_left_alone(outside):
    assert outside["random_state_kept"] is True


def test_record_counts():
    task = small("max_mod3", seed=3)
    record = task.record
    assert json.loads(canonical_json(record)) == record
    assert record["fingerprint"] == task.fingerprint
    assert record["n_sequences"] == 10_000
    assert sum(record["n_exist"].values()) == 10_000
    assert record["disjoint"] is True
    assert record["overlap_reason"] == ""
    assert list(record["splits"]) == NAMES
    for name, facts in record["splits"].items():
        split = task.split(name)
        counts = [split.labels.tolist().count(c) for c in range(3)]
        assert facts == {
            "n": split.n,
            "n_distinct": split.n,
            "n_consistent": int(split.consistent.sum()),
            "label_counts": counts,
            "label_balance": [c / split.n for c in counts],
            "sha": split.sha,
        }


def test_record_says_why_splits_overlap():
    task = ShortcutTask.named(
        "first_parity", length=3, ratio=0.5, n_train=800, n_validation=150, n_adversarial=100
    )
    shared = sequences(task.split("train")) & sequences(task.split("validation"))
    assert len(shared) == 50
    assert task.record["disjoint"] is False
    assert task.record["n_shared_with_train"] == {"validation": 50, "adversarial": 0}
    assert task.record["overlap_reason"] == (
        "training and validation together need 550 distinct consistent sequences and 500 exist, "
        "so 50 are in both"
    )


def test_record_of_a_space_beyond_counting():
    record = small(length=40, n_integers=50).record
    assert record["n_sequences"] is None
    assert record["n_exist"] == {"consistent": None, "anti": None}


def test_derived_values():
    task = small("first_mod3", length=6, n_integers=12)
    assert (task.n_tokens, task.equals_token) == (13, 12)
    assert (task.context, task.read_position) == (7, 6)
    assert task.chance == 1 / 3
    assert task.label_feature.name == "residue_3"
    assert small().label_feature.name == "parity"
    assert small().chance == 0.5


def test_an_unknown_split_lists_the_names():
    with pytest.raises(
        TaskError,
        match="`split` must be one of 'train', 'consistent', 'anti', 'validation', 'adversarial'; "
        "got 'test'",
    ):
        small().split("test")


def test_a_named_task_takes_sizes_alone():
    with pytest.raises(TaskError, match="`n_classes` belongs to the rule 'max_parity'"):
        ShortcutTask.named("max_parity", n_classes=5)
    with pytest.raises(TaskError, match=r"`size` is no field; choose from: length, .*seed"):
        ShortcutTask.named("max_parity", size=5)


def test_splits_are_made_once_and_cannot_be_replaced():
    task = small()
    assert task.splits is task.splits
    assert task.split("train") is task.splits["train"]
    with pytest.raises(TypeError):
        task.splits["train"] = task.split("anti")  # pyright: ignore[reportIndexIssue]
    with pytest.raises(FrozenInstanceError):
        task.ratio = 0.5  # pyright: ignore[reportAttributeAccessIssue]


def test_it_is_a_task():
    assert isinstance(small(), Task)
    assert not isinstance(small().split("train"), Task)


def test_two_functions_are_a_task():
    task = ShortcutTask(label=sum_parity, shortcut=last_parity, n_train=100)
    assert task.name == "custom"
    assert task.split("train").shortcut_labels.tolist() == [
        s[-1] % 2 for s in task.split("train").integers.tolist()
    ]
    assert "<function" not in repr(task)


def test_users_functions_are_tried_when_the_task_is_built():
    with pytest.raises(TaskError, match=r"`shortcut` must return labels from 0 to 1 \(`n_classes"):
        ShortcutTask(label=sum_parity, shortcut=lambda integers: integers.max(axis=1))
    ShortcutTask(label=sum_parity, shortcut=lambda integers: integers.max(axis=1), n_classes=10)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"ratio": 1.5}, "`ratio` should be less than or equal to 1; got 1.5."),
        ({"ratio": -0.5}, "`ratio` should be greater than or equal to 0; got -0.5."),
        ({"ratio": math.nan}, "`ratio` should be a finite number; got nan."),
        ({"n_train": 0}, "`n_train` should be greater than or equal to 1; got 0."),
        ({"n_validation": -1}, "`n_validation` should be greater than or equal to 0; got -1."),
        ({"n_adversarial": -2}, "`n_adversarial` should be greater than or equal to 0; got -2."),
        ({"length": 0}, "`length` should be greater than or equal to 1; got 0."),
        ({"n_integers": 1}, "`n_integers` should be greater than or equal to 2; got 1."),
        ({"n_classes": 1}, "`n_classes` should be greater than or equal to 2; got 1."),
        ({"name": ""}, "`name` should have at least 1 character; got ''."),
        (
            {"length": 0, "n_train": 0},
            "`length` should be greater than or equal to 1; got 0. `n_train` should be",
        ),
    ],
)
def test_impossible_sizes(sizes, message):
    with pytest.raises(TaskError) as caught:
        ShortcutTask(label=sum_parity, shortcut=last_parity, **sizes)
    assert str(caught.value).startswith(message)


def test_wrong_types_are_named(outside):
    assert outside["errors"] == [
        "`label` must be a function of the integers; got 3.",
        "`shortcut` must be a function of the integers; got 'max'.",
        "`seed` should be a valid integer; got None.",
        "`n_classes` should be a valid integer; got None.",
        "`seed` should be a valid integer, got a number with a fractional part; got 0.5.",
        "`length` should be a valid integer, unable to parse string as an integer; got 'four'.",
        "`ratio` should be a valid number, unable to parse string as a number; got 'most'.",
    ]


def test_numpy_numbers_become_plain_ones(outside):
    assert outside["types"] == ["int", "int", "float"]


def test_equality_is_by_content():
    assert small(seed=1) == small(seed=1)
    assert hash(small(seed=1)) == hash(small(seed=1))
    assert small(ratio=1) == small(ratio=1.0)
    assert small() != "task"
    changes = [{"seed": 1}, {"ratio": 0.8}, {"n_train": 201}, {"n_validation": 51}, {"length": 5}]
    changes += [{"n_adversarial": 41}, {"n_integers": 11}, {"name": "x"}, {"shortcut": last_parity}]
    tasks = {small(), *(replace(small(), **change) for change in changes)}
    assert len(tasks) == len({task.fingerprint for task in tasks}) == 1 + len(changes)


def test_pickling_draws_again():
    task = small(seed=4)
    train = task.split("train")
    copy = pickle.loads(pickle.dumps(task))
    assert copy == task
    assert copy.split("train") == train
    assert len(pickle.dumps(task)) < 2000


@pytest.mark.parametrize("name", sorted(RULES))
def test_config_round_trip(name):
    task = small(name, seed=5, ratio=0.7)
    again = ShortcutTask.from_config(task.config, seed=99)
    assert again == task
    assert again.split("train") == task.split("train")
    assert TaskConfig.model_validate_json(task.config.model_dump_json()) == task.config


def test_the_runs_seed_is_the_datas_unless_the_config_has_one():
    config = TaskConfig(n_train=100)
    assert ShortcutTask.from_config(config, seed=3).seed == 3
    pinned = config.model_copy(update={"data_seed": 7})
    assert ShortcutTask.from_config(pinned, seed=3).seed == 7


def test_an_unregistered_rule_must_be_given():
    task = ShortcutTask(sum_parity, last_parity, name="last_parity", seed=2)
    with pytest.raises(ConfigError, match=r"got 'last_parity'.*register_rule.*`task=`"):
        ShortcutTask.from_config(task.config, seed=2)
    assert ShortcutTask.from_config(task.config, seed=2, rule=task.rule) == task


def test_a_rule_that_behaves_otherwise_is_refused():
    task = ShortcutTask(sum_parity, last_parity, name="mine")
    changed = TaskRule("mine", sum_parity, lambda integers: integers[:, 0] % 2)
    with pytest.raises(
        TaskError,
        match=rf"'mine' does not behave as it did .* the config says {task.rule_fingerprint}",
    ):
        ShortcutTask.from_config(task.config, seed=0, rule=changed)


def test_a_rule_of_another_name_or_size_is_refused():
    task = ShortcutTask(sum_parity, last_parity, name="mine")
    with pytest.raises(TaskError, match=r"`rule` is 'mine' in the config; got a rule named 'max_p"):
        ShortcutTask.from_config(task.config, seed=0, rule=rule("max_parity"))
    with pytest.raises(TaskError, match=r"'max_mod3' has 3 classes; the config says .* = 2"):
        ShortcutTask.from_config(TaskConfig(rule="max_mod3", n_classes=2), seed=0)


def test_loss_is_cross_entropy_in_nats():
    task = small("max_mod3")
    logits = torch.tensor([[0.0, 0.0, 0.0], [math.log(2), 0.0, 0.0]])
    loss = task.loss(logits, torch.tensor([1, 0]))
    assert loss.tolist() == pytest.approx([math.log(3), math.log(2)])


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_loss_is_computed_in_float32_at_least(dtype, expected):
    logits = torch.tensor([[8.0, 0.0]], dtype=dtype, requires_grad=True)
    loss = small().loss(logits, torch.tensor([0]))
    assert loss.dtype == expected
    assert loss.item() == pytest.approx(math.log1p(math.exp(-8)), rel=1e-3)
    loss.sum().backward()
    assert logits.grad is not None


def test_predictions_and_ties():
    task = small("max_mod3")
    logits = torch.tensor([[0.0, 1.0, 1.0], [2.0, 2.0, 2.0], [-1.0, -2.0, 0.0]])
    assert task.predictions(logits).tolist() == [1, 0, 2]
    assert task.correct(logits, torch.tensor([1, 1, 2])).tolist() == [True, False, True]


def test_logits_of_another_width_are_refused():
    task = small()
    with pytest.raises(TaskError, match=r"\[example class\] with 2 classes .*; got \(4, 3\)"):
        task.loss(torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64))
    with pytest.raises(TaskError, match="with 2 classes"):
        task.predictions(torch.zeros(4, 1))


def test_a_split_of_nothing_has_a_loss_of_nothing():
    task = small(n_adversarial=0)
    empty: Split = task.split("adversarial")
    assert task.loss(torch.zeros(0, 2), empty.labels).shape == (0,)
    assert task.correct(torch.zeros(0, 2), empty.labels).shape == (0,)


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(golden_hashes(), indent=1) + "\n")
