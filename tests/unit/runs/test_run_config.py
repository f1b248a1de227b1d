from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import BaseModel, ValidationError

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.runs.config import OptimConfig, RunConfig
from interp_shortcuts.runs.schedule import ScheduleConfig
from interp_shortcuts.tasks.config import TaskConfig


def test_the_name_is_no_part_of_the_identity_and_everything_else_is():
    config = RunConfig()
    assert config.replace(name="demo").run_id == config.run_id
    for change in ({"ratio": 0.8}, {"n_layers": 1}, {"lr": 2e-3}, {"every": 20}, {"seed": 1}):
        assert config.replace(**change).run_id != config.run_id


def test_replace_takes_flat_and_nested_fields():
    config = RunConfig().replace(ratio=0.8, task={"length": 5}, optim=OptimConfig(lr=0.5), seed=3)
    assert (config.task.ratio, config.task.length) == (0.8, 5)
    assert (config.optim.lr, config.seed) == (0.5, 3)
    assert config.spec.n_ctx == 6
    assert RunConfig().task.ratio == 0.9


def test_replace_names_the_unknown_field_and_the_choices():
    with pytest.raises(ConfigError, match=r"`ratoi` is no field of RunConfig; .*ratio"):
        RunConfig().replace(ratoi=0.8)
    with pytest.raises(ConfigError, match=r"`lr` is no field of task; .*length"):
        RunConfig().replace(task={"lr": 0.8})


def test_a_misspelt_field_gets_a_hint():
    with pytest.raises(ConfigError, match=r"Did you mean `ratio`\?"):
        RunConfig().replace(ratoi=0.8)
    with pytest.raises(ConfigError, match=r"\.$"):
        RunConfig().replace(qqqqqq=0.8)


def test_a_part_s_field_given_to_the_whole_points_to_replace():
    message = r"`ratio` is a field of `task`.*`RunConfig\(\).replace\(ratio=0.8\)`"
    with pytest.raises(ValidationError, match=message):
        RunConfig(ratio=0.8)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"momentum": 0.9}, r"`momentum` \(=0.9\) applies to .*'muon' only; got 'adamw'"),
        ({"batch_size": 4096}, r"`batch_size` \(=4096\) must be at most `n_train` \(=2048\)"),
        ({"lr": 0.0}, r"optim.lr\n.*greater than 0"),
        ({"optimizer": "lion"}, r"'adamw', 'adam', 'sgd' or 'muon'"),
        ({"early_stop": 0}, r"early_stop"),
        ({"n_heads": 3}, r"`n_heads` \(=3\) must divide `d_model` \(=64\)"),
    ],
)
def test_impossible_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        RunConfig().replace(**change)


def test_configs_are_frozen_and_refuse_unknown_fields():
    with pytest.raises(ValidationError, match="frozen"):
        RunConfig().seed = 3  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs"):
        RunConfig(sede=3)  # type: ignore[call-arg]


def test_the_spec_has_the_sizes_of_the_task():
    spec = RunConfig(task=TaskConfig(rule="max_mod3", length=5, n_integers=40)).spec
    assert (spec.d_vocab, spec.d_vocab_out, spec.n_ctx) == (41, 3, 6)


def test_differences_are_listed_by_dotted_name():
    one, other = RunConfig(name="a"), RunConfig(name="b").replace(lr=0.1, seed=2)
    assert one.differences(other) == {"optim.lr": (1e-3, 0.1), "seed": (0, 2)}


def test_field_names_are_unique_over_the_parts_and_described():
    config = RunConfig()
    parts: list[BaseModel] = [config.task, config.model, config.optim, config.schedule]
    names = [name for part in parts for name in type(part).model_fields]
    names += [name for name in RunConfig.model_fields if name not in ("task", "model")]
    assert len(names) == len(set(names))
    for kind in (RunConfig, OptimConfig, ScheduleConfig):
        assert all(field.description for field in kind.model_fields.values())


def test_json_round_trip():
    config = RunConfig().replace(batch_size=128, early_stop=3, name="demo")
    assert RunConfig.model_validate_json(config.model_dump_json()) == config


def test_configs_load_no_torch():
    code = (
        "import sys; from interp_shortcuts.runs import RunConfig; RunConfig().spec; "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
