from __future__ import annotations

import json
import logging
import re
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_runs import GOLDEN, TINY, tree

from interp_shortcuts.errors import ConfigError, StorageError
from interp_shortcuts.models.build import build, initial_weights
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.run import Run
from interp_shortcuts.runs.store import RunFolder
from interp_shortcuts.tasks.task import ShortcutTask
from interp_shortcuts.training.evaluation import evaluate
from interp_shortcuts.training.loop import train


def run_of(config: RunConfig, out: Path, **options) -> Run:
    return train(config, out=out, progress=False, **{"threads": 1, **options})


def losses(run: Run, split: str = "train") -> list[float]:
    curves = run.curves()
    return curves[curves["split"] == split]["loss"].tolist()


def global_state() -> list[object]:
    """Python's generator is looked at in `kill_launcher.py`."""
    return [
        torch.get_rng_state().tolist(),
        np.random.get_state()[1].tolist(),  # type: ignore[index] # noqa: NPY002
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        torch.utils.deterministic.fill_uninitialized_memory,  # type: ignore[attr-defined]
        torch.is_grad_enabled(),
        torch.get_default_dtype(),
    ]


# --- numbers -------------------------------------------------------------------------------


def test_the_same_seed_is_bit_identical_and_another_is_not(tmp_path: Path):
    config = TINY.replace(batch_size=24)
    first = run_of(config, tmp_path / "a")
    again = run_of(config, tmp_path / "b")
    other = run_of(config.replace(seed=1), tmp_path / "c")
    assert tree(first.path) == tree(again.path)
    assert losses(first) != losses(other)


def test_two_threads_are_bit_identical_too(tmp_path: Path):
    """Large enough that torch adds up the gradients of the tokens in parallel."""
    config = TINY.replace(n_integers=12, n_train=700, d_model=64, n_steps=3)
    runs = [run_of(config, tmp_path / name, threads=2) for name in "ab"]
    assert tree(runs[0].path) == tree(runs[1].path)
    assert runs[0].manifest["threads"] == 2


def test_the_stored_curve_is_reproduced(tmp_path: Path):
    """To make it again after a change that is meant to alter numbers: python tests/tiny_runs.py."""
    run = run_of(TINY, tmp_path / "run")
    stored = json.loads(GOLDEN.read_text())
    lines = [json.loads(line) for line in (run.path / "curves.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [line["step"] for line in stored]
    for line, wanted in zip(lines, stored, strict=True):
        for split in wanted.keys() - {"step"}:
            assert line[split] == pytest.approx(wanted[split], abs=1e-4), (line["step"], split)


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_a_plain_transformer_lens_loop_gives_the_same(tmp_path: Path, optimizer: str):
    changes = {"lr": 0.1, "momentum": 0.9} if optimizer == "sgd" else {"beta2": 0.99}
    config = TINY.replace(optimizer=optimizer, n_steps=20, n_layers=2, **changes)
    trajectory = run_of(config, tmp_path / "run").trajectory()

    model = build(config.spec)
    model.load_state_dict(initial_weights(config.spec, 0), strict=False)
    plain = {
        "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1, betas=(0.9, 0.99)),
        "adam": lambda p: torch.optim.Adam(p, lr=1e-2, weight_decay=0.1, betas=(0.9, 0.99)),
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1, momentum=0.9),
    }[optimizer](model.parameters())
    split = ShortcutTask.from_config(config.task, seed=0).split("train")
    for _ in range(20):
        logits = model(split.tokens, return_type="logits")[:, -1, :]
        loss = torch.nn.functional.cross_entropy(logits, split.labels)
        plain.zero_grad()
        loss.backward()
        plain.step()
    ours = trajectory.weights(20)
    for name, parameter in model.named_parameters():
        if not name.endswith("attn.b_K"):  # its gradient is zero but for rounding
            torch.testing.assert_close(ours[name], parameter.detach(), atol=1e-5, rtol=1e-4)


def test_the_loss_goes_down_and_the_shortcut_is_learned_first(tmp_path: Path):
    config = TINY.replace(n_steps=60, length=4, n_integers=8, n_train=512, ratio=0.9, d_model=32)
    run = run_of(config, tmp_path / "run")
    curve = losses(run)
    assert curve[-1] < 0.6 * curve[0]
    last = run.curves().query("step == 60").set_index("split")
    assert last.loc["validation", "accuracy"] > 0.9
    assert last.loc["adversarial", "accuracy"] < 0.2


def test_evaluation_counts_by_hand():
    task = ShortcutTask.from_config(TINY.task, seed=0)
    model = build(TINY.spec)
    with torch.no_grad():
        model.unembed.b_U[:] = torch.tensor([2.0, 0.0])  # always says class 0
    scores = evaluate(model, task)
    for name, split in task.splits.items():
        zeros = (split.labels == 0).double().mean().item()
        log_total = float(np.log(np.exp(2.0) + 1))
        assert scores[name]["n"] == split.n
        assert scores[name]["accuracy"] == pytest.approx(zeros)
        assert scores[name]["loss"] == pytest.approx(log_total - 2 * zeros, abs=1e-6)
        shortcut = (split.shortcut_labels == 0).double().mean().item()
        assert scores[name]["shortcut_rate"] == pytest.approx(shortcut)


def test_an_empty_split_has_no_numbers(tmp_path: Path):
    run = run_of(TINY.replace(ratio=1.0, n_adversarial=0), tmp_path / "run")
    rows = run.curves().query("split in ['anti', 'adversarial']")
    assert (rows["n"] == 0).all()
    assert rows[["loss", "accuracy", "shortcut_rate"]].isna().all(axis=None)


# --- the process around it -----------------------------------------------------------------


def test_global_state_is_as_it_was(tmp_path: Path):
    before = global_state()
    run_of(TINY.replace(batch_size=24, n_steps=1), tmp_path / "run", threads=2)
    assert global_state() == before
    with pytest.raises(StorageError):
        run_of(TINY, tmp_path / "run")
    assert global_state() == before


def test_global_seeds_do_not_matter(tmp_path: Path):
    runs = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        runs.append(run_of(TINY.replace(batch_size=24), tmp_path / str(seed)))
    assert tree(runs[0].path) == tree(runs[1].path)


def test_it_trains_outside_the_main_thread(tmp_path: Path):
    worker = threading.Thread(target=run_of, args=(TINY, tmp_path / "run"))
    worker.start()
    worker.join()
    assert Run.open(tmp_path / "run").status == "finished"


def test_the_bar_shows_both_accuracies(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    train(TINY, out=tmp_path / "run", threads=1)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.search(r"max_parity seed 0: 100%.*30/30.*validation=0.\d+, adversarial=0", shown.err)
    run_of(TINY, tmp_path / "quiet")
    quiet = capsys.readouterr()
    assert quiet.out + quiet.err == ""


# --- endings -------------------------------------------------------------------------------


def test_divergence_keeps_what_was_there(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    config = TINY.replace(optimizer="sgd", lr=1e6, n_steps=40)
    with caplog.at_level(logging.WARNING, logger="interp_shortcuts"):
        run = run_of(config, tmp_path / "run")
    assert run.status == "diverged"
    step = run.manifest["step"]
    assert 0 < step < 40
    assert f"at step {step}. Try a smaller `lr`" in run.manifest["warnings"][0]
    assert "Training diverged" in caplog.text
    assert len(run.trajectory()) == run.curves()["step"].nunique() >= 1
    assert np.isfinite(run.curves()["loss"]).all()
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="interp_shortcuts"):
        assert run_of(config, tmp_path / "run", resume=True).status == "diverged"
    assert "diverged earlier" in caplog.text


def test_early_stop(tmp_path: Path):
    config = TINY.replace(
        ratio=0.5, n_train=128, n_validation=30, n_adversarial=30, d_model=32, weight_decay=1.0
    ).replace(n_steps=600, every=10, early_stop=2, checkpoint_stride=3)
    run = run_of(config, tmp_path / "run")
    accuracy = run.curves().query("split == 'adversarial'")["accuracy"].tolist()
    assert run.manifest["ended_by"] == "early_stop", accuracy
    assert accuracy[-2:] == [1.0, 1.0]
    assert (1.0, 1.0) not in list(pairwise(accuracy[:-1]))
    assert run.status == "finished"
    assert run.manifest["step"] == run.trajectory().steps[-1] < 600


def test_a_failure_is_recorded_and_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    out = tmp_path / "run"

    def fail(model, task, chunked):
        raise OSError(f"no space left on {out}/curves.jsonl")

    with monkeypatch.context() as patch:
        patch.setattr("interp_shortcuts.training.classification.evaluate", fail)
        with pytest.raises(OSError, match="no space left"):
            run_of(TINY, out)
    run = Run.open(out)
    assert run.status == "failed"
    assert run.manifest["error"] == "OSError: no space left on ./curves.jsonl"
    assert run_of(TINY, out, resume=True).status == "finished"
    assert "error" not in run.manifest


# --- folders and tasks ---------------------------------------------------------------------


def test_a_folder_in_use_is_not_written_over(tmp_path: Path):
    run_of(TINY, tmp_path / "run")
    before = tree(tmp_path / "run")
    with pytest.raises(StorageError, match=r"run' already holds a run. Go on with it by `resume"):
        run_of(TINY, tmp_path / "run")
    with pytest.raises(StorageError, match=r"`optim.lr` \(=0.5, in the folder 0.01\)"):
        run_of(TINY.replace(lr=0.5), tmp_path / "run", resume=True)
    assert tree(tmp_path / "run") == before
    (tmp_path / "notes.txt").write_text("hello")
    for resume in (False, True):
        with pytest.raises(StorageError, match="is not empty and not a run folder"):
            run_of(TINY, tmp_path, resume=resume)


def test_an_empty_folder_and_one_of_another_name_will_do(tmp_path: Path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".DS_Store").touch()
    run_of(TINY, tmp_path / "run")
    assert run_of(TINY.replace(name="other"), tmp_path / "run", resume=True).status == "finished"


def last_parity(n_integers: int = 6, n_train: int = 64, **sizes) -> ShortcutTask:
    return ShortcutTask(
        lambda integers: integers.sum(axis=1) % 2,
        lambda integers: integers[:, -1] % 2,
        name="last_parity",
        length=3,
        n_integers=n_integers,
        n_train=n_train,
        n_validation=16,
        n_adversarial=16,
        **sizes,
    )


def test_a_task_of_your_own(tmp_path: Path):
    task = last_parity()
    config = TINY.replace(task=task.config)
    run = run_of(config, tmp_path / "run", task=task)
    assert run.manifest["task_fingerprint"] == task.fingerprint
    assert run.trajectory(task=task).task is task
    with pytest.raises(StorageError, match=r"cannot be built from .*config.json") as caught:
        _ = run.trajectory().task
    assert str(caught.value).count("`task=`") == 1
    assert "the command line knows the built-in rules alone" in str(caught.value)
    with pytest.raises(StorageError, match="The task is not the one that"):
        run.trajectory(task=last_parity(seed=5))


def test_a_task_that_the_config_does_not_describe_is_refused(tmp_path: Path):
    task = last_parity()
    config = TINY.replace(task=task.config)
    with pytest.raises(ConfigError, match=r"`n_train` \(=64 in the config, 70 in the task\)"):
        run_of(config, tmp_path / "run", task=last_parity(n_train=70))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("threads", [0, -1])
def test_impossible_threads(tmp_path: Path, threads: int):
    with pytest.raises(ConfigError, match=f"`threads` must be at least 1; got {threads}"):
        run_of(TINY, tmp_path / "run", threads=threads)


def test_a_folder_that_is_being_trained_in_is_left_alone(tmp_path: Path):
    from interp_shortcuts.runs.lock import training_lock

    RunFolder(tmp_path).write_config(TINY)
    with (
        training_lock(tmp_path),
        pytest.raises(StorageError, match="being trained in by another process"),
    ):
        run_of(TINY, tmp_path, resume=True)


@pytest.mark.usefixtures("unchecked")
def test_a_config_of_another_kind_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="`config` must be a RunConfig; got dict"):
        train({"a": 1}, out=tmp_path / "run")  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()
