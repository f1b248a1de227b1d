"""Without hooks and all at once, against hooks and one at a time."""

from __future__ import annotations

import pytest
import torch
from edited_transformer import small_model, small_tokens

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.interventions.ablate import Ablate, AblateOV, AblateQK
from interp_shortcuts.interventions.apply import applied
from interp_shortcuts.interventions.batched import read_logits_under
from interp_shortcuts.interventions.patch import Patch, read_activations

TOKENS, REFERENCE, SOURCE = small_tokens(9), small_tokens(6, seed=1), small_tokens(9, seed=2)
COMPONENTS = ("L0.H2", "L0.mlp", "L0.attn", "L1.H1", "L1.mlp")
RESIDUAL = ("L0.resid_pre", "L0.resid_post", "L1.resid_pre", "L1.resid_post")
SETS = (("L0.H0", "L1.H1"), ("L0.mlp", "L1.attn", "L1.mlp"))


def every_intervention(model):
    heads = [name for name in (*COMPONENTS, SETS[0]) if "mlp" not in name]
    given = read_activations(model, (*COMPONENTS, *RESIDUAL), SOURCE)
    return [
        *(Ablate(c) for c in (*COMPONENTS, *SETS)),
        *(Ablate(c, kind="mean", reference=REFERENCE) for c in (*COMPONENTS, *SETS)),
        *(
            Ablate(c, kind="mean", reference=REFERENCE, position="pooled")
            for c in (*COMPONENTS, *SETS)
        ),
        *(Ablate(c, kind="resample", reference=REFERENCE) for c in (*COMPONENTS, *SETS)),
        *(AblateQK(c) for c in heads),
        *(AblateQK(c, to="reference mean", reference=REFERENCE) for c in heads),
        *(AblateOV(c, REFERENCE) for c in heads),
        *(AblateOV(c, REFERENCE, position="pooled") for c in heads),
        *(Patch(c, SOURCE) for c in (*COMPONENTS, *RESIDUAL, *SETS)),
        *(Patch(c, SOURCE, -1) for c in (*COMPONENTS, *RESIDUAL, *SETS)),
        *(Patch(c, SOURCE, (0, 2)) for c in (*COMPONENTS, *RESIDUAL, *SETS)),
        *(Patch(c, given) for c in (*COMPONENTS, *RESIDUAL)),
        Patch("L0.H1", SOURCE[:1]),
        (),
        (AblateQK("L0.H0"), AblateOV("L0.H0", REFERENCE), Ablate("L1.H0")),
        (Patch("L1.resid_pre", SOURCE), Ablate("L1.H0", kind="resample", reference=REFERENCE)),
        (Ablate("L1.mlp"), Patch("L1.mlp", SOURCE, -1)),
        (Patch("L1.mlp", SOURCE, -1), Ablate("L1.mlp")),
    ]


@pytest.mark.parametrize(
    ("dtype", "changes", "position"),
    [
        (torch.float32, {}, -1),
        (torch.float64, {"normalization": "LN"}, 2),
        (torch.float64, {"normalization": "RMSPre", "attention": "bidirectional"}, -1),
    ],
    ids=["float32", "LN", "RMSPre bidirectional"],
)
def test_all_at_once_equals_hooks_one_at_a_time(dtype, changes, position):
    model = small_model(dtype=dtype, **changes)
    interventions = every_intervention(model)
    found = read_logits_under(model, TOKENS, interventions, position=position, chunk=4)
    for entry, logits in zip(interventions, found, strict=True):
        each = entry if isinstance(entry, tuple) else (entry,)
        with torch.no_grad(), applied(model, *each) as changed:
            expected = changed(TOKENS)[:, position]
        tolerance = 1e-9 if dtype == torch.float64 else 1e-5
        assert (logits - expected).abs().max() <= tolerance, each


@pytest.mark.parametrize(
    ("changes", "position"),
    [
        ({"normalization": "LN"}, slice(2, None)),
        ({}, slice(1, 3)),
        ({"n_layers": 1, "normalization": "RMS"}, slice(-1, None)),
        ({"attention": "bidirectional"}, slice(None)),
    ],
    ids=["LN, tail", "middle", "one position", "bidirectional, all"],
)
def test_several_positions_at_once_equal_hooks(changes, position):
    model = small_model(dtype=torch.float64, **changes)
    everything = every_intervention(model) if changes.get("n_layers") != 1 else [Ablate("L0.H1")]
    found = read_logits_under(model, TOKENS, everything, position=position, chunk=4)
    assert found.shape[2] == len(range(5)[position])
    for entry, logits in zip(everything, found, strict=True):
        each = entry if isinstance(entry, tuple) else (entry,)
        with torch.no_grad(), applied(model, *each) as changed:
            expected = changed(TOKENS)[:, position]
        assert (logits - expected).abs().max() <= 1e-9, each


def test_positions_that_are_no_run_are_refused():
    for position in (slice(3, 3), slice(0, 4, 2), slice(9, None)):
        with pytest.raises(InterventionError, match="`position` must be a run of the 5 positions"):
            read_logits_under(small_model(), TOKENS, [Ablate("L0.H0")], position=position)


def test_batching_and_chunks_change_nothing():
    model = small_model(dtype=torch.float64)
    interventions = every_intervention(model)
    whole = read_logits_under(model, TOKENS, interventions)
    found = read_logits_under(model, TOKENS, interventions, chunk=5)
    torch.testing.assert_close(found, whole, atol=1e-12, rtol=0)
    for index in range(0, len(interventions), 7):
        alone = read_logits_under(model, TOKENS, [interventions[index]])
        torch.testing.assert_close(alone[0], whole[index], atol=1e-12, rtol=0)


def test_half_precision_is_read_in_float32():
    model = small_model(dtype=torch.bfloat16)
    found = read_logits_under(model, TOKENS, [Ablate("L0.H1")])
    expected = read_logits_under(
        model.to(torch.float32, print_details=False), TOKENS, [Ablate("L0.H1")]
    )
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected)


def test_it_reads():
    model = small_model()
    seen = []
    model.hook_dict["blocks.0.attn.hook_z"].add_hook(lambda z, hook: seen.append(z))
    weights = {name: p.detach().clone() for name, p in model.named_parameters()}
    logits = read_logits_under(model, TOKENS, every_intervention(model))
    assert not logits.requires_grad
    assert not seen
    assert all(torch.equal(p, weights[name]) for name, p in model.named_parameters())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())


def test_no_examples_and_no_interventions():
    model = small_model()
    assert read_logits_under(model, TOKENS[:0], [Ablate("L0.H0")]).shape == (1, 0, 3)
    assert read_logits_under(model, TOKENS, []).shape == (0, 9, 3)


def test_errors():
    model = small_model()
    with pytest.raises(InterventionError, match=r"L2.mlp, which is not there"):
        read_logits_under(model, TOKENS, [Ablate("L2.mlp")])
    with pytest.raises(InterventionError, match=r"as many as the model is run on \(=9\).*has 6"):
        read_logits_under(model, TOKENS, [Patch("L0.H0", REFERENCE)])
    with pytest.raises(InterventionError, match=r"Donors must have the shape.*got \[9, 4\]"):
        read_logits_under(model, TOKENS, [Patch("L0.H0", SOURCE[:, 1:])])
    with pytest.raises(
        InterventionError, match=r"as many positions as the sequences \(=5\).*has 4"
    ):
        read_logits_under(model, TOKENS, [Ablate("L0.H0", kind="mean", reference=REFERENCE[:, 1:])])
    given = read_activations(model, "L0.H0", REFERENCE)
    with pytest.raises(InterventionError, match=r"as many as the tokens \(=9\); got 6"):
        read_logits_under(model, TOKENS, [Patch("L0.H0", given)])
    with pytest.raises(InterventionError, match=r"`position` must be in \[-5, 4\]; got 5"):
        read_logits_under(model, TOKENS, [Ablate("L0.H0")], position=5)
    with pytest.raises(InterventionError, match="`tokens` must be from 0 to `d_vocab` - 1"):
        read_logits_under(model, TOKENS + 5, [Ablate("L0.H0")])
