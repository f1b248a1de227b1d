"""Greedy decoding, and that teacher forcing says the same about whether answers are right."""

from __future__ import annotations

import pytest
import torch
from sequence_tasks import model_for, small_task
from torch import Tensor

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.build import load_weights, weights_of
from interp_shortcuts.models.decoding import greedy_decode
from interp_shortcuts.models.hooks import hooked
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.streams import torch_stream
from interp_shortcuts.tasks.sequences import SequenceTask
from interp_shortcuts.tasks.target_scores import exact_match, token_loss
from interp_shortcuts.tasks.target_split import TargetSplit


@pytest.fixture(scope="module")
def trained() -> tuple[SequenceTask, HookedTransformer]:
    """A model that gets some answers right and others wrong."""
    task = small_task(n_per_length=30)
    model, generator = model_for(task, d_model=32), torch_stream(0, "test")
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(120):
        batch = task.batch(32, generator)
        optimizer.zero_grad()
        token_loss(model(batch.tokens), batch.targets).mean().backward()
        optimizer.step()
    return task, model


def decoded_right(model: HookedTransformer, task: SequenceTask, split: TargetSplit) -> Tensor:
    """Whether a decoded answer is the one that is due, its end included."""
    first = split.first_scored
    due = split.targets[:, first:]
    found = greedy_decode(
        model, task.prompts(split), max_new=due.shape[1], end_token=task.end_token
    )
    found = torch.nn.functional.pad(found, (0, due.shape[1] - found.shape[1]), value=-1)
    return (found == due).all(1)


def teacher_forced(model: HookedTransformer, split: TargetSplit) -> Tensor:
    with torch.no_grad():
        return exact_match(model(split.tokens), split.targets)


def test_it_equals_exact_match_under_teacher_forcing(trained):
    task, model = trained
    right = {name: teacher_forced(model, split) for name, split in task.splits.items()}
    for name, split in task.splits.items():
        assert torch.equal(decoded_right(model, task, split), right[name]), name
    pooled = torch.cat(list(right.values())).float().mean()
    assert 0.1 < pooled < 0.9  # so that both kinds of answer are compared


def test_it_does_so_for_a_model_that_was_not_trained():
    task = small_task()
    model = model_for(task, positions="learned", seed=3)
    for split in task.splits.values():
        assert torch.equal(decoded_right(model, task, split), teacher_forced(model, split))


@pytest.mark.parametrize(
    ("site", "edit"),
    [
        ("z", lambda z: z * torch.tensor([0.0, 1.0])[:, None]),  # one head, zero ablation
        ("mlp_out", lambda out: -2 * out),
        ("resid_pre", lambda resid: resid * torch.linspace(0, 1, 32)),
    ],
)
def test_it_does_so_with_an_intervention(trained, site, edit):
    task, model = trained
    split = task.split("length_3")
    before = teacher_forced(model, split)
    with hooked(model, [(site, 1, edit)]) as fired:
        right = teacher_forced(model, split)
        assert torch.equal(decoded_right(model, task, split), right)
    assert sum(fired.values()) > 1
    assert not torch.equal(before, right)


def test_batched_is_one_at_a_time(trained):
    task, model = trained
    prompts = task.prompts(task.split("length_4"))
    options = {"max_new": 5, "end_token": task.end_token}
    together = greedy_decode(model, prompts, **options)
    for prompt, answer in zip(prompts, together, strict=True):
        alone = greedy_decode(model, prompt[None], **options)[0]
        assert answer[: len(alone)].tolist() == alone.tolist()
        assert set(answer[len(alone) :].tolist()) <= {task.end_token}


def test_a_model_that_counts_up_is_decoded_until_the_end_token():
    """Embedding to unembedding alone: token t gives the largest logit to t + 1."""
    task = small_task()
    model = model_for(task, n_layers=1, normalization="none", d_model=16)
    weights = {name: torch.zeros_like(value) for name, value in weights_of(model).items()}
    weights["embed.W_E"][torch.arange(11), torch.arange(11)] = 1.0
    weights["unembed.W_U"][torch.arange(10), torch.arange(1, 11)] = 1.0
    load_weights(model, weights)
    prompts = torch.tensor([[1, 4], [1, 7], [1, 1]])
    found = greedy_decode(model, prompts, max_new=5, end_token=8)
    assert found.tolist() == [[5, 6, 7, 8, 8], [8, 8, 8, 8, 8], [2, 3, 4, 5, 6]]
    assert greedy_decode(model, prompts[:2], max_new=9, end_token=8).shape == (2, 4)


def test_the_model_is_left_as_it_was(trained):
    task, model = trained
    before = weights_of(model)
    model.train()
    greedy_decode(model, task.prompts(task.split("length_2")), max_new=2, end_token=0)
    assert model.training
    assert all(torch.equal(before[name], value) for name, value in weights_of(model).items())


def test_misuse_is_named(trained):
    task, model = trained
    prompts = task.prompts(task.split("length_5"))
    with pytest.raises(ConfigError, match=r"`max_new` must be at least 1; got 0"):
        greedy_decode(model, prompts, max_new=0, end_token=0)
    with pytest.raises(ConfigError, match=r"need 13 positions; the model's `n_ctx` is 12"):
        greedy_decode(model, prompts, max_new=7, end_token=0)
    with pytest.raises(ConfigError, match="at least one position; got 0"):
        greedy_decode(model, prompts[:, :0], max_new=1, end_token=0)
