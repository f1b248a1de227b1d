"""Seeds trained in step, against the same seeds trained alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from interp_shortcuts import presets
from interp_shortcuts.errors import ConfigError, StorageError
from interp_shortcuts.runs.run import Run
from interp_shortcuts.training import stacked
from interp_shortcuts.training.loop import train
from interp_shortcuts.training.stacked import stacking_pays, train_stacked


def configs(*seeds: int, **changes):
    fields = {"n_steps": 50, "every": 10, "resume_every": 10, "lr": 3e-3} | changes
    return [presets.smoke(seed, **fields) for seed in seeds]


def stack(configs, folder: Path, **options) -> list[Run]:
    outs = [folder / f"seed{config.seed}" for config in configs]
    found = train_stacked(configs, outs=outs, progress=False, threads=1, **options)
    runs = [run for run in found if isinstance(run, Run)]
    assert len(runs) == len(found), found
    return runs


def alone(config, folder: Path) -> Run:
    return train(config, out=folder, progress=False, threads=1)


def curve(run: Run, name: str = "loss") -> list[float]:
    return run.curves().query("split == 'train'")[name].tolist()


SETTINGS = [
    {"batch_size": 32, "every": 5},
    {"batch_size": 32, "every": 5, "optimizer": "sgd", "lr": 0.1, "grad_clip": 0.5},
    {"every": 10, "normalization": "LN", "attention": "bidirectional"},
    {"every": 10, "n_layers": 1, "n_heads": 4, "optimizer": "adam"},
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_stacked_seed_follows_the_seed_trained_alone(setting, tmp_path: Path):
    together = configs(0, 1, 2, **setting)
    for run, config in zip(stack(together, tmp_path), together, strict=True):
        expected = alone(config, tmp_path / f"alone{config.seed}")
        assert curve(run) == pytest.approx(curve(expected), abs=1e-5)
        assert run.status == expected.status == "finished"
        assert run.trajectory().steps == expected.trajectory().steps
        assert run.manifest["stacked"] == 3


def test_a_seed_does_not_depend_on_its_neighbours(tmp_path: Path):
    few = stack(configs(0, 1, batch_size=32), tmp_path / "few")
    many = stack(configs(5, 1, 3, 2, batch_size=32), tmp_path / "many")
    assert curve(few[1]) == pytest.approx(curve(many[1]), abs=1e-5)
    assert curve(few[0]) != pytest.approx(curve(many[0]), abs=1e-3)


def test_a_seed_that_diverges_leaves_the_others(tmp_path: Path, monkeypatch):
    backward = stacked.StackedLoss.backward
    calls = []

    def poisoned(self, batches):
        losses = backward(self, batches)
        calls.append(len(losses))
        return [float("nan"), *losses[1:]] if len(calls) == 7 else losses

    monkeypatch.setattr(stacked.StackedLoss, "backward", poisoned)
    found = train_stacked(
        configs(0, 1, 2), outs=[tmp_path / f"{k}" for k in range(3)], progress=False, threads=1
    )
    assert [run.status for run in found if isinstance(run, Run)] == [
        "diverged",
        "finished",
        "finished",
    ]
    assert calls == [3] * 7 + [2] * 43
    expected = alone(configs(1)[0], tmp_path / "alone")
    assert isinstance(found[1], Run)
    assert curve(found[1]) == pytest.approx(curve(expected), abs=1e-5)


def test_a_seed_that_fails_is_recorded_and_handed_back(tmp_path: Path, monkeypatch):
    def fail(self, step, scores):
        if self.config.seed == 1 and step == 20:
            raise OSError("no space left")
        return record(self, step, scores)

    record = stacked.Session.record
    monkeypatch.setattr(stacked.Session, "record", fail)
    outs = [tmp_path / f"{k}" for k in range(2)]
    found = train_stacked(configs(0, 1), outs=outs, progress=False, threads=1)
    assert isinstance(found[0], Run)
    assert found[0].status == "finished"
    assert isinstance(found[1], OSError)
    assert Run.open(outs[1]).status == "failed"


def test_interrupted_seeds_go_on_alone_or_together(tmp_path: Path, monkeypatch):
    backward = stacked.StackedLoss.backward
    calls = []

    def interrupted(self, batches):
        calls.append(len(batches))
        if len(calls) == 25:
            raise KeyboardInterrupt
        return backward(self, batches)

    together = configs(0, 1, 2, batch_size=32)
    with monkeypatch.context() as patch:
        patch.setattr(stacked.StackedLoss, "backward", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stack(together, tmp_path)
    assert [Run.open(tmp_path / f"seed{k}").status for k in range(3)] == ["stopped"] * 3
    train(together[2], out=tmp_path / "seed2", resume=True, progress=False, threads=1)
    for run, config in zip(stack(together, tmp_path, resume=True), together, strict=True):
        expected = alone(config, tmp_path / f"alone{config.seed}")
        assert run.status == "finished"
        assert curve(run) == pytest.approx(curve(expected), abs=1e-5)
    with pytest.raises(StorageError, match="already holds a run"):
        stack(together, tmp_path)


def test_seeds_that_lag_behind_catch_up(tmp_path: Path, monkeypatch):
    """One seed was saved later than the other when both were killed."""
    together = configs(0, 1, batch_size=32)
    backward = stacked.StackedLoss.backward
    with monkeypatch.context() as patch:
        calls = []

        def killed(self, batches):
            calls.append(1)
            if len(calls) == 35:
                raise KeyboardInterrupt
            return backward(self, batches)

        patch.setattr(stacked.StackedLoss, "backward", killed)
        for config in together[:1]:
            with pytest.raises(KeyboardInterrupt):
                stack([config], tmp_path)
    sizes = []

    def counted(self, batches):
        sizes.append(len(batches))
        return backward(self, batches)

    monkeypatch.setattr(stacked.StackedLoss, "backward", counted)
    for run, config in zip(stack(together, tmp_path, resume=True), together, strict=True):
        expected = alone(config, tmp_path / f"alone{config.seed}")
        assert curve(run) == pytest.approx(curve(expected), abs=1e-5)
    assert sizes == [1] * 30 + [2] * 20


def test_early_stop_is_each_seeds_own(tmp_path: Path, monkeypatch):
    perfect = {0: 3, 1: 2}

    def scores(model, task, chunked):
        seed = stops.index(model)
        perfect[seed] -= 1
        split = {"loss": 0.1, "accuracy": float(perfect[seed] <= 0), "shortcut_rate": 0.0, "n": 4}
        return {"train": split, "validation": split, "adversarial": split}

    stops: list = []
    start = stacked.Trainee.start.__func__

    def remembered(cls, *args, **kwargs):
        trainee = start(cls, *args, **kwargs)
        stops.append(trainee.model)
        return trainee

    monkeypatch.setattr(stacked.Trainee, "start", classmethod(remembered))
    monkeypatch.setattr("interp_shortcuts.training.classification.evaluate", scores)
    runs = stack(configs(0, 1, early_stop=1), tmp_path)
    assert [run.manifest["step"] for run in runs] == [20, 10]
    assert {run.manifest["ended_by"] for run in runs} == {"early_stop"}


def test_a_rule_says_when_stacking_pays():
    assert stacking_pays(presets.smoke(), device="cuda")
    assert not stacking_pays(presets.smoke())  # the full batch
    assert stacking_pays(presets.smoke(batch_size=64))
    assert not stacking_pays(presets.max_parity_demo(batch_size=1024))


def test_configs_must_be_seeds_of_one_setting(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    with pytest.raises(ConfigError, match=r"must differ in `seed` alone.*`optim.lr`"):
        train_stacked([*configs(0), *configs(1, lr=0.1)], outs=[one, two])
    with pytest.raises(ConfigError, match="two of them are the same run"):
        train_stacked(configs(0, 0), outs=[one, two])
    with pytest.raises(ConfigError, match="got 1 for 2"):
        train_stacked(configs(0, 1), outs=[one])
    assert not one.exists()


def test_weights_stay_the_models_own(tmp_path: Path):
    """A model in a stack can be read and hooked: its parameters are views that training moves."""
    config = configs(0, 1)
    trainees = [
        stacked.Trainee.start(c, stacked.the_task(c, None), None, device="cpu") for c in config
    ]
    loss = stacked.StackedLoss(trainees)
    tokens = trainees[1].task.split("train").tokens
    before = trainees[1].model(tokens)
    losses = loss.backward([None, None])
    for trainee, value in zip(trainees, losses, strict=True):
        trainee.update(value)
    with torch.no_grad():
        assert not torch.equal(trainees[1].model(tokens), before)
