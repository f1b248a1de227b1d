"""Checkpoints and trajectories of two-layer networks on pairs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from interp_shortcuts.errors import StorageError
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.models.two_layer import (
    TwoLayerNet,
    build_two_layer,
    initial_two_layer_weights,
    two_layer_weights,
)
from interp_shortcuts.models.two_layer_spec import TwoLayerSpec
from interp_shortcuts.runs.checkpoint import content_hash, load_checkpoint, save_checkpoint
from interp_shortcuts.runs.trajectory import Trajectory
from interp_shortcuts.tasks.digits import Digits
from interp_shortcuts.tasks.modular import ModularArithmetic

P = 7
SPEC = TwoLayerSpec(n_tokens=P, n_classes=P, width=5, activation="quadratic")
TIED = SPEC.model_copy(update={"tied": True})
TASK = ModularArithmetic(modulus=P, noise=0.25)


def weights(seed: int, spec: TwoLayerSpec = SPEC) -> dict[str, torch.Tensor]:
    return initial_two_layer_weights(spec, seed)


def trajectory(*, spec: TwoLayerSpec = SPEC) -> Trajectory:
    kept = [(step, weights(step, spec)) for step in (0, 10, 20)]
    return Trajectory.from_checkpoints(kept, spec=spec, task=TASK)


@pytest.mark.parametrize("spec", [SPEC, TIED])
def test_a_checkpoint_gives_back_what_was_written(spec: TwoLayerSpec, tmp_path: Path):
    path, written = tmp_path / "step_0000003.safetensors", weights(0, spec)
    digest = save_checkpoint(path, written, step=3, spec=spec)
    read = load_checkpoint(path, spec=spec)
    assert digest == content_hash(read) == content_hash(written)
    assert set(read) == ({"U", "V", "W", "mu"} if spec is SPEC else {"U", "W", "mu"})


def test_a_checkpoint_of_another_spec_or_kind_is_refused(tmp_path: Path):
    path = tmp_path / "step_0000003.safetensors"
    save_checkpoint(path, weights(0), step=3, spec=SPEC)
    others = (
        SPEC.model_copy(update={"activation": "relu"}),
        ModelSpec(d_vocab=P, d_vocab_out=P, n_ctx=2),
    )
    for other in others:
        with pytest.raises(StorageError, match="holds the weights of another model"):
            load_checkpoint(path, spec=other)


def test_weights_of_another_kind_are_not_written(tmp_path: Path):
    path, bad = tmp_path / "x.safetensors", {**weights(0), "mu": torch.full((P,), torch.nan)}
    with pytest.raises(StorageError, match=r"`mu` must be finite.*Nothing was written"):
        save_checkpoint(path, bad, step=0, spec=SPEC)
    with pytest.raises(StorageError, match="hold `V`, which the model does not have"):
        save_checkpoint(path, weights(0), step=0, spec=TIED)
    assert not path.exists()


def test_a_trajectory_gives_networks_at_its_steps():
    found = trajectory()
    net = found[10]
    assert isinstance(net, TwoLayerNet)
    assert net.spec == found.spec == SPEC
    assert content_hash(two_layer_weights(net)) == content_hash(weights(10)) == found.hash(10)
    assert found[10] is not net
    assert repr(found[:20]) == (
        "Trajectory(2 checkpoints, steps 0-10, 7 tokens, 5 quadratic neurons)"
    )


def test_one_network_is_refilled_when_iterating():
    seen = [(step, net, two_layer_weights(net)) for step, net in trajectory()]
    assert [step for step, _, _ in seen] == [0, 10, 20]
    assert len({id(net) for _, net, _ in seen}) == 1
    assert all(torch.equal(own["U"], weights(step)["U"]) for step, _, own in seen)


def test_the_identity_follows_the_spec_and_the_weights():
    assert trajectory().run_id == trajectory().run_id
    others = {trajectory()[:20].run_id, trajectory(spec=TIED).run_id, trajectory().run_id}
    relu = SPEC.model_copy(update={"activation": "relu"})
    assert len({*others, trajectory(spec=relu).run_id}) == 3  # a slice belongs to its run


def test_weights_alone_are_not_stacked():
    with pytest.raises(StorageError, match=r"`stacked` needs .* a transformer; .* TwoLayerSpec"):
        trajectory().stacked()


@pytest.mark.parametrize("spec", [SPEC, TIED])
def test_a_user_s_own_files_and_state_dicts_are_taken(spec: TwoLayerSpec, tmp_path: Path):
    """A tied network's state dict has its matrix under two names."""
    net = build_two_layer(spec, seed=3)
    torch.save(net.state_dict(), tmp_path / "one.pt")
    compiled = {f"_orig_mod.{name}": value for name, value in net.state_dict().items()}
    for own in (tmp_path / "one.pt", {"model": compiled}):
        found = Trajectory.from_checkpoints([(0, own)], spec=spec, task=TASK)
        assert content_hash(found.weights(0)) == content_hash(weights(3, spec))


def test_a_tied_matrix_under_two_names_must_be_one():
    state = dict(build_two_layer(TIED, seed=3).state_dict())
    state["V"] = state["V"] + 1
    with pytest.raises(StorageError, match="hold `V`, which the model does not have"):
        Trajectory.from_checkpoints([(0, state)], spec=TIED, task=TASK)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (ModularArithmetic(modulus=5), r"`n_tokens` \(=7\) must equal the task's `n_tokens` \(=5"),
        (Digits.bundled(), r"`n_tokens` \(=7\) must equal the task's `n_tokens` \(it has none"),
    ],
)
def test_a_task_of_another_size_is_refused(task: object, message: str):
    with pytest.raises(StorageError, match=rf"The spec does not fit the task: {message}"):
        Trajectory.from_checkpoints([(0, weights(0))], spec=SPEC, task=task)  # type: ignore[arg-type]
