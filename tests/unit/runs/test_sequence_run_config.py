"""Run configs of sequence tasks, and that those of shortcut tasks keep their ids."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from sequence_tasks import TINY_SEQUENCES

from interp_shortcuts import presets
from interp_shortcuts.errors import ConfigError, StorageError
from interp_shortcuts.runs.config import OptimConfig, RunConfig, part_models
from interp_shortcuts.runs.curves import curves_frame
from interp_shortcuts.runs.store import RunFolder
from interp_shortcuts.tasks.config import TaskConfig
from interp_shortcuts.tasks.sequence_config import SequenceConfig

CONFIG = TINY_SEQUENCES


@pytest.mark.parametrize(
    ("name", "run_id"),
    [
        ("max_parity_demo", "dffbb9f3f275d268"),
        ("first_parity_demo", "60fefc262f12a564"),
        ("max_mod3_demo", "ac791423d260b29b"),
        ("max_parity_paper", "efffe3eedf01fa23"),
        ("smoke", "984da34bcc266634"),
    ],
)
def test_ids_of_shortcut_runs_are_pinned(name: str, run_id: str):
    """Run folders and sweeps are found by them: fields that came later must not change them."""
    assert presets.preset(name)().run_id == run_id
    assert presets.preset(name)(positions="none").run_id != run_id


def test_ids_tell_sequence_runs_apart():
    assert CONFIG.replace(name="x").run_id == CONFIG.run_id
    for change in ({"operation": "reversal"}, {"train_max": 4}, {"stop_at": None}, {"seed": 1}):
        assert CONFIG.replace(**change).run_id != CONFIG.run_id
    assert CONFIG.replace(positions="learned").run_id != CONFIG.run_id


def test_the_sizes_of_the_model_come_from_the_task():
    spec = CONFIG.spec
    assert (spec.d_vocab, spec.d_vocab_out, spec.n_ctx) == (11, 11, 12)
    paper = presets.sequence_sorting_paper().spec
    assert (paper.d_vocab, paper.d_vocab_out, paper.n_ctx) == (104, 104, 24)


@pytest.mark.parametrize("config", [CONFIG, RunConfig()])
def test_it_is_read_back_as_the_kind_that_it_was(config: RunConfig, tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_config(config)
    assert folder.read_config() == config
    assert type(folder.read_config().task) is type(config.task)


def test_a_config_without_the_field_for_positions_is_read():
    data = RunConfig().model_dump()
    del data["model"]["positions"]
    assert RunConfig.model_validate(data).run_id == RunConfig().run_id


def test_replace_changes_fields_and_kinds():
    assert CONFIG.replace(train_max=4, task={"train_min": 1}).task == SequenceConfig(
        operation="sorting", n_integers=6, train_min=1, train_max=4, heldout_max=5, n_per_length=20
    )
    other = RunConfig().replace(task={"operation": "reversal"}, batch_size=8)
    assert other.task == SequenceConfig(operation="reversal")
    assert CONFIG.replace(task={"rule": "max_mod3"}).task == TaskConfig(rule="max_mod3")
    assert CONFIG.replace(task=TaskConfig(ratio=0.5)).task == TaskConfig(ratio=0.5)
    with pytest.raises(ConfigError, match=r"`ratio` is no field of RunConfig; .*operation"):
        CONFIG.replace(ratio=0.5)
    with pytest.raises(ConfigError, match=r"`operation` is no field of RunConfig; .*ratio"):
        RunConfig().replace(operation="sorting")


def test_differences_between_kinds_are_listed():
    found = CONFIG.differences(RunConfig())
    assert found["task.operation"] == ("sorting", None)
    assert found["task.rule"] == (None, "max_parity")
    assert found["task.n_integers"] == (6, 10)
    assert "task.data_seed" not in found
    assert RunConfig().differences(CONFIG)["task.rule"] == ("max_parity", None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train_min": 4}, r"`train_min` \(=4\) must be at most `train_max` \(=3\)"),
        ({"heldout_max": 2}, r"`heldout_max` \(=2\) must be at least `train_max` \(=3\)"),
        ({"batch_size": None}, r"`batch_size` must be a number for a sequence task.*got None"),
        ({"early_stop": 3}, r"`early_stop` \(=3\) is about adversarial examples.*use `stop_at`"),
        ({"attention": "bidirectional"}, r"`attention` \(='bidirectional'\) must be 'causal'"),
        ({"stop_at": 1.5}, r"stop_at\n.*less than or equal to 1"),
        ({"operation": "shuffling"}, r"'reversal' or 'sorting'"),
        ({"positions": "rotary"}, r"'learned' or 'none'"),
    ],
)
def test_what_cannot_be_trained_is_refused(change: dict, message: str):
    with pytest.raises(ValueError, match=message):
        CONFIG.replace(**change)


def test_a_damaged_config_names_the_field_and_not_the_kind(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_config(CONFIG)
    text = folder.config_path.read_text().replace('"n_per_length": 20', '"n_per_length": -1')
    folder.config_path.write_text(text)
    with pytest.raises(StorageError, match=r"`task.n_per_length` \(=-1\)"):
        folder.read_config()


def test_a_field_of_the_task_given_to_the_whole_points_to_replace():
    with pytest.raises(ValidationError, match="`train_max` is a field of `task`"):
        RunConfig(train_max=4)  # type: ignore[call-arg]


def test_the_parts_of_a_run_and_their_fields():
    assert part_models("task")[:2] == (TaskConfig, SequenceConfig)
    assert part_models("optim") == (OptimConfig,)
    assert part_models("seed") == part_models("early_stop") == part_models("name") == ()


@pytest.mark.parametrize("task", [TaskConfig, SequenceConfig])
def test_field_names_are_unique_over_the_parts(task: type):
    parts = [task, *(part_models(name)[0] for name in ("model", "optim", "schedule"))]
    names = [name for part in parts for name in part.model_fields]
    names += [name for name in RunConfig.model_fields if not part_models(name)]
    assert len(names) == len(set(names))


def test_curves_without_a_shortcut_have_no_rate():
    records = [{"step": 0, "length_2": {"loss": 1.5, "accuracy": 0.25, "n": 4}}]
    frame = curves_frame(records)
    assert frame["shortcut_rate"].isna().all()
    assert frame["accuracy"].tolist() == [0.25]
