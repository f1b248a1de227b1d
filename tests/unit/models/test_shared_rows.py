"""Sharing what sequences have in common, against the model's own forward."""

from __future__ import annotations

import pytest
import torch
from small_models import ACTIVATIONS, NORMALIZATIONS, random_model, small_spec

import interp_shortcuts.models.chunks as chunks
import interp_shortcuts.models.shared_rows as shared_rows
from interp_shortcuts.errors import InterventionError
from interp_shortcuts.models.chunks import ChunkedSequences
from interp_shortcuts.models.shared_rows import SharedRows, read_logits_shared, sharing_order
from interp_shortcuts.models.staged import StagedModel


def sequences(n: int = 40, length: int = 4, n_tokens: int = 3) -> torch.Tensor:
    """Random sequences over few tokens, so that beginnings recur; some are equal."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(n_tokens, (n, length), generator=generator)


def shared_logits(model, tokens, *, position=-1):
    cfg = model.cfg
    shared = SharedRows.of(
        tokens,
        causal=cfg.attention_dir == "causal",
        n_layers=cfg.n_layers,
        position=position,
    )
    return read_logits_shared(StagedModel.of(model), shared)


@pytest.mark.parametrize("widest", [0, 10**6])
@pytest.mark.parametrize("attention", ["causal", "bidirectional"])
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 1), (2, 2), (3, 4)])
def test_it_gives_the_models_logits_and_gradients(
    normalization, attention, n_layers, n_heads, widest, monkeypatch
):
    monkeypatch.setattr(shared_rows, "WIDEST_PRODUCT", widest)
    spec = small_spec(
        normalization=normalization, attention=attention, n_layers=n_layers, n_heads=n_heads
    )
    model = random_model(spec).to(torch.float64, print_details=False)
    tokens = sequences()
    for position in (-1, 1):
        expected = model(tokens)[:, position]
        found = shared_logits(model, tokens, position=position)
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-12)
        weights = torch.randn(expected.shape, dtype=torch.float64)
        parameters = list(model.parameters())
        left, right = (
            torch.autograd.grad(
                (logits * weights).sum(), parameters, allow_unused=True, materialize_grads=True
            )
            for logits in (found, expected)
        )
        for a, b in zip(left, right, strict=True):
            torch.testing.assert_close(a, b, atol=1e-10, rtol=1e-9)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation(activation):
    model = random_model(small_spec(activation=activation), size=0.3)
    tokens = sequences()
    with torch.no_grad():
        torch.testing.assert_close(
            shared_logits(model, tokens), model(tokens)[:, -1], atol=2e-6, rtol=1e-6
        )


def test_rows_are_the_distinct_beginnings():
    tokens = torch.tensor([[0, 1, 2], [0, 1, 0], [0, 2, 2], [1, 1, 2], [0, 1, 2]])
    shared = SharedRows.of(tokens, causal=True, n_layers=2)
    beginnings = {tuple(row[: end + 1]) for row in tokens.tolist() for end in range(3)}
    assert shared.n_rows == len(beginnings) == 9
    assert shared.n_pairs == 2 + 2 + 2
    whole = SharedRows.of(tokens, causal=False, n_layers=2)
    assert whole.n_rows == 4 * 3  # four distinct sequences, each at three positions
    assert SharedRows.of(tokens, causal=True, n_layers=1).n_rows == 4


def test_a_causal_model_never_sees_what_follows_the_read_position():
    tokens = torch.tensor([[0, 1, 2], [0, 1, 0]])
    assert SharedRows.of(tokens, causal=True, n_layers=2, position=1).n_rows == 2
    assert SharedRows.of(tokens, causal=False, n_layers=2, position=1).n_rows == 6


def test_neighbours_begin_alike():
    tokens = sequences(200)
    listed = tokens[sharing_order(tokens)].tolist()
    assert listed == sorted(tokens.tolist())


def test_sharing_must_pay():
    same = torch.zeros(64, 3, dtype=torch.int64)
    assert SharedRows.of(sequences(n=400), causal=True, n_layers=2).pays
    assert not SharedRows.of(torch.arange(64)[:, None], causal=True, n_layers=2).pays
    assert not SharedRows.of(same, causal=True, n_layers=2).n_rows > 3


def test_a_position_outside_the_sequence_is_refused():
    with pytest.raises(InterventionError, match=r"`position` must be in \[-4, 3\]; got 4"):
        SharedRows.of(sequences(), causal=True, n_layers=2, position=4)


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("at_once", [1, 28, 2**15])
def test_chunks_cover_every_sequence_once(share, at_once, monkeypatch):
    monkeypatch.setattr(chunks, "POSITIONS_AT_ONCE", at_once)
    model = random_model(small_spec()).to(torch.float64, print_details=False)
    tokens = sequences()
    cut = ChunkedSequences.of(tokens, model, share=share)
    assert len(cut.chunks) == -(-40 // max(1, at_once // 4))
    expected = model(tokens)[:, -1]
    seen = torch.cat([index for index, _ in cut.logits(model)])
    assert sorted(seen.tolist()) == list(range(40))
    for index, logits in cut.logits(model):
        torch.testing.assert_close(logits, expected[index], atol=1e-12, rtol=1e-12)


def test_no_sequences_make_no_chunks():
    empty = torch.empty(0, 4, dtype=torch.int64)
    cut = ChunkedSequences.of(empty, random_model(small_spec()))
    assert (cut.n, cut.chunks) == (0, ())
