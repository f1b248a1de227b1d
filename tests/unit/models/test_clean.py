"""Unablated passes that are kept: the same numbers as passes of their own, each made once."""

from __future__ import annotations

import pytest
import torch
from small_models import random_model, random_tokens, small_spec

from interp_shortcuts.models.clean import CleanPasses
from interp_shortcuts.models.folded import Folded
from interp_shortcuts.models.staged import StagedModel

SITES = ("resid_pre", "x", "scores", "pattern", "z", "resid_mid", "mlp_out", "resid_post")


def staged_model(**changes) -> StagedModel:
    return StagedModel.of(random_model(small_spec(**changes)), dtype=torch.float64)


@pytest.fixture
def passes(monkeypatch) -> list[int]:
    """The number of sequences of each pass."""
    made: list[int] = []
    original = StagedModel.embed

    def counted(self, tokens):
        made.append(len(tokens))
        return original(self, tokens)

    monkeypatch.setattr(StagedModel, "embed", counted)
    return made


@pytest.mark.parametrize("normalization", ["none", "LN"])
@pytest.mark.parametrize("keep", [2**20, 0])
def test_a_window_holds_each_sequence_s_own_activations(normalization, keep):
    staged = staged_model(normalization=normalization)
    tokens = random_tokens(9)[[0, 3, 3, 8, 1, 0]]
    clean = CleanPasses(staged, length=5, row=2, keep=keep)
    with torch.no_grad():
        clean.window(random_tokens(9)[2:5])
        window, own = clean.window(tokens), list(staged.stages(tokens, row=2))
        for layer, stage in enumerate(own):
            for site in SITES:
                expected = getattr(stage, site)
                torch.testing.assert_close(window.at(layer, site), expected, atol=1e-12, rtol=0)
        torch.testing.assert_close(clean.logits(tokens), staged.logits(own[-1].resid_post)[:, 0])


def test_each_sequence_is_passed_once(passes):
    clean = CleanPasses(staged_model(), length=5, row=4)
    tokens = torch.cat([random_tokens(6, seed=1)] * 2).unique(dim=0)
    with torch.no_grad():
        clean.window(torch.cat([tokens, tokens]))
        clean.window(tokens[:3])
        clean.logits(tokens)
        assert passes == [len(tokens)]
        new = tokens.clone()
        new[:, 0] = (new[:, 0] + 1) % 6
        new = new[[not (row == tokens).all(1).any() for row in new]]
        first = clean.logits(torch.cat([new, tokens, new]))
        assert torch.equal(clean.logits(new), first[: len(new)])
    assert passes == [len(tokens), len(new)]


def test_beyond_what_is_kept_passes_are_made_each_time(passes):
    staged = staged_model()
    tokens = random_tokens(30).unique(dim=0)
    numbers = sum(
        getattr(stage, site)[0].numel()
        for stage in staged.stages(tokens, row=4)
        for site in SITES[:-1]
        if site != "x"
    )
    clean = CleanPasses(staged, length=5, row=4, keep=10 * numbers)
    passes.clear()
    with torch.no_grad():
        clean.window(tokens[:8])
        clean.window(tokens[:12])  # 8 are kept, 4 more have no room
        window = clean.window(tokens[:12])
        expected = list(staged.stages(tokens[:12], row=4))[1].z
    assert passes == [8, 12, 12, 12]
    torch.testing.assert_close(window.at(1, "z"), expected)


def test_sequences_that_no_number_can_name_are_not_kept(passes):
    staged = staged_model(n_ctx=40)
    tokens = random_tokens(3, length=39)
    clean = CleanPasses(staged, length=40, row=39)
    with torch.no_grad():
        found = [clean.logits(tokens) for _ in range(2)]
        expected = staged.logits(list(staged.stages(tokens, row=39))[-1].resid_post)[:, 0]
    assert passes == [3, 3, 3]
    torch.testing.assert_close(found[1], expected)


@pytest.mark.parametrize("attention", ["causal", "bidirectional"])
@pytest.mark.parametrize("row", [4, 1])
def test_folded_attention_is_that_of_the_layer(attention, row):
    staged = staged_model(attention=attention)
    x = torch.randn(3, 7, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    folded = Folded.of(staged, 1, row=row)
    with torch.no_grad():
        pattern = staged.attend(1, x, row=row)
        expected = staged.write(1, staged.mix(1, pattern, x))[..., 0, :]
        torch.testing.assert_close(folded.attend(x), expected, atol=1e-12, rtol=0)


def test_folding_pays_for_few_heads_alone():
    assert Folded.pays(staged_model(n_heads=2))
    assert not Folded.pays(staged_model(n_heads=4))
