from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_runs import TINY, tree

from interp_shortcuts.errors import StorageError
from interp_shortcuts.runs.run import Run
from interp_shortcuts.runs.store import RunFolder
from interp_shortcuts.training import session
from interp_shortcuts.training.loop import train
from interp_shortcuts.training.resume import load_resume, save_resume

CONFIG = TINY.replace(batch_size=24)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("whole") / "run"
    return train(CONFIG, out=out, threads=1, progress=False)


@pytest.fixture
def half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """A run that Ctrl-C stopped at step 25; its last saved state is of step 21."""
    record = session.Session.record

    def stop(self, step, scores):
        record(self, step, scores)
        if step == 25:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(session.Session, "record", stop)
        with pytest.raises(KeyboardInterrupt):
            train(CONFIG, out=tmp_path / "half", threads=1, progress=False)
    return RunFolder(tmp_path / "half")


def resume(folder: RunFolder, **options) -> Run:
    return train(CONFIG, out=folder.path, resume=True, progress=False, **options)


def test_ctrl_c_stops_and_resuming_ends_the_same(half: RunFolder, whole: Run):
    stopped = Run.open(half.path)
    assert stopped.status == "stopped"
    assert stopped.manifest["step"] == 25
    assert repr(stopped).startswith("Run(stopped, step 25 of 30")
    assert stopped.trajectory().steps[-1] == 25
    assert load_resume(half.resume_path).step == 21
    run = resume(half)
    assert run.status == "finished"
    assert tree(run.path) == tree(whole.path)
    assert [turn["step"] for turn in run.manifest["resumed"]] == [21]
    assert run.manifest["warnings"] == []


def test_a_finished_run_is_returned_at_once(whole: Run):
    before = {path: path.stat().st_mtime_ns for path in whole.path.rglob("*")}
    assert resume(RunFolder(whole.path)).status == "finished"
    assert {path: path.stat().st_mtime_ns for path in whole.path.rglob("*")} == before


def test_another_thread_count_is_warned_of(half: RunFolder, caplog: pytest.LogCaptureFixture):
    state = load_resume(half.resume_path)
    save_resume(half.resume_path, replace(state, threads=2))
    run = resume(half, threads=1)
    (warning,) = run.manifest["warnings"]
    assert warning.startswith("Resumed at step 21 with 1 threads after 2: the rest of the run dif")
    assert warning in caplog.text
    assert run.manifest["threads"] == 1


def test_the_thread_count_is_kept_unless_another_is_asked_for(half: RunFolder, whole: Run):
    former = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run = resume(half)
    finally:
        torch.set_num_threads(former)
    assert run.manifest["threads"] == 1
    assert tree(run.path) == tree(whole.path)


def test_without_a_state_the_run_starts_anew(half: RunFolder, whole: Run):
    half.resume_path.unlink()
    assert tree(resume(half, threads=1).path) == tree(whole.path)


def test_missing_random_state_is_an_error(half: RunFolder):
    data = torch.load(half.resume_path, weights_only=True)
    del data["batches"]["generator"]
    torch.save(data, half.resume_path)
    message = r"resume.pt' is not whole: the random state of the batches is missing. Delete it"
    with pytest.raises(StorageError, match=message):
        resume(half)


@pytest.mark.parametrize("field", ["step", "weights", "optimizer", "perfect"])
def test_every_other_field_is_needed_too(half: RunFolder, field: str):
    data = torch.load(half.resume_path, weights_only=True)
    del data[field]
    torch.save(data, half.resume_path)
    with pytest.raises(StorageError, match=f"resume.pt' is not whole: `{field}` is missing"):
        resume(half)


def test_a_state_that_was_altered_is_an_error(half: RunFolder):
    data = torch.load(half.resume_path, weights_only=True)
    data["optimizer"]["state"][0]["exp_avg"][0, 0] += 1e-7
    torch.save(data, half.resume_path)
    with pytest.raises(StorageError, match=r"resume.pt' is damaged: its content does not match"):
        resume(half)


def test_a_truncated_state_is_an_error(half: RunFolder):
    content = half.resume_path.read_bytes()
    half.resume_path.write_bytes(content[: len(content) // 2])
    with pytest.raises(StorageError, match=r"resume.pt' is damaged, truncated.*starts from step 0"):
        resume(half)


def test_the_state_of_another_run_is_an_error(half: RunFolder, whole: Run):
    state = load_resume(whole.path / "resume.pt")
    save_resume(half.resume_path, replace(state, run_id="0" * 16))
    with pytest.raises(StorageError, match=r"resume.pt' belongs to another run: its `run_id`"):
        resume(half)


def test_lost_files_before_the_state_are_an_error(half: RunFolder):
    path = half.checkpoint_path(10)
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(StorageError, match=r"step_0000010.safetensors' is missing"):
        resume(half)
    path.write_bytes(content)
    lines = half.curves_path.read_text().splitlines(keepends=True)
    half.curves_path.write_text("".join(lines[:3]))
    with pytest.raises(StorageError, match=r"curves.jsonl' is damaged: the line of step 3"):
        resume(half)
