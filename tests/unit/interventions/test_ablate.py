"""Ablations against activations edited by hand, against zeroed weights, and against theory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from edited_transformer import edited_logits, recorded, small_model, small_tokens

from interp_shortcuts.errors import InterventionError
from interp_shortcuts.interventions.ablate import Ablate, AblateOV, AblateQK
from interp_shortcuts.interventions.apply import applied
from interp_shortcuts.tasks.split import Split
from interp_shortcuts.tasks.target_split import TargetSplit

SETS = [
    ("L0.H0",),
    ("L1.H2",),
    ("L0.mlp",),
    ("L1.mlp",),
    ("L1.attn",),
    ("L0.H1", "L1.H0", "L1.mlp"),
]
HEAD_SETS = [("L0.H0",), ("L1.H2",), ("L0.attn",), ("L0.H1", "L1.H0")]


def reference(n=9):
    tokens = small_tokens(n, seed=1)
    labels = torch.zeros(n, dtype=torch.long)
    return Split("validation", tokens, labels, labels)


def parts(names):
    """(layer, head or None) of each, whole attention spelled out."""
    for name in names:
        layer, part = int(name[1]), name.split(".")[1]
        if part == "attn":
            yield from ((layer, head) for head in range(3))
        else:
            yield layer, None if part == "mlp" else int(part[1])


def replacing(names, head_site, values, indices=None):
    """An edit that puts values[site, layer] (one example each, or shared) in place."""
    example = {}

    def edit(site, layer, array):
        chosen = None if indices is None else indices[example.setdefault((site, layer), 0)]
        if indices is not None:
            example[site, layer] += 1
        for at, head in parts(names):
            if at != layer or site != ("mlp_out" if head is None else head_site):
                continue
            value = values[site, layer] if chosen is None else values[site, layer][chosen]
            if head is None:
                array[:] = value
            else:
                array[head] = value[head]
        return array

    return edit


def ablated(model, tokens, *interventions):
    with torch.no_grad(), applied(model, *interventions) as changed:
        return changed(tokens)


def assert_equal(found, expected):
    tolerance = 1e-9 if found.dtype == torch.float64 else 1e-5
    np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=tolerance)


models = pytest.mark.parametrize(
    "model",
    [
        small_model(),
        small_model(dtype=torch.float64),
        small_model(normalization="LN", attention="bidirectional", dtype=torch.float64),
    ],
    ids=["float32", "float64", "LN bidirectional"],
)


@models
@pytest.mark.parametrize("names", SETS, ids="+".join)
def test_zero_mean_and_resample_equal_an_edit_by_hand(model, names):
    tokens, split = small_tokens(), reference()
    plain = recorded(model, split.tokens)

    zeros = {place: np.zeros(array.shape[1:]) for place, array in plain.items()}
    expected = edited_logits(model, tokens, replacing(names, "z", zeros))
    assert_equal(ablated(model, tokens, Ablate(names)), expected)

    means = {place: array.mean(0) for place, array in plain.items()}
    expected = edited_logits(model, tokens, replacing(names, "z", means))
    assert_equal(ablated(model, tokens, Ablate(names, kind="mean", reference=split)), expected)

    pooled = {
        place: np.broadcast_to(array.mean(-2, keepdims=True), array.shape)
        for place, array in means.items()
    }
    expected = edited_logits(model, tokens, replacing(names, "z", pooled))
    found = Ablate(names, kind="mean", reference=split, position="pooled")
    assert_equal(ablated(model, tokens, found), expected)

    drawn = Ablate(names, kind="resample", reference=split, seed=3)
    indices = drawn.donors(len(tokens), drawn.stream()).tolist()
    expected = edited_logits(model, tokens, replacing(names, "z", plain, indices))
    assert_equal(ablated(model, tokens, drawn), expected)


@models
@pytest.mark.parametrize("names", HEAD_SETS, ids="+".join)
def test_qk_and_ov_ablation_equal_an_edit_by_hand(model, names):
    tokens, split = small_tokens(), reference()
    means = {place: array.mean(0) for place, array in recorded(model, split.tokens).items()}

    expected = edited_logits(model, tokens, replacing(names, "pattern", means))
    found = AblateQK(names, to="reference mean", reference=split)
    assert_equal(ablated(model, tokens, found), expected)

    uniform = (
        np.ones((3, 5, 5)) if model.cfg.attention_dir != "causal" else np.tril(np.ones((3, 5, 5)))
    )
    uniform /= uniform.sum(-1, keepdims=True)
    both = {("pattern", layer): uniform for layer in (0, 1)}
    expected = edited_logits(model, tokens, replacing(names, "pattern", both))
    assert_equal(ablated(model, tokens, AblateQK(names)), expected)

    expected = edited_logits(model, tokens, replacing(names, "v", means))
    assert_equal(ablated(model, tokens, AblateOV(names, split)), expected)

    pooled = {
        place: np.broadcast_to(array.mean(-2, keepdims=True), array.shape)
        for place, array in means.items()
    }
    expected = edited_logits(model, tokens, replacing(names, "v", pooled))
    assert_equal(ablated(model, tokens, AblateOV(names, split, position="pooled")), expected)


def test_zeroing_a_head_is_zeroing_its_rows_of_the_output_matrix_alone():
    model, tokens = small_model(dtype=torch.float64), small_tokens()
    found = ablated(model, tokens, Ablate("L1.H1"))
    everything = ablated(model, tokens, Ablate("L1.attn"))
    with torch.no_grad():
        model.blocks[1].attn.W_O[1] = 0
        assert_equal(found, model(tokens))
        model.blocks[1].attn.W_O[:] = 0
        assert model.blocks[1].attn.b_O.abs().min() > 0  # it would show
        assert_equal(everything, model(tokens))
        model.blocks[1].attn.b_O[:] = 0
        assert (everything - model(tokens)).abs().max() > 1e-3


def test_zeroing_a_head_takes_what_its_bias_adds():
    model, tokens = small_model(dtype=torch.float64), small_tokens()
    with torch.no_grad():
        model.blocks[1].attn.W_V[1] = 0  # the head adds b_V W_O and nothing else
        assert (model(tokens) - ablated(model, tokens, Ablate("L1.H1"))).abs().max() > 1e-3


def test_one_head_is_not_all_heads():
    model, tokens = small_model(), small_tokens()
    one, whole = (ablated(model, tokens, Ablate(name)) for name in ("L0.H1", "L0.attn"))
    each = [ablated(model, tokens, Ablate(f"L0.H{head}")) for head in range(3)]
    assert (one - whole).abs().max() > 1e-2
    assert min((a - b).abs().max() for a, b in pairwise(each)) > 1e-2


def test_joint_is_simultaneous_and_in_sequence():
    model, tokens, split = small_model(dtype=torch.float64), small_tokens(), reference()
    names = ("L0.H0", "L0.mlp", "L1.H2")
    for kind in ("zero", "mean", "resample"):
        joint = ablated(model, tokens, Ablate(names, kind=kind, reference=split))
        single = [Ablate(name, kind=kind, reference=split) for name in names]
        assert torch.equal(joint, ablated(model, tokens, *single))
        with (
            torch.no_grad(),
            applied(model, single[0]) as once,
            applied(once, *single[1:]) as twice,
        ):
            assert torch.equal(joint, twice(tokens))


def test_the_draw_runs_on_from_batch_to_batch_and_starts_anew():
    model, tokens, split = small_model(), small_tokens(8), reference()
    drawn = Ablate(("L0.H0", "L1.mlp"), kind="resample", reference=split)
    whole = ablated(model, tokens, drawn)
    with torch.no_grad(), applied(model, drawn) as changed:
        chunks = torch.cat([changed(part) for part in tokens.split(3)])
    torch.testing.assert_close(chunks, whole, atol=1e-5, rtol=1e-5)
    assert torch.equal(whole, ablated(model, tokens, drawn))
    other = Ablate(("L0.H0", "L1.mlp"), kind="resample", reference=split, seed=1)
    assert (whole - ablated(model, tokens, other)).abs().max() > 1e-2


def test_uniform_attention_may_look_at_what_the_mask_allows():
    model, tokens = small_model(), small_tokens()
    kept = []
    with applied(model, AblateQK("L0.attn")) as changed:
        model.hook_dict["blocks.0.attn.hook_pattern"].add_hook(lambda p, hook: kept.append(p))
        changed(tokens)
    model.reset_hooks()
    allowed = torch.ones(5, 5).tril()
    expected = (allowed / allowed.sum(1, keepdim=True)).expand(7, 3, 5, 5)
    torch.testing.assert_close(kept[0], expected)


def test_a_description_says_what_the_mean_is_over():
    split = reference()
    assert Ablate("L0.H1", kind="mean", reference=split).describe() == {
        "intervention": "Ablate",
        "components": ["L0.H1"],
        "acts on": "heads: z, before W_O; MLPs: mlp_out, bias included",
        "kind": "mean",
        "reference": {"split": "validation", "n": 9, "sha": split.sha},
        "position": "per position",
    }
    said = Ablate("L0.mlp", kind="resample", reference=split.tokens, seed=4).describe()
    assert said["reference"] == {"split": "tokens", "n": 9, "sha": None}
    assert said["seed"] == 4
    assert "reference" not in Ablate("L0.H1").describe()
    assert AblateQK("L0.H1").describe()["to"] == "uniform"
    assert AblateOV("L0.H1", split).describe()["reference"]["n"] == 9


def test_errors():
    split = reference()
    with pytest.raises(
        InterventionError, match="`kind` must be 'zero', 'mean' or 'resample'; got 'avg'"
    ):
        Ablate("L0.H0", kind="avg")
    with pytest.raises(InterventionError, match="Ablating with `kind` 'mean' needs a `reference`"):
        Ablate("L0.H0", kind="mean")
    with pytest.raises(InterventionError, match="must be 'per position' for `kind` 'resample'"):
        Ablate("L0.H0", kind="resample", reference=split, position="pooled")
    with pytest.raises(InterventionError, match="`position` must be 'per position' or 'pooled'"):
        AblateOV("L0.H0", split, position="each")
    with pytest.raises(
        InterventionError, match="`to` must be 'uniform' or 'reference mean'; got 'x'"
    ):
        AblateQK("L0.H0", to="x")
    with pytest.raises(InterventionError, match="'reference mean' needs a `reference`"):
        AblateQK("L0.H0", to="reference mean")
    with pytest.raises(InterventionError, match=r"kind 'head', 'attention'; L0.mlp is 'mlp'"):
        AblateQK("L0.mlp")
    with pytest.raises(InterventionError, match="at least one component; got none"):
        Ablate(())
    with pytest.raises(InterventionError, match=r"must read like 'L0.H1'.*got 'L0.X'"):
        Ablate("L0.X")
    empty = split.take(torch.arange(0))
    with (
        pytest.raises(InterventionError, match="must have at least one example"),
        applied(small_model(), Ablate("L0.H0", kind="mean", reference=empty)),
    ):
        pass


@pytest.mark.usefixtures("unchecked")
def test_the_name_of_a_split_is_no_reference():
    message = r"`reference` must be a split .*got 'train'.*`task.split\('train'\)`"
    for intervene in (
        lambda: Ablate("L0.H0", "mean", reference="train"),  # type: ignore[arg-type]
        lambda: AblateQK("L0.H0", "reference mean", reference="train"),  # type: ignore[arg-type]
        lambda: AblateOV("L0.H0", reference="train"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InterventionError, match=message):
            intervene()


@pytest.mark.usefixtures("unchecked")
def test_a_component_must_be_text():
    for named in ((0, 1), 5, [(0, 1)], None):
        with pytest.raises(InterventionError, match=r"must be text such as 'L0.H1'"):
            Ablate(named)  # type: ignore[arg-type]


def test_a_split_of_sequences_is_a_reference_too():
    tokens = small_tokens(6, seed=1)
    split = TargetSplit("length_4", tokens, tokens)
    run = Ablate("L0.H1", kind="mean", reference=split)
    said = run.describe()["reference"]
    assert said == {"split": "length_4", "n": 6, "sha": split.sha}
    model = small_model()
    with torch.no_grad():
        with applied(model, run) as ablated:
            found = ablated(small_tokens(4))
        with applied(model, Ablate("L0.H1", kind="mean", reference=tokens)) as ablated:
            assert torch.equal(found, ablated(small_tokens(4)))


@pytest.mark.parametrize("name", ["L0.heads", "all heads", "all mlps"])
def test_a_set_that_measures_name_is_refused_with_what_to_write(name: str):
    with pytest.raises(InterventionError, match=r"given by their members: 'L0.attn'"):
        Ablate(name)
