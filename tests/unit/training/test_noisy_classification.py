"""Training under label noise: gradients, scores by hand, runs that resume to the same bits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from tiny_runs import TINY, tree
from torch import nn

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.any_model import build_any
from interp_shortcuts.models.spec import Architecture
from interp_shortcuts.presets import modular_noise_demo
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.run import Run
from interp_shortcuts.sweeps.seeds import train_seeds
from interp_shortcuts.tasks.described import task_of
from interp_shortcuts.tasks.modular import ModularArithmetic
from interp_shortcuts.tasks.modular_config import ModularConfig
from interp_shortcuts.training import loop, noisy_scores
from interp_shortcuts.training.evaluation import evaluate
from interp_shortcuts.training.gradient import MeanLoss
from interp_shortcuts.training.loop import train
from interp_shortcuts.training.noisy_classification import (
    ForwardLoss,
    NoisyClassification,
    gradient_of,
)
from interp_shortcuts.training.pair_gradient import PairLoss
from interp_shortcuts.training.stacked import stacking_pays, train_stacked

SCHEDULE = {"n_steps": 20, "dense_until": 0, "every": 5, "resume_every": 7}
CONFIG = modular_noise_demo(modulus=11, width=16, lr=0.01, name="", **SCHEDULE)
TRANSFORMER = RunConfig(
    task=ModularConfig(modulus=11), model=Architecture(n_layers=1, d_model=16, d_mlp=16)
).replace(**SCHEDULE, lr=0.01)
VARIANTS = {
    "two layers": CONFIG,
    "batches": CONFIG.replace(batch_size=24, grad_clip=0.5),
    "cosine": CONFIG.replace(lr_schedule="cosine", warmup_steps=5),
    "muon": CONFIG.replace(optimizer="muon", lr_schedule="linear"),
    "transformer": TRANSFORMER.replace(batch_size=24),
}


def run_of(config: RunConfig, out: Path, **options) -> Run:
    return train(config, out=out, progress=False, **{"threads": 1, **options})


def objective(config: RunConfig = CONFIG):
    task = task_of(config.task, seed=config.seed)
    model = build_any(config.spec, seed=config.seed)
    return NoisyClassification(config, task, model), task, model  # type: ignore[arg-type]


# --- the gradient ------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [CONFIG, TRANSFORMER], ids=["two layers", "transformer"])
@pytest.mark.parametrize("rows", [None, torch.tensor([3, 0, 9])])
def test_the_gradient_is_that_of_the_models_own_forward(config: RunConfig, rows):
    _, task, model = objective(config)
    fast = gradient_of(model, task)
    assert isinstance(fast, MeanLoss if config is TRANSFORMER else PairLoss)
    found = []
    for loss in (fast, ForwardLoss(_LastPosition(model), task)):
        value = loss.backward(rows)
        found.append(
            (value, {n: p.grad for n, p in model.named_parameters() if p.grad is not None})
        )
        model.zero_grad(set_to_none=True)
    (value, ours), (wanted, plain) = found
    assert value == pytest.approx(wanted, rel=1e-5)
    for name, gradient in plain.items():
        if gradient.any():
            apart = torch.linalg.norm(ours[name] - gradient)
            assert apart <= 2e-5 * torch.linalg.norm(gradient) + 1e-7, name


class _LastPosition(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        logits = self.model(inputs)
        return logits if logits.ndim == 2 else logits[:, -1]


def test_the_observed_labels_are_trained():
    """A step on the mean loss of the wrong labels raises the loss of the true ones."""
    trained, task, model = objective(CONFIG.replace(noise=1.0))
    train_split = task.split("train")
    assert trained.backward() == pytest.approx(
        task.loss(model(train_split.inputs), train_split.labels).mean().item(), rel=1e-6
    )


# --- scores ------------------------------------------------------------------------------------


def test_scores_by_hand():
    _, task, model = objective()
    scores = evaluate(model, task)
    assert list(scores) == ["train", "clean", "noisy", "noisy_true", "test"]
    for name, split in task.splits.items():
        logits = model(split.inputs).detach()
        right = sum(int(logits[row].argmax()) == split.labels[row] for row in range(split.n))
        assert scores[name]["n"] == split.n
        assert scores[name]["accuracy"] == pytest.approx(int(right) / split.n)
        chances = logits.softmax(-1)[torch.arange(split.n), split.labels]
        assert scores[name]["loss"] == pytest.approx(-chances.log().mean().item(), rel=1e-5)


def test_train_and_its_parts_take_one_forward_pass(monkeypatch: pytest.MonkeyPatch):
    _, task, model = objective()
    asked: list[int] = []
    answer = noisy_scores.answer_logits

    def counted(net, inputs):
        asked.append(len(inputs))
        return answer(net, inputs)

    monkeypatch.setattr(noisy_scores, "answer_logits", counted)
    evaluate(model, task)
    assert asked == [task.split("train").n, task.split("test").n]


def test_a_group_without_examples_has_no_numbers(tmp_path: Path):
    run = run_of(CONFIG.replace(noise=0.0), tmp_path / "run")
    curves = run.curves()
    noisy = curves[curves["split"] == "noisy"]
    assert noisy["accuracy"].isna().all()
    assert (noisy["n"] == 0).all()


def test_the_bar_shows_clean_noisy_and_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    train(CONFIG, out=tmp_path / "run", threads=1)
    shown = capsys.readouterr()
    wanted = r"modular_add seed 0: 100%.*20/20.*clean=\d.\d+, noisy=\d.\d+, test=\d"
    assert re.search(wanted, shown.err)


# --- runs --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("whole")
    return {name: run_of(config, folder / name) for name, config in VARIANTS.items()}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_run_is_stored_and_opens_with_its_task(name: str, whole: dict[str, Run]):
    run, config = whole[name], VARIANTS[name]
    assert run.status == "finished"
    trajectory = run.trajectory()
    assert trajectory.steps == (0, 5, 10, 15, 20)
    assert isinstance(trajectory.task, ModularArithmetic)
    last = evaluate(trajectory.model(20), trajectory.task)["train"]
    stored = run.curves().query("step == 20 and split == 'train'").iloc[0]
    assert stored["loss"] == pytest.approx(last["loss"], rel=1e-6)
    losses = run.curves().query("split == 'train'")["loss"]
    assert losses.iloc[-1] < losses.iloc[0]
    assert run.manifest["task"]["n_noisy"] == config.task.n_noisy


@pytest.mark.parametrize("at", [3, 13])
@pytest.mark.parametrize("name", VARIANTS)
def test_a_killed_run_resumes_to_the_same_bits(
    name: str, at: int, whole: dict[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    advance = loop.Trainee.advance

    def killed(self):
        if self.step == at:
            raise KeyboardInterrupt
        advance(self)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Trainee, "advance", killed)
        with pytest.raises(KeyboardInterrupt):
            run_of(VARIANTS[name], tmp_path / "run")
    run = run_of(VARIANTS[name], tmp_path / "run", resume=True)
    assert [turn["step"] for turn in run.manifest["resumed"]] == [at - at % 7]
    assert tree(run.path) == tree(whole[name].path)


def test_a_plain_loop_gives_the_same(whole: dict[str, Run]):
    _, task, model = objective()
    split, optim = task.split("train"), CONFIG.optim
    optimizer = torch.optim.AdamW(model.parameters(), lr=optim.lr, weight_decay=optim.weight_decay)
    for _ in range(20):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(split.inputs), split.labels).backward()
        optimizer.step()
    trained = whole["two layers"].trajectory().model(20)
    for name, value in model.named_parameters():
        assert torch.allclose(value, trained.get_parameter(name), atol=1e-4), name


def test_the_schedule_is_what_is_stepped_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    used: list[float] = []
    update = loop.Trainee.update

    def noted(self, loss):
        update(self, loss)
        used.append(self.optimizer.param_groups[-1]["lr"])

    monkeypatch.setattr(loop.Trainee, "update", noted)
    run_of(CONFIG.replace(lr_schedule="linear", warmup_steps=4, lr=0.4), tmp_path / "run")
    assert used[:5] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.4])
    assert used[-1] == pytest.approx(0.4 / 16)


def test_evaluations_do_not_change_what_is_trained(whole: dict[str, Run], tmp_path: Path):
    seldom = run_of(CONFIG.replace(every=20), tmp_path / "run").trajectory()
    often = whole["two layers"].trajectory()
    for name, value in often.model(20).named_parameters():
        assert torch.equal(value, seldom.model(20).get_parameter(name))


def test_seeds_are_trained_one_by_one(tmp_path: Path):
    configs = [CONFIG.replace(seed=seed) for seed in (0, 1)]
    results = train_seeds(configs, out=tmp_path, workers=1, threads=1, progress=False)
    assert [result.status for result in results] == ["finished", "finished"]
    assert not stacking_pays(CONFIG.replace(batch_size=8), device="cuda")
    with pytest.raises(ConfigError, match="must be of a shortcut task to be stacked"):
        train_stacked(configs, outs=[tmp_path / "a", tmp_path / "b"])


# --- refusals ----------------------------------------------------------------------------------


def test_a_task_that_is_not_the_configs_is_refused(tmp_path: Path):
    other = ModularArithmetic(modulus=11, noise=0.1)
    with pytest.raises(ConfigError, match=r"`noise` \(=0.4 in the config, 0.1 in the task\)"):
        run_of(CONFIG, tmp_path / "run", task=other)
    with pytest.raises(ConfigError, match=r"`modulus` \(=None in the config, 11 in the task\)"):
        run_of(TINY, tmp_path / "run", task=other)
    assert not (tmp_path / "run").exists()


def test_muon_is_refused_for_a_transformer_before_anything_is_written(tmp_path: Path):
    config = TRANSFORMER.replace(optimizer="muon")
    with pytest.raises(ConfigError, match="'muon' updates matrices"):
        run_of(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("changes", [{"early_stop": 3}, {"precision": "bfloat16"}])
def test_what_means_nothing_under_label_noise_is_refused(changes):
    name = next(iter(changes))
    with pytest.raises(ValueError, match=f"`{name}`"):
        CONFIG.replace(**changes)
    broken = CONFIG.model_copy(update=changes) if name == "early_stop" else None
    if broken is not None:
        with pytest.raises(ConfigError, match="`early_stop`"):
            NoisyClassification.check(broken, objective()[1])
