"""Runs on digits: the kinds that go together, what identifies a run, and changes of a config."""

from __future__ import annotations

import pytest
from idx_folder import write_idx_folder

from interp_shortcuts.models.picture_spec import PictureArchitecture, PictureSpec
from interp_shortcuts.models.spec import Architecture
from interp_shortcuts.models.two_layer_spec import TwoLayerArchitecture
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.tasks.digits_config import DigitsConfig
from interp_shortcuts.tasks.modular_config import ModularConfig


def test_the_model_is_a_picture_net_of_the_pictures_size(tmp_path):
    config = RunConfig(task=DigitsConfig())
    assert config.model == PictureArchitecture()
    assert config.spec == PictureSpec(n_pixels=64, n_classes=10)
    small = RunConfig(task=DigitsConfig(folder=str(write_idx_folder(tmp_path))))
    assert small.spec == PictureSpec(n_pixels=12, n_classes=10)


@pytest.mark.parametrize("model", [Architecture(), TwoLayerArchitecture()])
def test_other_models_are_refused(model):
    with pytest.raises(ValueError, match="`model` must be of the kind PictureArchitecture"):
        RunConfig(task=DigitsConfig(), model=model)
    with pytest.raises(ValueError, match="`model` must be of the kind TwoLayerArchitecture"):
        RunConfig(task=ModularConfig(), model=PictureArchitecture())


def test_what_does_not_fit_the_task_is_refused():
    with pytest.raises(ValueError, match=r"`early_stop` \(=3\) is about adversarial examples"):
        RunConfig(task=DigitsConfig(), early_stop=3)
    with pytest.raises(ValueError, match=r"`batch_size` \(=1439\) must be at most `n_train`"):
        RunConfig(task=DigitsConfig(), optim={"batch_size": 1439})


def test_json_round_trip_and_identity(tmp_path):
    folder = write_idx_folder(tmp_path)
    configs = [
        RunConfig(task=DigitsConfig()),
        RunConfig(task=DigitsConfig(noise=0.2)),
        RunConfig(task=DigitsConfig(), model=PictureArchitecture(hidden_widths=(64, 32))),
        RunConfig(task=DigitsConfig(folder=str(folder))),
    ]
    assert len({config.run_id for config in configs}) == 4
    for config in configs:
        again = RunConfig.model_validate_json(config.model_dump_json())
        assert again == config
        assert again.run_id == config.run_id


def test_a_folders_content_is_part_of_the_identity(tmp_path):
    """Another path to the same pictures is the same run, and other pictures make another one."""
    one, other = (
        RunConfig(task=DigitsConfig(folder=str(write_idx_folder(tmp_path / name))))
        for name in ("one", "other")
    )
    assert one.run_id == other.run_id
    labels = tmp_path / "other" / "train-labels-idx1-ubyte"
    labels.write_bytes(labels.read_bytes()[:-1] + bytes([7]))
    changed = RunConfig(task=DigitsConfig(folder=str(tmp_path / "other")))
    assert changed.run_id != one.run_id


def test_fields_are_changed_by_flat_name():
    config = RunConfig(task=DigitsConfig())
    changed = config.replace(noise=0.4, hidden_widths=(32, 16), init_scale=0.5, lr=0.01)
    assert (changed.task.noise, changed.optim.lr) == (0.4, 0.01)
    assert changed.model == PictureArchitecture(hidden_widths=(32, 16), init_scale=0.5)
    assert config.differences(changed)["model.hidden_widths"] == ((128, 128), (32, 16))
