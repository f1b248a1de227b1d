from __future__ import annotations

import json
import re
import shutil
import warnings
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tiny_runs import TINY

from interp_shortcuts.errors import IdenticalCheckpointsWarning, StorageError
from interp_shortcuts.models.build import build, initial_weights, weights_of
from interp_shortcuts.runs.run import Run
from interp_shortcuts.runs.schedule import kept_steps
from interp_shortcuts.runs.store import RunFolder
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.tasks.task import ShortcutTask

STEPS = (0, 1, 2, 3, 6, 10, 15, 20, 25, 30)
SPEC = TINY.spec
TASK = ShortcutTask.from_config(TINY.task, seed=TINY.seed)


def same(one, other) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


# --- reading -------------------------------------------------------------------------------


def test_a_run_is_read_by_step(tiny_run: Run):
    trajectory = Trajectory.open(tiny_run.path)
    assert trajectory.steps == kept_steps(TINY.schedule) == STEPS
    assert len(trajectory) == len(STEPS)
    assert 15 in trajectory
    assert 16 not in trajectory
    assert trajectory.spec == SPEC
    assert trajectory.config == TINY
    assert trajectory.run_id == TINY.run_id
    assert trajectory.path == tiny_run.path
    assert trajectory.task == TASK
    assert same(trajectory.weights(0), initial_weights(SPEC, 0))
    assert same(weights_of(trajectory[15]), trajectory.weights(15))
    assert same(weights_of(trajectory.model(15)), trajectory.weights(15))
    assert len(trajectory.hash(15)) == 64
    assert repr(trajectory).startswith("Trajectory(10 checkpoints, steps 0-30, 1 layers x 2 heads")


def test_slices_and_nearest_are_by_step(tiny_run: Run):
    trajectory = tiny_run.trajectory()
    assert trajectory[3:20].steps == (3, 6, 10, 15)
    assert trajectory[::10].steps == (0, 10, 20, 30)
    assert trajectory[5:].steps == (6, 10, 15, 20, 25, 30)
    assert trajectory[5:][:20:5].steps == (10, 15)
    assert trajectory[3:20].run_id == trajectory.run_id
    assert [trajectory.nearest(step) for step in (-5, 4, 8, 12, 13, 99)] == [0, 3, 6, 10, 15, 30]


def test_iterating_refills_one_model(tiny_run: Run):
    trajectory = tiny_run.trajectory()
    models = []
    for step, model in trajectory[:10]:
        models.append(model)
        assert same(weights_of(model), trajectory.weights(step))
    assert len(models) == 5
    assert len({id(model) for model in models}) == 1
    assert trajectory.model(0) is not trajectory.model(0)


def test_stacked(tiny_run: Run):
    trajectory = tiny_run.trajectory()
    assert trajectory.stacked().n_checkpoints == 10
    two = trajectory.stacked([0, 30])
    assert torch.equal(two.embed[1].float(), trajectory.weights(30)["embed.W_E"])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda t: t[16], "No checkpoint was kept at step 16; there are 10 from 0 to 30, the near"),
        (lambda t: t.weights(-1), "No checkpoint was kept at step -1"),
        (lambda t: t.hash(31), "No checkpoint was kept at step 31"),
        (lambda t: t[16:20], r"No checkpoint was kept in the steps \[16:20:1\]"),
        (lambda t: t[-3:], r"A slice is in steps.*got \[-3:None:None\]"),
        (lambda t: t[::-1], "A slice is in steps"),
    ],
)
def test_steps_that_were_not_kept(tiny_run: Run, ask, message: str):
    with pytest.raises(StorageError, match=message):
        ask(tiny_run.trajectory())


# --- damage --------------------------------------------------------------------------------


def test_a_missing_checkpoint_is_named(copy: RunFolder):
    path = copy.checkpoint_path(15)
    path.unlink()
    message = f"'{path}' is missing, though '{copy.manifest_path}' lists step 15. Restore it"
    with pytest.raises(StorageError, match=re.escape(message)):
        Trajectory.open(copy.path)


def test_a_gap_in_a_half_written_run_is_named(copy: RunFolder):
    manifest = copy.read_manifest()
    del manifest["checkpoints"]
    copy.write_manifest({**manifest, "status": "running"})
    for step in (20, 25, 30):
        copy.checkpoint_path(step).unlink()
    (copy.checkpoints_path / ".step_0000020.safetensors.77.tmp").write_bytes(b"half")
    assert Trajectory.open(copy.path).steps == STEPS[:-3]
    copy.checkpoint_path(6).unlink()
    with pytest.raises(StorageError, match=r"step_0000006.safetensors' is missing, though the sch"):
        Trajectory.open(copy.path)


def test_a_truncated_checkpoint_is_named_when_the_run_is_opened(copy: RunFolder):
    path = copy.checkpoint_path(10)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(StorageError, match=r"step_0000010.safetensors' is damaged or truncated"):
        Trajectory.open(copy.path)


def test_a_flipped_weight_is_named_when_it_is_read(copy: RunFolder):
    path = copy.checkpoint_path(10)
    content = bytearray(path.read_bytes())
    content[-50] ^= 1
    path.write_bytes(content)
    trajectory = Trajectory.open(copy.path)
    trajectory.weights(15)
    message = r"step_0000010.safetensors' is damaged: its content does not match.*Restore it"
    with pytest.raises(StorageError, match=message):
        trajectory.weights(10)


def test_a_swapped_file_is_found(copy: RunFolder, tmp_path: Path):
    first, second = copy.checkpoint_path(10), copy.checkpoint_path(15)
    kept = second.read_bytes()
    shutil.copy(first, second)
    with pytest.raises(StorageError, match=r"step_0000015.*holds the weights of step 10, not of"):
        Trajectory.open(copy.path)
    second.write_bytes(kept)
    from interp_shortcuts.runs.checkpoint import save_checkpoint

    save_checkpoint(second, initial_weights(SPEC, 9), step=15, spec=SPEC)
    with pytest.raises(StorageError, match=r"step_0000015.*is not the checkpoint that the run wro"):
        Trajectory.open(copy.path)


def test_an_extra_checkpoint_is_named(copy: RunFolder):
    from interp_shortcuts.runs.checkpoint import save_checkpoint

    path = copy.checkpoint_path(16)
    save_checkpoint(path, initial_weights(SPEC, 9), step=16, spec=SPEC)
    with pytest.raises(StorageError, match=r"step_0000016.safetensors' does not belong to the run"):
        Trajectory.open(copy.path)


def test_another_specs_config_is_found(copy: RunFolder):
    copy.write_config(TINY.replace(attention="bidirectional"))
    with pytest.raises(StorageError, match="holds the weights of another model"):
        Trajectory.open(copy.path)


@pytest.mark.parametrize("name", ["config.json", "manifest.json"])
def test_a_missing_file_is_named(copy: RunFolder, name: str):
    (copy.path / name).unlink()
    with pytest.raises(StorageError, match=f"{name}' is missing"):
        Trajectory.open(copy.path)


def test_an_unknown_field_in_the_config_is_named(copy: RunFolder):
    data = json.loads(copy.config_path.read_text())
    copy.config_path.write_text(json.dumps({**data, "flavour": 1}))
    with pytest.raises(StorageError, match=r"config.json' is not a valid config: `flavour`"):
        Trajectory.open(copy.path)


def test_a_run_without_checkpoints_and_an_empty_folder(copy: RunFolder, tmp_path: Path):
    manifest = copy.read_manifest()
    del manifest["checkpoints"]
    copy.write_manifest(manifest)
    for path in copy.checkpoint_files().values():
        path.unlink()
    with pytest.raises(StorageError, match=r"holds no checkpoint yet. Wait for the run, or resume"):
        Trajectory.open(copy.path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(StorageError, match="is empty"):
        Trajectory.open(tmp_path / "empty")


# --- tasks ---------------------------------------------------------------------------------


def test_another_task_is_refused(tiny_run: Run):
    assert tiny_run.trajectory(task=TASK).task is TASK
    other = ShortcutTask.from_config(TINY.task, seed=5)
    with pytest.raises(StorageError, match="The task is not the one that"):
        tiny_run.trajectory(task=other)
    larger = ShortcutTask.named("max_mod3")
    with pytest.raises(StorageError, match=r"`d_vocab` \(=7\) must be at least the task's"):
        tiny_run.trajectory(task=larger)


# --- checkpoints of your own ---------------------------------------------------------------


def states(*steps: int) -> list[tuple[int, dict[str, torch.Tensor]]]:
    return [(step, initial_weights(SPEC, step)) for step in steps]


def test_state_dicts_and_files_of_every_kind_give_the_same(tmp_path: Path):
    weights = initial_weights(SPEC, 4)
    full = build(SPEC, seed=4).state_dict()  # with masks and IGNORE
    save_file(weights, tmp_path / "a.safetensors")
    torch.save(full, tmp_path / "a.pt")
    torch.save({"model": full, "step": 3, "loss": 0.5}, tmp_path / "a.pth")
    wrapped = {f"module.{name}": value for name, value in full.items()}
    compiled = {f"_orig_mod.{name}": value.double() for name, value in weights.items()}
    sources = [
        weights,
        full,
        wrapped,
        compiled,
        tmp_path / "a.safetensors",
        str(tmp_path / "a.pt"),
        tmp_path / "a.pth",
    ]
    hashes = set()
    for source in sources:
        trajectory = Trajectory.from_checkpoints([(5, source)], spec=SPEC, task=TASK)
        assert same(trajectory.weights(5), weights)
        hashes.add(trajectory.hash(5))
    assert len(hashes) == 1


def test_own_checkpoints_have_no_config_but_an_identity(tiny_run: Run):
    files = [(step, tiny_run.trajectory()._origin.sources[step]) for step in (0, 10)]
    ours = Trajectory.from_checkpoints(files, spec=SPEC, task=TASK)
    assert ours.config is None
    assert ours.path is None
    assert ours.task is TASK
    assert ours.hash(10) == tiny_run.trajectory().hash(10)
    again = Trajectory.from_checkpoints(files, spec=SPEC, task=TASK)
    other = Trajectory.from_checkpoints(files[:1], spec=SPEC, task=TASK)
    assert ours.run_id == again.run_id != other.run_id
    assert ours[10:].run_id == ours.run_id


def test_state_dicts_are_copied():
    state = initial_weights(SPEC, 1)
    trajectory = Trajectory.from_checkpoints([(0, state)], spec=SPEC, task=TASK)
    state["embed.W_E"].zero_()
    trajectory.weights(0)["embed.W_E"].zero_()
    assert same(trajectory.weights(0), initial_weights(SPEC, 1))


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([], "`checkpoints` is empty"),
        ([0, 5, 5], "`checkpoints` has step 5 twice"),
        ([0, 5, 3], "must be in increasing order of the steps; 3 comes after 5. Sort them"),
        ([-1, 3], "A step must be 0 or more; got -1"),
    ],
)
def test_impossible_steps(steps: list[int], message: str):
    pairs = [(step, initial_weights(SPEC, 0)) for step in steps]
    with pytest.raises(StorageError, match=message):
        Trajectory.from_checkpoints(pairs, spec=SPEC, task=TASK)


def test_own_files_that_are_missing_or_of_another_kind(tmp_path: Path):
    with pytest.raises(StorageError, match=r"no.pt' \(step 3\) is missing"):
        Trajectory.from_checkpoints([(3, tmp_path / "no.pt")], spec=SPEC, task=TASK)

    def read(path: Path):
        Trajectory.from_checkpoints([(3, path)], spec=SPEC, task=TASK).weights(3)

    (tmp_path / "a.ckpt").touch()
    with pytest.raises(StorageError, match=r"a.ckpt' must end in .safetensors, .pt, .pth"):
        read(tmp_path / "a.ckpt")
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(StorageError, match=r"list.pt' must hold a state dict; got list"):
        read(tmp_path / "list.pt")
    torch.save({"weights": Path("x")}, tmp_path / "code.pt")
    with pytest.raises(StorageError, match=r"code.pt' holds more than tensors.*could run code"):
        read(tmp_path / "code.pt")
    torch.save(initial_weights(SPEC, 0), tmp_path / "cut.pt")
    whole = (tmp_path / "cut.pt").read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 10):
        (tmp_path / "cut.pt").write_bytes(whole[:length])
        with pytest.raises(StorageError, match=r"cut.pt' is damaged"):
            read(tmp_path / "cut.pt")


def test_state_dicts_that_are_not_of_the_spec():
    good = initial_weights(SPEC, 0)
    cases = [
        ({k: v for k, v in good.items() if k != "embed.W_E"}, "The weights lack `embed.W_E`"),
        ({**good, "extra": torch.zeros(1)}, "The weights hold `extra`"),
        ({**good, "unembed.b_U": torch.zeros(9)}, r"`unembed.b_U` must have shape"),
        ({**good, "unembed.b_U": torch.full((2,), float("nan"))}, "`unembed.b_U` must be finite"),
        ({**good, "step": 3}, "`step` must be a tensor; got int"),
    ]
    for state, message in cases:
        with pytest.raises(StorageError, match=f"The state dict: {message}"):
            Trajectory.from_checkpoints([(0, state)], spec=SPEC, task=TASK)


def test_identical_consecutive_checkpoints_warn_once():
    live = initial_weights(SPEC, 0)
    pairs = [(0, live), (5, live), (9, initial_weights(SPEC, 1))]
    with pytest.warns(IdenticalCheckpointsWarning, match="steps 0 and 5 hold the same weights"):
        trajectory = Trajectory.from_checkpoints(pairs, spec=SPEC, task=TASK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(trajectory)) == 3


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "malformed", [{0: "a"}, "a.safetensors", 7, ["a.safetensors"], [(0, 3)], [("a", 0)], [(0,)]]
)
def test_entries_that_are_no_pairs(malformed):
    with pytest.raises(
        StorageError, match=r"each entry must be \(step, file or state dict\); got .+\.$"
    ):
        Trajectory.from_checkpoints(malformed, spec=SPEC, task=TASK)


def test_a_pickled_model_is_refused_in_plain_text(tmp_path: Path):
    torch.save(torch.nn.Linear(2, 2), tmp_path / "model.pt")
    with pytest.raises(StorageError, match=r"holds more than tensors .*Linear") as caught:
        Trajectory.from_checkpoints([(0, tmp_path / "model.pt")], spec=SPEC, task=TASK).weights(0)
    assert "torch.save(model.state_dict(), path)" in str(caught.value)
    assert "\x1b" not in str(caught.value)
