"""The written-down form of the digits: limits, folders that are read once, and checked later."""

from __future__ import annotations

import gzip
import pickle
import subprocess
import sys

import numpy as np
import pytest
from idx_folder import NAMES, idx_bytes, write_idx_folder
from pydantic import ValidationError

from interp_shortcuts.errors import StorageError, TaskError
from interp_shortcuts.tasks.described import task_of
from interp_shortcuts.tasks.digits import Digits, Pictures
from interp_shortcuts.tasks.digits_config import DigitsConfig, FolderContents


@pytest.fixture
def folder(tmp_path):
    return write_idx_folder(tmp_path / "mnist")


def test_the_bundled_pictures():
    config = DigitsConfig(noise=0.2)
    assert (config.n_train, config.n_test, config.n_noisy) == (1438, 359, 288)
    assert (config.n_pixels, config.n_classes, config.label) == (64, 10, "digits")
    assert DigitsConfig.model_validate_json(config.model_dump_json()) == config
    for model in (DigitsConfig, FolderContents):
        for field in model.model_fields.values():
            assert (field.description or "").endswith(".")


def test_the_sizes_are_those_of_the_task():
    pytest.importorskip("sklearn")
    config = DigitsConfig(noise=0.3, train_fraction=0.5)
    task = task_of(config, seed=3)
    assert isinstance(task, Digits)
    assert task == Digits.bundled(noise=0.3, train_fraction=0.5, seed=3)
    assert task.config == config.model_copy(update={"data_seed": 3})
    assert task_of(task.config, seed=8) == task
    assert task.record["config"] == task.config.model_dump(mode="json")
    splits = task.splits
    assert (splits["train"].n, splits["test"].n) == (config.n_train, config.n_test)
    assert (splits["noisy"].n, task.n_pixels) == (config.n_noisy, config.n_pixels)


@pytest.mark.parametrize(
    ("field", "value"),
    [("noise", 1.1), ("noise", float("nan")), ("train_fraction", 0), ("train_fraction", 1.0)],
)
def test_limits(field, value):
    with pytest.raises(ValidationError, match=f"(?s){field}.*input_value="):
        DigitsConfig(**{field: value})


def test_what_contradicts_itself_is_refused(folder):
    with pytest.raises(ValueError, match=r"`train_fraction` \(=1e-05\) must leave .* it trains 0"):
        DigitsConfig(train_fraction=1e-5)
    with pytest.raises(ValueError, match=r"`train_fraction` \(=0.5\) is about the bundled"):
        DigitsConfig(folder=str(folder), train_fraction=0.5)
    contents = DigitsConfig(folder=str(folder)).contents
    with pytest.raises(ValueError, match="`contents` must be None without a `folder`"):
        DigitsConfig(contents=contents)


def test_a_folder_is_read_when_the_config_is_made(folder):
    config = DigitsConfig(folder=folder, noise=0.25)
    assert (config.n_train, config.n_test, config.n_pixels, config.n_noisy) == (12, 5, 12, 3)
    assert config.folder == str(folder)
    assert config.label == f"digits in {folder}"
    task = Digits.from_config(config, seed=3)
    assert task == Digits.from_idx(folder, noise=0.25, seed=3)
    assert task.config == config.model_copy(update={"data_seed": 3})
    with pytest.raises(ValueError, match=r"elsewhere must hold train-images-idx3-ubyte or"):
        DigitsConfig(folder=str(folder / "elsewhere"))


def test_it_is_not_read_again_where_the_contents_are_known(folder):
    config = DigitsConfig(folder=str(folder))
    text = config.model_dump_json()
    for name in NAMES:
        (folder / name).unlink()
    again = DigitsConfig.model_validate_json(text)
    assert again == config
    with pytest.raises(StorageError, match="must hold train-images-idx3-ubyte or"):
        Digits.from_config(again, seed=0)


def test_another_content_is_refused_where_the_task_is_built(folder):
    config = DigitsConfig(folder=str(folder))
    (folder / "t10k-labels-idx1-ubyte").write_bytes(idx_bytes(np.arange(5)))
    with pytest.raises(TaskError, match=r"`folder` .* does not hold the pictures that it held"):
        Digits.from_config(config, seed=0)
    changed = DigitsConfig(folder=str(folder))
    assert changed.contents != config.contents
    Digits.from_config(changed, seed=0)


def test_packed_files_have_the_same_contents(folder, tmp_path):
    packed = tmp_path / "packed"
    packed.mkdir()
    for name in NAMES:
        (packed / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    both = [DigitsConfig(folder=str(path)) for path in (folder, packed)]
    assert both[0].contents == both[1].contents


def test_pictures_given_by_hand_have_no_config():
    pictures = Pictures(np.zeros((10, 2, 2), dtype=np.uint8), np.arange(10, dtype=np.uint8))
    task = Digits(source="mine", trained=pictures, tested=pictures, brightest=9)
    assert task.config is None
    assert task.record["config"] is None


def test_a_task_goes_to_another_process_without_its_splits(folder):
    task = Digits.from_idx(folder, noise=0.5)
    before = len(pickle.dumps(task))
    sha = task.split("train").sha
    copied = pickle.loads(pickle.dumps(task))
    assert len(pickle.dumps(task)) == before
    assert copied == task
    assert copied.split("train").sha == sha


def test_it_loads_no_torch():
    code = (
        "import sys, interp_shortcuts.tasks.digits_config as d; d.DigitsConfig(noise=0.3)\n"
        "assert not {'torch', 'numpy', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
