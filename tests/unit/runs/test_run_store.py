from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from tiny_runs import TINY

from interp_shortcuts.errors import StorageError
from interp_shortcuts.runs.lock import is_being_trained, training_lock
from interp_shortcuts.runs.store import RunFolder, replacing, write_text


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path):
    path = tmp_path / "config.json"
    write_text(path, "old")

    def write_half():
        with replacing(path) as temporary:
            temporary.write_text("ne")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_config_round_trip(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.write_config(TINY)
    assert folder.read_config() == TINY


def test_an_unknown_field_is_named_with_file_and_cure(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.write_config(TINY)
    data = json.loads(folder.config_path.read_text())
    data["optim"]["warmup"] = 7
    folder.config_path.write_text(json.dumps(data))
    message = re.escape(
        f"'{folder.config_path}' is not a valid config: `optim.warmup` (=7) is no field of this "
        "version's config. Correct the file"
    )
    with pytest.raises(StorageError, match=message):
        folder.read_config()


def test_a_field_outside_its_part_is_named_without_the_whole_config(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.write_config(TINY)
    data = json.loads(folder.config_path.read_text())
    folder.config_path.write_text(json.dumps({**data, "lr": 0.1}))
    with pytest.raises(StorageError, match="not a valid config: `lr` is a field of `optim`"):
        folder.read_config()


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe"])
def test_damaged_json_is_an_error(tmp_path: Path, content: bytes):
    folder = RunFolder(tmp_path)
    folder.config_path.write_bytes(content)
    folder.manifest_path.write_bytes(content)
    with pytest.raises(StorageError, match=r"config.json' is damaged: .* Restore it"):
        folder.read_config()
    with pytest.raises(
        StorageError, match=r"manifest.json' is damaged: .* Delete the run folder and train"
    ):
        folder.read_manifest()


def test_what_is_no_run_folder_is_told_apart(tmp_path: Path):
    with pytest.raises(StorageError, match="nothing' does not exist; give the folder of a run"):
        RunFolder(tmp_path / "nothing").read_config()
    with pytest.raises(StorageError, match="is empty: no run was trained there"):
        RunFolder(tmp_path).read_config()
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(StorageError, match=r"notes.txt' is a file; give the folder"):
        RunFolder(tmp_path / "notes.txt").read_config()
    with pytest.raises(StorageError, match=r"config.json' is missing, so .* Give a run's own"):
        RunFolder(tmp_path).read_config()


def test_a_manifest_of_another_format_is_refused(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.write_manifest({"format": 99, "status": "finished", "run_id": ""})
    with pytest.raises(StorageError, match=r"`format` \(=99\).*reads format 1"):
        folder.read_manifest()
    folder.write_manifest({"format": 1, "run_id": ""})
    with pytest.raises(StorageError, match="lacks `status`"):
        folder.read_manifest()


def test_leftovers_of_a_kill_are_ignored_and_removed(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.checkpoints_path.mkdir()
    left = [tmp_path / ".resume.pt.123.tmp", folder.checkpoints_path / ".step.safetensors.1.tmp"]
    for path in left:
        path.write_bytes(b"half")
    assert folder.checkpoint_files() == {}
    folder.remove_leftovers()
    assert not any(path.exists() for path in left)


def test_a_checkpoint_with_a_name_of_its_own_is_not_skipped(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.checkpoints_path.mkdir()
    for name in ("step_0000010 copy.safetensors", "step_00000010.safetensors"):
        (folder.checkpoints_path / name).touch()
        with pytest.raises(StorageError, match=f"{name}' is not named after its step"):
            folder.checkpoint_files()
        (folder.checkpoints_path / name).unlink()


def test_only_one_process_trains_in_a_folder(tmp_path: Path):
    assert is_being_trained(tmp_path) is False
    with training_lock(tmp_path):
        assert is_being_trained(tmp_path) is True
        with (
            pytest.raises(StorageError, match="being trained in by another process"),
            training_lock(tmp_path),
        ):
            pass
        assert is_being_trained(tmp_path) is True
    assert os.listdir(tmp_path) == []
    with training_lock(tmp_path):
        pass
