"""Digits: the bundled pictures, MNIST's files read with checks, and label noise."""

from __future__ import annotations

import gzip
import json
import sys

import numpy as np
import pytest
import torch
from idx_folder import NAMES, idx_bytes, write_idx_folder

from interp_shortcuts.errors import StorageError, TaskError
from interp_shortcuts.tasks.digits import Digits, Pictures
from interp_shortcuts.tasks.idx_file import find_idx, read_idx


@pytest.fixture
def folder(tmp_path):
    return write_idx_folder(tmp_path)


def test_an_idx_file_by_hand(tmp_path):
    path = tmp_path / "two"
    path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 255]))
    assert read_idx(path, n_dims=1).tolist() == [7, 255]


def test_pictures_come_back_as_they_were_written(tmp_path):
    array = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    for name, pack in (("plain", bytes), ("packed.gz", gzip.compress)):
        (tmp_path / name).write_bytes(pack(idx_bytes(array)))
        np.testing.assert_array_equal(read_idx(tmp_path / name, n_dims=3), array)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (bytes([0, 0, 8, 3]) + bytes(12), r"must begin with the magic number 2049 .* got 2051"),
        (bytes([0, 0, 13, 1]) + bytes(4), r"must begin with the magic number 2049 .* got 3329"),
        (b"", r"must begin with the magic number 2049 .* got 0"),
        (bytes([0, 0, 8, 1, 0, 0]), "is cut off: its header must have 8 bytes; it has 6"),
        (
            bytes([0, 0, 8, 1, 0, 0, 0, 3, 1, 2]),
            r"is cut off: its sizes \[3\] ask for 3 .* holds 2",
        ),
        (
            bytes([0, 0, 8, 1, 0, 0, 0, 1, 1, 2]),
            r"is too long: its sizes \[1\] ask for 1 .* holds 2",
        ),
    ],
)
def test_damaged_files_are_named(tmp_path, content, message):
    path = tmp_path / "labels"
    path.write_bytes(content)
    with pytest.raises(StorageError, match=f"labels {message}"):
        read_idx(path, n_dims=1)


def test_damaged_gzip_files_are_named(tmp_path):
    path = tmp_path / "labels.gz"
    whole = gzip.compress(idx_bytes(np.arange(200)))
    flipped = whole[:20] + bytes(byte ^ 255 for byte in whole[20:60]) + whole[60:]
    for content in (b"no gzip", whole[:-30], flipped):
        path.write_bytes(content)
        with pytest.raises(StorageError, match=r"labels\.gz cannot be read"):
            read_idx(path, n_dims=1)
    with pytest.raises(StorageError, match=r"nowhere cannot be read"):
        read_idx(tmp_path / "nowhere", n_dims=1)


def test_a_missing_file_is_named(folder):
    (folder / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(StorageError, match=r"must hold t10k-labels-idx1-ubyte or t10k-labels-idx1"):
        Digits.from_idx(folder)
    assert find_idx(folder, "train-labels-idx1-ubyte").name == "train-labels-idx1-ubyte"


def test_a_folder_of_idx_files(folder):
    task = Digits.from_idx(folder, noise=0.25, seed=3)
    stored = read_idx(folder / "train-images-idx3-ubyte", n_dims=3)
    train, test = task.split("train"), task.split("test")
    np.testing.assert_allclose(train.images, stored.reshape(12, 12) / 255, rtol=1e-6)
    np.testing.assert_array_equal(
        train.true_labels, read_idx(folder / "train-labels-idx1-ubyte", n_dims=1)
    )
    assert (train.n, test.n, task.n_pixels, task.n_classes) == (12, 5, 12, 10)
    assert int(train.noisy.sum()) == task.record["n_noisy"] == 3
    assert task.chance == pytest.approx(0.1)


def test_packed_files_are_the_same_task(folder, tmp_path_factory):
    packed = tmp_path_factory.mktemp("packed")
    for name in NAMES:
        (packed / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    assert Digits.from_idx(packed) == Digits.from_idx(folder)


def test_labels_must_match_pictures(folder):
    (folder / "train-labels-idx1-ubyte").write_bytes(idx_bytes(np.zeros(11)))
    with pytest.raises(StorageError, match=r"must hold as many labels .* \(=12\); it holds 11"):
        Digits.from_idx(folder)


def test_the_bundled_digits():
    """1,797 pictures: their counts by digit are those of the data set's description."""
    pytest.importorskip("sklearn")
    task = Digits.bundled(noise=0.1, seed=1)
    splits = task.splits
    assert list(splits) == ["train", "clean", "noisy", "noisy_true", "test"]
    assert (splits["train"].n, splits["test"].n, task.n_pixels) == (1438, 359, 64)
    assert splits["noisy"].n == round(0.1 * 1438)
    labels = torch.cat([splits["train"].true_labels, splits["test"].labels])
    assert torch.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    images = torch.cat([splits["train"].images, splits["test"].images])
    assert (images.min(), images.max()) == (0.0, 1.0)
    assert images.dtype == torch.float32


def test_the_bundled_digits_can_be_learned():
    """The nearest class mean, from the clean labels, is right on most test pictures."""
    pytest.importorskip("sklearn")
    task = Digits.bundled(noise=0.3)
    clean, test = task.split("clean"), task.split("test")
    means = torch.stack([clean.images[clean.labels == digit].mean(0) for digit in range(10)])
    logits = -torch.cdist(test.images, means)
    assert task.correct(logits, test.labels).double().mean() > 0.85


def test_noise_and_seed():
    pytest.importorskip("sklearn")
    none, some, other = (
        Digits.bundled(noise=noise, seed=seed) for noise, seed in ((0, 0), (0.2, 0), (0.2, 1))
    )
    assert none.split("noisy").n == 0
    assert torch.equal(none.split("train").images, some.split("train").images)
    assert not torch.equal(other.split("train").images, some.split("train").images)
    assert len({none.fingerprint, some.fingerprint, other.fingerprint}) == 3
    assert some == Digits.bundled(noise=0.2)
    assert hash(some) == hash(Digits.bundled(noise=0.2))
    assert torch.equal(some.split("noisy").images, some.split("noisy_true").images)
    assert not some.split("noisy_true").noisy.any()
    assert json.loads(json.dumps(some.record))["source"] == "scikit-learn"


def test_splits_are_equal_by_content(folder):
    split = Digits.from_idx(folder).split("train")
    assert split == Digits.from_idx(folder).split("train")
    assert split != split.take(torch.arange(11))
    assert len(split) == 12
    assert repr(split) == f"ImageSplit('train': 12 pictures, 1 noisy, {split.sha})"


def test_without_scikit_learn_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(TaskError, match=r"pip install 'interp-shortcuts\[digits\]'"):
        Digits.bundled()


def pictures(n=3, *, labels=None, brightest=9, rows=2):
    return Pictures(
        np.full((n, rows, 2), brightest, dtype=np.uint8),
        np.array(range(n) if labels is None else labels, dtype=np.uint8),
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"noise": 1.5}, r"`noise` must be a fraction in \[0, 1\]; got 1.5"),
        ({"tested": pictures(0)}, "`tested` must hold at least one picture and a label for each"),
        (
            {"trained": pictures(labels=[1, 10, 2])},
            "`trained` must have labels from 0 to 9; got 10",
        ),
        ({"trained": pictures(brightest=10)}, r"pixel above `brightest` \(=9\); got 10"),
        ({"trained": pictures(rows=3)}, r"pictures of one size; got \[3, 2\] and \[2, 2\]"),
    ],
)
def test_impossible_pictures_are_refused(changes, message):
    parts = {"source": "test", "trained": pictures(), "tested": pictures(), "brightest": 9}
    with pytest.raises(TaskError, match=message):
        Digits(**{**parts, **changes})


def test_impossible_fractions_and_names_are_refused(folder):
    pytest.importorskip("sklearn")
    with pytest.raises(TaskError, match=r"`train_fraction` \(=1.0\) must leave .* of 1797 it"):
        Digits.bundled(train_fraction=1.0)
    with pytest.raises(TaskError, match=r"`split` must be one of 'train', .*; got 'validation'"):
        Digits.from_idx(folder).split("validation")
