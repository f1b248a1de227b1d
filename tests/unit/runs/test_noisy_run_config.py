"""Run configs of tasks with wrong labels: which model goes with which task, and the optimiser."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.spec import Architecture, ModelSpec
from interp_shortcuts.models.two_layer_spec import TwoLayerArchitecture, TwoLayerSpec
from interp_shortcuts.runs.config import OptimConfig, RunConfig, part_models
from interp_shortcuts.runs.store import RunFolder
from interp_shortcuts.tasks.any_config import task_kind
from interp_shortcuts.tasks.config import TaskConfig
from interp_shortcuts.tasks.described import task_of
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.tasks.modular_config import ModularConfig
from interp_shortcuts.tasks.sequence_config import SequenceConfig

PAIRS = RunConfig(task=ModularConfig(modulus=7))
ON_TOKENS = RunConfig(task=ModularConfig(modulus=7), model=Architecture(d_model=8, d_mlp=8))


def test_a_run_that_names_no_model_has_the_usual_one_of_its_task():
    assert PAIRS.model == TwoLayerArchitecture()
    assert PAIRS.spec == TwoLayerSpec(n_tokens=7, n_classes=7)
    assert RunConfig.model_validate({"task": {"modulus": 7}}) == PAIRS
    assert RunConfig(task=TaskConfig()).model == Architecture()


def test_a_transformer_on_pairs_has_two_positions_and_a_class_for_each_residue():
    spec = ON_TOKENS.spec
    assert isinstance(spec, ModelSpec)
    assert (spec.d_vocab, spec.d_vocab_out, spec.n_ctx) == (7, 7, 2)
    assert ON_TOKENS.transformer_spec == spec
    with pytest.raises(ConfigError, match=r"must be a transformer .*got a TwoLayerArchitecture"):
        _ = PAIRS.transformer_spec


def test_the_kind_of_a_model_is_told_by_its_fields_and_else_by_the_task():
    def model_of(task: dict, model: dict) -> object:
        return RunConfig.model_validate({"task": task, "model": model}).model

    pairs = {"modulus": 7}
    assert model_of(pairs, {"width": 5}) == TwoLayerArchitecture(width=5)
    assert model_of(pairs, {"activation": "abs"}) == TwoLayerArchitecture(activation="abs")
    assert model_of(pairs, {"n_layers": 1}) == Architecture(n_layers=1)
    assert model_of({}, {"activation": "gelu"}) == Architecture(activation="gelu")


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"modulus": 7}, ModularConfig),
        ({"noise": 0.2, "arithmetic": "add"}, ModularConfig),
        ({"operation": "sorting"}, SequenceConfig),
        ({"rule": "max_parity", "noise": 0.1}, TaskConfig),
        ({"data_seed": 3}, TaskConfig),
        ({}, TaskConfig),
    ],
)
def test_the_kind_of_a_task_is_told_by_its_fields(fields: dict, kind: type):
    assert task_kind(fields) is kind


@pytest.mark.parametrize("config", [PAIRS, ON_TOKENS])
def test_it_is_read_back_as_the_kinds_that_it_was(config: RunConfig, tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_config(config)
    assert folder.read_config() == config
    assert type(folder.read_config().model) is type(config.model)


def test_ids_tell_runs_apart():
    changes = ({"noise": 0.1}, {"width": 5}, {"tied": True}, {"modulus": 11}, {"activation": "abs"})
    ids = {PAIRS.run_id, ON_TOKENS.run_id, *(PAIRS.replace(**one).run_id for one in changes)}
    assert len(ids) == 2 + len(changes)


def test_ids_do_not_depend_on_fields_of_the_optimiser_that_came_later():
    old = PAIRS.model_dump(mode="json")
    for name in ("lr_schedule", "warmup_steps", "precision"):
        del old["optim"][name]
    assert RunConfig.model_validate(old).run_id == PAIRS.run_id
    for change in ({"lr_schedule": "cosine"}, {"lr_schedule": "linear"}, {"warmup_steps": 5}):
        assert PAIRS.replace(**change).run_id != PAIRS.run_id


def test_replace_changes_the_kind_of_model_and_of_task():
    assert ON_TOKENS.replace(model={"width": 5}).model == TwoLayerArchitecture(width=5)
    assert PAIRS.replace(model=Architecture(n_layers=1)).model == Architecture(n_layers=1)
    assert PAIRS.replace(model={"width": 5}, activation="quadratic").model == TwoLayerArchitecture(
        width=5, activation="quadratic"
    )
    assert RunConfig().replace(task={"modulus": 5}, noise=0.2).task == ModularConfig(
        modulus=5, noise=0.2
    )
    with pytest.raises(ConfigError, match=r"`wdth` is no field of model; .*Did you mean `width`"):
        PAIRS.replace(model={"wdth": 5})


def test_differences_name_the_fields_of_either_kind():
    found = PAIRS.differences(ON_TOKENS)
    assert found["model.width"] == (513, None)
    assert found["model.d_model"] == (None, 8)
    assert "task.modulus" not in found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"early_stop": 3}, r"`early_stop` \(=3\) is about adversarial.*wrong labels does not"),
        ({"precision": "bfloat16"}, r"`precision` \(='bfloat16'\) must be 'float32'"),
        ({"batch_size": 40}, r"`batch_size` \(=40\) must be at most `n_train` \(=39\)"),
        ({"warmup_steps": 601}, r"`warmup_steps` \(=601\) must be at most `n_steps` \(=600\)"),
        ({"warmup_steps": -1}, r"optim.warmup_steps\n"),
        ({"lr_schedule": "step"}, r"'constant', 'linear' or 'cosine'"),
        ({"modulus": 1}, r"task.modulus\n.*greater than or equal to 2"),
        ({"width": 0}, r"model.width\n.*greater than or equal to 1"),
    ],
)
def test_what_cannot_be_trained_is_refused(change: dict, message: str):
    with pytest.raises(ValueError, match=message):
        PAIRS.replace(**change)


def test_a_model_that_does_not_fit_the_task_is_refused():
    message = r"`model` must be of the kind Architecture for the task rule max_parity; got a Two"
    with pytest.raises(ValidationError, match=message):
        RunConfig(model=TwoLayerArchitecture())
    with pytest.raises(ValidationError, match=message):
        PAIRS.replace(task={"rule": "max_parity"})


def test_a_field_of_another_kind_given_to_the_whole_points_to_its_part():
    with pytest.raises(ValidationError, match=r"`RunConfig\(task=\{'modulus': 7, ...\}\)`"):
        RunConfig(modulus=7)  # type: ignore[call-arg]


def test_muon_has_its_own_momentum_unless_one_is_set():
    assert OptimConfig(optimizer="muon").momentum == 0.95
    assert OptimConfig(optimizer="muon", momentum=0.5).momentum == 0.5
    assert OptimConfig(optimizer="sgd").momentum == OptimConfig().momentum == 0.0
    muon = PAIRS.replace(optimizer="muon")
    assert muon.optim.momentum == 0.95
    assert muon.replace(optimizer="adamw").optim.momentum == 0.0
    assert muon.replace(optim={"optimizer": "sgd"}).optim.momentum == 0.0
    assert PAIRS.replace(optimizer="muon", momentum=0.5).optim.momentum == 0.5
    assert muon.replace(lr=0.1).optim.momentum == 0.95
    assert PAIRS.replace(optimizer="sgd", momentum=0.9).replace(
        optimizer="muon"
    ).optim.momentum == (0.9)
    with pytest.raises(ValidationError, match=r"`momentum` \(=0.5\) applies to `optimizer` 'sgd'"):
        PAIRS.replace(optimizer="muon", momentum=0.5).replace(optimizer="adam")


def test_the_task_is_the_one_that_the_config_describes():
    assert task_of(PAIRS.task, seed=4) == ModularArithmetic(modulus=7, seed=4)
    assert task_of(ModularConfig(modulus=7, data_seed=2), seed=4) == ModularArithmetic(
        modulus=7, seed=2
    )


def test_the_parts_of_a_run():
    assert ModularConfig in part_models("task")
    assert part_models("model")[:2] == (Architecture, TwoLayerArchitecture)
    for kind in (*part_models("task"), *part_models("model")):
        assert all(field.description for field in kind.model_fields.values())


def test_configs_of_pairs_load_no_torch():
    code = (
        "import sys; from interp_shortcuts.runs import RunConfig; "
        "RunConfig(task={'modulus': 7}).spec; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
