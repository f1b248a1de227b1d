from __future__ import annotations

import random
import re
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from tiny_runs import TINY

from interp_shortcuts.errors import StorageError
from interp_shortcuts.models.build import initial_weights
from interp_shortcuts.runs.checkpoint import (
    checkpoint_hash,
    content_hash,
    load_checkpoint,
    read_header,
    save_checkpoint,
)

SPEC = TINY.spec


@pytest.fixture
def weights() -> dict[str, torch.Tensor]:
    return initial_weights(SPEC, 0)


@pytest.fixture
def path(tmp_path: Path, weights: dict[str, torch.Tensor]) -> Path:
    path = tmp_path / "step_0000007.safetensors"
    save_checkpoint(path, weights, step=7, spec=SPEC)
    return path


def test_round_trip(path: Path, weights: dict[str, torch.Tensor]):
    loaded = load_checkpoint(path, spec=SPEC)
    assert all(torch.equal(loaded[name], weights[name]) for name in weights)
    header = read_header(path)
    assert (header.step, header.spec_hash) == (7, SPEC.hash)
    assert checkpoint_hash(path) == content_hash(weights) == header.content_hash
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_equal_weights_give_equal_files(path: Path, weights: dict[str, torch.Tensor]):
    again = path.with_name("again.safetensors")
    save_checkpoint(again, dict(reversed(weights.items())), step=7, spec=SPEC)
    assert again.read_bytes() == path.read_bytes()


def test_the_hash_sees_values_names_shapes_and_types(weights: dict[str, torch.Tensor]):
    first = content_hash(weights)
    name = "blocks.0.mlp.W_in"
    changed = [
        {**weights, name: weights[name] + 1e-6},
        {**weights, name: weights[name].T},
        {**weights, name: weights[name].to(torch.float64)},
        {**{k: v for k, v in weights.items() if k != name}, "other": weights[name]},
    ]
    assert len({first, *map(content_hash, changed)}) == 5


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_not_written(tmp_path: Path, weights, value: float):
    weights["unembed.b_U"][0] = value
    with pytest.raises(StorageError, match=r"`unembed.b_U` must be finite.*Nothing was written"):
        save_checkpoint(tmp_path / "a.safetensors", weights, step=0, spec=SPEC)
    assert list(tmp_path.iterdir()) == []


def test_every_truncation_is_an_error(path: Path):
    whole = path.read_bytes()
    for length in (0, 4, 8, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(StorageError, match=re.escape(f"'{path}'")):
            load_checkpoint(path, spec=SPEC)


def test_every_flipped_byte_is_an_error(path: Path):
    """In the header and in the weights alike, unless the bytes mean the same (a space, say)."""
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    draw = random.Random(0)
    places = [*draw.sample(range(header), 60), *draw.sample(range(header, len(whole)), 40)]
    before = (read_header(path), content_hash(load_checkpoint(path, spec=SPEC)))
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        after = None
        with suppress(StorageError):
            after = (read_header(path), content_hash(load_checkpoint(path, spec=SPEC)))
        # the trajectory compares the step with the file's name
        assert after is None or after[0].step != 7 or after == before


def test_another_specs_weights_are_refused(path: Path):
    other = SPEC.model_copy(update={"attention": "bidirectional"})
    with pytest.raises(StorageError, match=r"holds the weights of another model.*bidirectional"):
        load_checkpoint(path, spec=other)


def test_a_missing_or_foreign_file_is_named(tmp_path: Path, weights):
    from safetensors.torch import save_file

    with pytest.raises(StorageError, match=r"no.safetensors' is missing"):
        load_checkpoint(tmp_path / "no.safetensors", spec=SPEC)
    foreign = tmp_path / "foreign.safetensors"
    save_file(weights, foreign)
    with pytest.raises(StorageError, match=r"not a checkpoint of this package.*from_checkpoints"):
        load_checkpoint(foreign, spec=SPEC)
