"""`AttributionGap`: against hooks and autograd, also on models that no spec describes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from copying import SEQUENCES, CopyTask, random_model, wired_model

from interp_shortcuts.errors import ConfigError, MeasureError
from interp_shortcuts.interventions.ablate import Ablate
from interp_shortcuts.interventions.apply import applied
from interp_shortcuts.measures.attribution.model_gap import AttributionGap
from interp_shortcuts.models.lens import HookedTransformer, HookedTransformerConfig
from interp_shortcuts.models.random_state import kept_random_state
from interp_shortcuts.models.spec import ModelSpec
from interp_shortcuts.streams import torch_stream
from interp_shortcuts.tasks.target_scores import exact_match, token_loss


def reversal(generator):
    split = SEQUENCES.batch(12, generator, 4)
    return split.tokens, split.targets


def copying(generator):
    split = CopyTask().batch(12, generator)
    return split.tokens, split.targets


def own_model(**changes):
    """A model whose config no spec describes, every parameter random."""
    sizes = {"n_layers": 2, "n_heads": 2, "d_model": 8, "d_head": 4, "d_mlp": 12, "n_ctx": 20}
    with kept_random_state(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        config = HookedTransformerConfig(
            **sizes | {"d_vocab": SEQUENCES.n_tokens, "act_fn": "gelu", "device": "cpu"} | changes
        )
        model = HookedTransformer(config)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(0.6 * torch.randn(weight.shape, generator=generator))
    return model


OWN = {
    "rotary": {"positional_embedding_type": "rotary", "rotary_dim": 4},
    "attention only": {"attn_only": True},
    "gated": {"gated_mlp": True},
    "shared keys and values": {"n_key_value_heads": 1},
    "wide heads": {"d_head": 6},
    "parallel": {"parallel_attn_mlp": True},
}


@pytest.mark.parametrize("kind", OWN)
def test_a_model_that_no_spec_describes_against_hooks_and_autograd(kind):
    model = own_model(**OWN[kind])
    with pytest.raises(ConfigError):
        ModelSpec.from_model(model)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    gap = AttributionGap(model, batch=reversal, n_batches=2)
    table = gap.table().set_index("component")
    heads = [f"L{layer}.H{head}" for layer in (0, 1) for head in (0, 1)]
    mlps = [] if kind == "attention only" else ["L0.mlp", "L1.mlp"]
    assert sorted(table.index) == sorted(heads + mlps)
    # one head and one MLP, by hand
    stream = torch_stream(0, "attribution gap", "scores")
    batches = [reversal(stream) for _ in range(2)]
    tokens, targets = (torch.cat(each) for each in zip(*batches, strict=True))

    def without_head(z, hook):
        z = z.clone()
        z[:, :, 1] = 0
        return z

    edits = {"L1.H1": ("blocks.1.attn.hook_z", without_head)}
    if mlps:
        edits["L0.mlp"] = ("blocks.0.hook_mlp_out", lambda out, hook: 0 * out)
    with torch.no_grad():
        plain = token_loss(model(tokens), targets)
        for name, edit in edits.items():
            changed = token_loss(model.run_with_hooks(tokens, fwd_hooks=[edit]), targets)
            rise = float((changed - plain).mean())
            assert table.loss_rise_zero[name] == pytest.approx(rise, abs=1e-5)
            assert abs(rise) > 1e-3
    stream = torch_stream(0, "attribution gap", "gradients")
    norms = []
    for tokens, targets in [reversal(stream) for _ in range(2)]:
        model.zero_grad()
        token_loss(model(tokens), targets).mean().backward()
        weights = dict(model.named_parameters())
        shared = "blocks.1.attn._W_V"
        value = weights[shared].grad[0] if shared in weights else model.blocks[1].attn.W_V.grad[1]
        norms.append(float(value.square().mean().sqrt()))
    assert table["gradient_norm_W_V"]["L1.H1"] == pytest.approx(np.mean(norms), rel=1e-3)
    model.zero_grad()
    for name, weight in model.named_parameters():
        assert torch.equal(weight, before[name])
        assert weight.requires_grad


def test_hooks_and_the_plain_forward_agree_and_hooks_of_the_user_act():
    model = random_model()
    plain = AttributionGap(model, batch=reversal, n_batches=2).table()
    seen = []
    model.blocks[0].hook_resid_pre.add_hook(lambda value, hook: seen.append(1))
    hooked = AttributionGap(model, batch=reversal, n_batches=2).table()
    assert seen
    for column in plain.columns.drop(["component", "role"]):
        np.testing.assert_allclose(plain[column], hooked[column], atol=2e-5, err_msg=column)


def test_drops_are_those_of_ablation():
    model = random_model()
    gap = AttributionGap(model, batch=reversal, n_batches=2)
    table = gap.table().set_index("component")
    means = torch_stream(0, "attribution gap", "reference")
    scores = torch_stream(0, "attribution gap", "scores")
    reference = torch.cat([reversal(means)[0] for _ in range(2)])
    batches = [reversal(scores) for _ in range(2)]
    tokens, targets = (torch.cat(each) for each in zip(*batches, strict=True))
    with torch.no_grad():
        plain = model(tokens)
    assert gap.baseline == float(exact_match(plain, targets).double().mean())
    for name in table.index:
        run = Ablate(name, kind="mean", reference=reference)
        with torch.no_grad(), applied(model, run) as ablated:
            rise = token_loss(ablated(tokens), targets) - token_loss(plain, targets)
        assert table.loss_rise_mean[name] == pytest.approx(float(rise.mean()), abs=1e-5)
    assert table.n.unique().tolist() == [24]


def test_a_hero_and_a_bloat():
    """Head 0 carries all behind small weights; head 1 writes nothing behind large ones."""
    model = wired_model([(2.0, 2.0), (0.0, 40.0), (0.0, 1.0)])
    gap = AttributionGap(model, batch=copying, threshold=1.0)
    table = gap.table().set_index("component")
    assert gap.baseline == 1
    assert table.drop_mean.tolist() == [1, 0, 0, 0]
    assert table.drop_mean_low["L0.H0"] == 1
    assert table.role["L0.H1"] == "bloat"
    assert table.attribution_rank["L0.H1"] == 4
    assert table.importance_rank["L0.H0"] == 4
    assert table.delta["L0.H0"] == table.attribution_rank["L0.H0"] - 4
    assert -1 <= gap.rho <= 1
    assert gap.table()["role"].tolist() == list(gap.gap.roles(1.0))


def test_tokens_alone_are_asked_for_the_next_and_functions_of_ones_own_are_used():
    model = own_model(attn_only=True)
    stream = torch_stream(0, "attribution gap", "scores")
    tokens = torch.cat([reversal(stream)[0] for _ in range(2)])

    def last_logit(logits, targets):
        assert (targets[:, -1] == -100).all()
        return logits[:, -2].gather(1, targets[:, -2:-1])[:, 0]

    gap = AttributionGap(
        model,
        batch=lambda generator: reversal(generator)[0],
        score=last_logit,
        loss=lambda logits, targets: -last_logit(logits, targets),
        n_batches=2,
        ablation="zero",
        reading="W_V",
    )
    with torch.no_grad():
        expected = model(tokens)[:, -2].gather(1, tokens[:, -1:]).mean()
    assert gap.baseline == pytest.approx(float(expected), abs=1e-5)
    table = gap.table()
    np.testing.assert_allclose(table.drop_zero, table.loss_rise_zero, atol=1e-6)
    by_norm = table["gradient_norm_W_V"].rank().tolist()
    assert table.attribution_rank.tolist() == by_norm


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n_batches": 0}, r"`n_batches` \(=0\) must be at least 1"),
        ({"ablation": "avg"}, "`ablation` must be 'mean' or 'zero'; got 'avg'"),
        ({"reading": "W_Q"}, "`reading` must be 'W_V' or 'W_V\\+W_O'; got 'W_Q'"),
        ({"threshold": 0.0}, "`threshold` must be above 0"),
    ],
)
def test_fields_that_are_refused(fields, message):
    with pytest.raises(MeasureError, match=message):
        AttributionGap(random_model(), batch=reversal, **fields)


def test_functions_that_give_something_else():
    model, asked = random_model(), {"n_batches": 1}
    with pytest.raises(MeasureError, match="`score` must give one number for each of the 12"):
        AttributionGap(model, batch=reversal, score=lambda a, b: a.mean(), **asked).table()
    with pytest.raises(MeasureError, match="`loss` must give one number for each of the 12"):
        AttributionGap(model, batch=reversal, loss=lambda a, b: a, **asked).table()
    with pytest.raises(MeasureError, match="tokens and targets of the same shape"):
        AttributionGap(model, batch=lambda g: (reversal(g)[0], reversal(g)[1][:3]), **asked).table()
    lengths = iter([3, 4, 4])

    def growing(generator):
        return SEQUENCES.batch(2, generator, next(lengths)).tokens

    with pytest.raises(MeasureError, match=r"of one length; got lengths \[8, 10\]"):
        AttributionGap(model, batch=growing, **asked).table()
