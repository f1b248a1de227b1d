"""Presets: complete, valid, and changed by flat field names."""

from __future__ import annotations

import pytest

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.presets import (
    PRESETS,
    configured,
    max_parity_demo,
    max_parity_lab,
    max_parity_paper,
    modular_noise_demo,
    modular_noise_paper,
    preset,
    sequence_reversal_paper,
    sequence_sorting_demo,
    sequence_sorting_paper,
)
from interp_shortcuts.runs.schedule import evaluation_steps, kept_steps

EXPERIMENTS = ["max_parity", "first_parity", "max_mod3", "first_mod3"]
SEQUENCES = ["sequence_sorting", "sequence_reversal"]
_OTHERS = ("sequence", "modular", "digits")
SHORTCUT_PRESETS = [name for name in PRESETS if not name.startswith(_OTHERS)]


def test_every_experiment_has_a_demo_and_a_paper_preset():
    rules = [*EXPERIMENTS, *SEQUENCES, "modular_noise"]
    expected = {f"{rule}_{size}" for rule in rules for size in ("demo", "paper")}
    assert set(PRESETS) == expected | {"max_parity_lab", "digits_noise_demo", "smoke"}


def test_the_lab_is_small_where_the_question_is_live():
    config = max_parity_lab()
    task, optim = config.task, config.optim
    assert (task.length, task.n_integers, task.n_train) == (3, 80, 1024)
    assert (optim.lr, optim.weight_decay, config.schedule.n_steps) == (3e-3, 0.4, 3000)
    assert config.early_stop == 8


@pytest.mark.parametrize("name", PRESETS)
def test_preset_is_complete(name: str):
    entry = PRESETS[name]
    config = entry(seed=3)
    assert (config.name, config.seed) == (name, 3)
    if name in SHORTCUT_PRESETS:
        assert config.spec.d_vocab_out == (3 if "mod3" in name else 2)
    assert entry.description
    assert "\n" not in entry.description
    assert "measured" in entry.cost or "estimated" in entry.cost


@pytest.mark.parametrize("name", SHORTCUT_PRESETS)
def test_the_consistent_and_anti_sequences_suffice(name: str):
    """The disjoint splits fit: each side of the space holds what the splits take from it."""
    task = PRESETS[name]().task
    space = task.n_integers**task.length
    classes = 3 if "mod3" in name else 2
    consistent, anti = space / classes, space * (classes - 1) / classes
    assert task.n_train * task.ratio + task.n_validation < 0.95 * consistent
    assert task.n_train * (1 - task.ratio) + task.n_adversarial < 0.95 * anti


def test_demo_holds_the_reference_settings():
    config = max_parity_demo()
    assert (config.model.n_layers, config.model.n_heads) == (2, 2)
    assert (config.task.length, config.task.n_integers, config.task.n_train) == (4, 10, 2048)
    assert (config.task.ratio, config.optim.lr, config.optim.weight_decay) == (0.9, 1e-3, 0.1)
    assert len(kept_steps(config.schedule)) >= 60


def test_paper_holds_the_sizes_of_the_paper():
    config = max_parity_paper()
    assert (config.task.n_train, config.schedule.n_steps) == (16_384, 15_000)
    assert (config.model.d_model, config.model.d_mlp, config.optim.weight_decay) == (64, 128, 0.1)
    assert config.optim.batch_size is None  # so that one step is one epoch


def test_the_noise_demo_holds_the_reference_settings():
    config = modular_noise_demo()
    assert (config.task.modulus, config.task.noise, config.task.train_fraction) == (59, 0.4, 0.8)
    assert (config.model.width, config.model.activation) == (512, "relu")
    assert (config.optim.lr, config.optim.weight_decay) == (1e-3, 0.5)
    assert config.optim.batch_size is None
    assert 40 <= len(kept_steps(config.schedule)) <= 60


def test_the_noise_paper_holds_the_sizes_of_the_paper():
    config = modular_noise_paper()
    assert (config.task.modulus, config.task.arithmetic, config.schedule.n_steps) == (
        113,
        "add",
        200_000,
    )
    assert (config.optim.optimizer, config.optim.lr, config.optim.weight_decay) == (
        "adamw",
        1e-3,
        0.1,
    )
    assert (config.model.width - 1).bit_count() == 1  # 2^k + 1


@pytest.mark.parametrize("make", [sequence_sorting_paper, sequence_reversal_paper])
def test_sequences_hold_the_sizes_of_the_paper(make):
    config = make(42)
    task, model, optim = config.task, config.model, config.optim
    assert (task.n_integers, task.train_lengths) == (99, (3, 4, 5, 6, 7))
    assert (task.heldout_lengths, task.n_per_length, task.stop_at) == ((8, 9, 10, 11), 100, 0.9)
    assert (model.n_layers, model.n_heads, model.d_model, model.d_mlp) == (4, 4, 128, 512)
    assert (model.activation, model.normalization, model.positions) == ("gelu", "LN", "none")
    assert (optim.optimizer, optim.lr, optim.weight_decay) == ("adam", 1e-3, 0.0)
    assert (optim.batch_size, config.schedule.n_steps, config.seed) == (64, 15_000, 42)
    evaluated = evaluation_steps(config.schedule)
    assert set(range(500, 15_001, 500)) <= set(evaluated)
    assert len([step for step in evaluated if step <= 500]) > 12


def test_sequence_presets_take_overrides_and_name_the_fields():
    config = sequence_sorting_demo(1, positions="learned", stop_at=None, train_max=4)
    assert (config.model.positions, config.task.stop_at, config.task.train_max) == (
        "learned",
        None,
        4,
    )
    assert sequence_sorting_demo(operation="reversal").task.operation == "reversal"
    with pytest.raises(ConfigError, match=r"`ratio` is no field of RunConfig; .*train_max"):
        sequence_sorting_demo(ratio=0.8)
    with pytest.raises(ConfigError, match=r"`train_min` \(=9\) must be at most `train_max` \(=5\)"):
        sequence_sorting_demo(train_min=9)


def test_overrides_reach_every_part():
    config = max_parity_demo(1, ratio=0.8, n_layers=1, lr=3e-4, n_steps=50, early_stop=3)
    assert (config.task.ratio, config.model.n_layers, config.optim.lr) == (0.8, 1, 3e-4)
    assert (config.schedule.n_steps, config.early_stop, config.seed) == (50, 3, 1)
    assert config.run_id != max_parity_demo(1).run_id


def test_a_mistyped_override_lists_the_names():
    with pytest.raises(ConfigError, match=r"`ratoi` is no field.*n_layers.*ratio"):
        max_parity_demo(ratoi=0.8)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"ratio": 1.5}, r"`ratio` \(=1\.5\) must be less than or equal to 1"),
        ({"n_heads": 3}, r"`n_heads` \(=3\) must divide `d_model` \(=64\)"),
        ({"batch_size": 4096}, r"`batch_size` \(=4096\) must be at most `n_train` \(=2048\)"),
        ({"activation": "tanh"}, r"`activation` \(='tanh'\) must be 'relu', 'gelu'"),
    ],
)
def test_a_broken_rule_names_field_and_value(overrides: dict[str, object], message: str):
    with pytest.raises(ConfigError, match=message):
        max_parity_demo(**overrides)


def test_several_broken_rules_are_all_told():
    with pytest.raises(ConfigError, match=r"`ratio` .*; .*`lr` "):
        configured({}, 0, {"ratio": -1, "lr": 0})


def test_preset_is_found_with_dashes_or_underscores():
    assert preset("max-parity-demo") is preset("max_parity_demo")
    with pytest.raises(
        ConfigError, match=r"`max-party` is no preset; choose from: digits_noise_demo, first_mod3"
    ):
        preset("max-party")
