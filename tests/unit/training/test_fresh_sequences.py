"""Training on fresh sequences: the gradient, the goal, and runs that resume to the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from sequence_tasks import TINY_SEQUENCES, small_task
from tiny_runs import TINY, tree

from interp_shortcuts.errors import ConfigError, StorageError
from interp_shortcuts.models.build import build
from interp_shortcuts.models.tail import tail_logits
from interp_shortcuts.runs.run import Run
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.streams import torch_stream
from interp_shortcuts.tasks.sequence_config import SequenceConfig
from interp_shortcuts.tasks.sequences import SequenceReversal, SequenceTask
from interp_shortcuts.tasks.target_scores import exact_match, token_loss
from interp_shortcuts.tasks.task import ShortcutTask
from interp_shortcuts.training import loop
from interp_shortcuts.training.evaluation import evaluate
from interp_shortcuts.training.fresh_sequences import FreshSequences
from interp_shortcuts.training.loop import train
from interp_shortcuts.training.resume import load_resume
from interp_shortcuts.training.stacked import stacking_pays, train_stacked

CONFIG = TINY_SEQUENCES


def run_of(config, out: Path, **options) -> Run:
    return train(config, out=out, progress=False, **{"threads": 1, **options})


def objective(config=CONFIG):
    task = SequenceTask.from_config(config.task, seed=config.seed)
    model = build(config.spec, seed=config.seed)
    return FreshSequences(config, task, model), task, model


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of(CONFIG, tmp_path_factory.mktemp("whole") / "run")


# The gradient


def gradients(model) -> dict[str, torch.Tensor]:
    found = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return found


@pytest.mark.parametrize(
    "changes",
    [{}, {"positions": "learned"}, {"n_layers": 1}, {"normalization": "RMS", "n_heads": 4}],
)
def test_the_gradient_is_that_of_the_models_own_forward(changes):
    config = CONFIG.replace(**changes)
    goal, task, model = objective(config)
    generator = torch_stream(config.seed, "batches")
    for _ in range(3):
        loss, found = goal.backward(), gradients(model)
        batch = task.batch(16, generator)
        expected = token_loss(model(batch.tokens), batch.targets).mean()
        expected.backward()
        assert loss == pytest.approx(expected.item(), abs=1e-6)
        plain = gradients(model)
        assert found.keys() == plain.keys()
        assert ("pos_embed.W_pos" in found) == (config.model.positions == "learned")
        for name, gradient in found.items():
            torch.testing.assert_close(gradient, plain[name], atol=1e-5, rtol=1e-4)


def test_bfloat16_is_of_the_products_alone():
    exact, _, model = objective()
    exact_loss, expected = exact.backward(), gradients(model)
    half, _, model = objective(CONFIG.replace(precision="bfloat16"))
    half_loss, found = half.backward(), gradients(model)
    assert half_loss != exact_loss
    assert half_loss == pytest.approx(exact_loss, rel=2e-2)
    assert found["unembed.W_U"].dtype == torch.float32
    error = (found["unembed.W_U"] - expected["unembed.W_U"]).norm()
    assert 0 < error < 0.05 * expected["unembed.W_U"].norm()


def test_tail_logits_are_the_models_from_a_position_on():
    task = small_task()
    model = build(CONFIG.spec, seed=1)
    tokens = task.split("length_3").tokens
    expected = model(tokens)
    for first in (0, 4, 7, -1):
        found = tail_logits(model, tokens, first=first)
        torch.testing.assert_close(found, expected[:, first:], atol=1e-6, rtol=1e-5)


# Runs


def test_a_plain_loop_over_the_model_itself_gives_the_same(whole: Run):
    task = SequenceTask.from_config(CONFIG.task, seed=0)
    model, generator = build(CONFIG.spec, seed=0), torch_stream(0, "batches")
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(whole.last_step):
        batch = task.batch(16, generator)
        optimizer.zero_grad()
        token_loss(model(batch.tokens), batch.targets).mean().backward()
        optimizer.step()
    last = whole.trajectory().model(whole.last_step)
    for (name, ours), theirs in zip(last.named_parameters(), model.parameters(), strict=True):
        if not name.endswith("b_K"):  # of no effect: its gradient is rounding, which Adam scales up
            torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=1e-3, msg=name)


def test_the_curves_are_loss_and_exact_match_by_length(whole: Run):
    curves = whole.curves()
    assert curves["shortcut_rate"].isna().all()
    assert sorted(curves["split"].unique()) == [f"length_{n}" for n in (2, 3, 4, 5)]
    assert (curves["n"] == 20).all()
    model, task = whole.trajectory().model(30), whole.trajectory().task
    last = curves[curves["step"] == 30].set_index("split")
    for name, split in task.splits.items():
        logits = model(split.tokens)
        assert last.loc[name, "loss"] == pytest.approx(
            token_loss(logits, split.targets).mean().item(), abs=1e-5
        )
        assert last.loc[name, "accuracy"] == pytest.approx(
            exact_match(logits, split.targets).double().mean().item()
        )
    assert evaluate(model, task)["length_2"]["loss"] == last.loc["length_2", "loss"]


def test_the_run_opens_with_its_task(whole: Run):
    trajectory = Trajectory.open(whole.path)
    assert trajectory.task == SequenceTask.from_config(CONFIG.task, seed=0)
    assert trajectory.spec.positions == "none"
    assert not trajectory.model(30).W_pos.any()
    assert not trajectory.model(30).W_pos.requires_grad
    assert repr(whole).startswith("Run(finished, step 30 of 30, sequence sorting, seed 0")


@pytest.mark.parametrize("at", [3, 7, 10, 29])
def test_a_killed_run_resumes_to_the_same_bits(at: int, whole: Run, tmp_path: Path, monkeypatch):
    advance = loop.Trainee.advance

    def killed(self):
        if self.step == at:
            raise KeyboardInterrupt
        advance(self)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Trainee, "advance", killed)
        with pytest.raises(KeyboardInterrupt):
            run_of(CONFIG, tmp_path / "run")
    run = run_of(CONFIG, tmp_path / "run", resume=True)
    assert tree(run.path) == tree(whole.path)
    assert [turn["step"] for turn in run.manifest["resumed"]] == [at - at % 7]
    assert run.ood_accuracies == whole.ood_accuracies


def test_a_run_killed_after_its_last_step_still_says_how_it_ended(
    whole: Run, tmp_path: Path, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(FreshSequences, "outcome", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_of(CONFIG, tmp_path / "run")
    with pytest.raises(StorageError, match=r"has no `ood_length`: its status is 'failed'"):
        _ = Run.open(tmp_path / "run").ood_length
    run = run_of(CONFIG, tmp_path / "run", resume=True)
    assert run.ood_accuracies == whole.ood_accuracies
    assert tree(run.path) == tree(whole.path)


def test_evaluations_do_not_change_what_is_trained(whole: Run, tmp_path: Path):
    seldom = run_of(CONFIG.replace(every=15), tmp_path / "run")
    steps = (0, 15, 30)
    assert seldom.trajectory().steps == steps
    for step in steps:
        assert seldom.trajectory().hash(step) == whole.trajectory().hash(step)


def test_a_resume_state_without_its_random_state_is_refused(whole: Run):
    goal, *_ = objective()
    with pytest.raises(StorageError, match=r"\(`generator`\) is missing"):
        goal.restore({})
    goal.restore(load_resume(whole.path / "resume.pt").batches)
    generator = torch.Generator()
    generator.set_state(goal.state()["generator"])
    fresh, *_ = objective()
    assert not torch.equal(fresh.state()["generator"], generator.get_state())


# The goal


def scores(**accuracies: float) -> dict:
    return {name: {"loss": 1.0, "accuracy": value, "n": 20} for name, value in accuracies.items()}


def test_training_stops_at_the_mean_over_the_training_lengths():
    goal, *_ = objective()
    heldout = {"length_4": 0.0, "length_5": 0.0}
    assert goal.patience == 1
    assert goal.is_reached(scores(length_2=1.0, length_3=0.8, **heldout))
    assert not goal.is_reached(scores(length_2=0.99, length_3=0.8, length_4=1.0, length_5=1.0))
    never, *_ = objective(CONFIG.replace(stop_at=None))
    assert never.patience is None
    assert not never.is_reached(scores(length_2=1.0, length_3=1.0, **heldout))


def test_an_early_stop_ends_the_run_and_keeps_the_step(tmp_path: Path):
    run = run_of(CONFIG.replace(stop_at=0.05, checkpoint_stride=4), tmp_path / "run")
    curves = run.curves()
    trained = curves[curves["split"].isin(["length_2", "length_3"])]
    means = trained.groupby("step")["accuracy"].mean()
    assert (run.manifest["ended_by"], run.last_step) == ("early_stop", means.index[-1])
    assert run.last_step < 30
    assert means.iloc[-1] >= 0.05 > means.iloc[:-1].max()
    assert run.last_step in run.trajectory().steps


def test_the_held_out_length_follows_the_rule():
    goal, *_ = objective()
    found = goal.outcome(scores(length_2=1.0, length_3=1.0, length_4=0.8, length_5=0.3))
    assert found == {"ood_length": 5, "ood_accuracies": {"4": 0.8, "5": 0.3}}
    excluded = goal.outcome(scores(length_2=1.0, length_3=1.0, length_4=0.8, length_5=0.1))
    assert excluded["ood_length"] is None


def test_a_finished_run_knows_its_held_out_length(whole: Run):
    curves = whole.curves()
    last = curves[curves["step"] == 30].set_index("split")["accuracy"]
    assert whole.ood_accuracies == {4: last["length_4"], 5: last["length_5"]}
    assert whole.ood_length == whole.manifest["ood_length"]


def test_a_run_on_another_task_has_no_held_out_length(tmp_path: Path):
    run = run_of(TINY.replace(n_steps=1), tmp_path / "run")
    with pytest.raises(StorageError, match="its task has no held-out lengths"):
        _ = run.ood_length
    assert "ood_length" not in run.manifest


def test_no_held_out_length_is_possible(tmp_path: Path):
    run = run_of(CONFIG.replace(heldout_max=3, n_steps=1), tmp_path / "run")
    assert run.ood_length is None
    assert run.ood_accuracies == {}


# Misuse


def test_a_task_that_is_not_the_configs_is_refused(tmp_path: Path):
    task = SequenceTask.from_config(CONFIG.task, seed=0)
    assert run_of(CONFIG.replace(n_steps=1), tmp_path / "same", task=task).status == "finished"
    sizes = {"n_integers": 6, "train_min": 2, "train_max": 3, "heldout_max": 5}
    reversal = SequenceReversal(**sizes, n_per_length=20)
    with pytest.raises(
        ConfigError, match=r"differ in `operation` \(='sorting' in the config, 'rev"
    ):
        run_of(CONFIG, tmp_path / "other", task=reversal)
    shortcut = ShortcutTask.from_config(TINY.task, seed=0)
    with pytest.raises(
        ConfigError, match=r"differ in .*`operation` \(='sorting' in the config, None"
    ):
        run_of(CONFIG, tmp_path / "other", task=shortcut)
    with pytest.raises(
        ConfigError, match=r"differ in .*`operation` \(=None in the config, 'sorting"
    ):
        run_of(TINY, tmp_path / "other", task=task)


def test_seeds_of_a_sequence_task_are_not_stacked(tmp_path: Path):
    assert not stacking_pays(CONFIG)
    assert not stacking_pays(CONFIG, device="cuda")
    configs = [CONFIG.replace(seed=seed) for seed in (0, 1)]
    with pytest.raises(
        ConfigError, match=r"sequence task \(`operation` = 'sorting'\) draw batches"
    ):
        train_stacked(configs, outs=[tmp_path / "0", tmp_path / "1"])
    assert not (tmp_path / "0").exists()


def test_the_config_class_that_it_is_for():
    assert isinstance(CONFIG.task, SequenceConfig)
    with pytest.raises(ConfigError, match="must be that of a sequence task"):
        FreshSequences(TINY, small_task(), build(CONFIG.spec))
