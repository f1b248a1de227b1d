"""The hand-wired causal models do what their docstrings say, by hooks and without."""

from __future__ import annotations

import pytest
import torch
from handwired_causal import (
    LENGTH,
    all_tokens,
    gated_model,
    looking_and_moving_model,
    marked_tokens,
    redundant_heads_model,
)

from interp_shortcuts.interventions import Ablate, AblateOV, AblateQK, Patch, applied
from interp_shortcuts.interventions.batched import read_logits_under
from interp_shortcuts.models.forward import read_logits

layers = pytest.mark.parametrize("layer", [0, 1])


def under(model, tokens, *interventions):
    """By hooks; the way without hooks must agree."""
    with applied(model, *interventions) as changed:
        logits = read_logits(changed, tokens, chunk=len(tokens))
    torch.testing.assert_close(read_logits_under(model, tokens, [interventions])[0], logits)
    return logits


@layers
def test_redundant_heads(layer):
    model, tokens = redundant_heads_model(layer=layer), all_tokens()
    rule = tokens[:, 0] % 2
    plain = read_logits(model, tokens)
    torch.testing.assert_close(plain, torch.nn.functional.one_hot(rule, 2).float())
    for unharmed in (f"L{layer}.H0", f"L{layer}.H1", f"L{1 - layer}.attn", f"L{1 - layer}.mlp"):
        torch.testing.assert_close(under(model, tokens, Ablate(unharmed)), plain)
    for total in ((f"L{layer}.H0", f"L{layer}.H1"), f"L{layer}.attn", f"L{layer}.mlp"):
        assert under(model, tokens, Ablate(total)).abs().max() < 1e-6
    apart = (Ablate(f"L{layer}.H0"), Ablate(f"L{layer}.H1"))
    assert under(model, tokens, *apart).abs().max() < 1e-6


@layers
@pytest.mark.parametrize("uses", ["rule", "shortcut"])
def test_the_gate_by_ablation(uses, layer):
    model, tokens = gated_model(uses=uses, layer=layer), all_tokens()
    rule, shortcut = tokens[:, 0] % 2, tokens[:, LENGTH - 1] % 2
    plain = read_logits(model, tokens)
    assert torch.equal(plain.argmax(1), rule if uses == "rule" else shortcut)
    without_rule = under(model, tokens, Ablate(f"L{layer}.H1"))
    assert torch.equal(without_rule.argmax(1), shortcut)
    without_shortcut = under(model, tokens, Ablate(f"L{layer}.H0"))
    if uses == "rule":
        torch.testing.assert_close(without_shortcut, plain)
    else:
        assert without_shortcut.abs().max() < 1e-6
    assert under(model, tokens, Ablate(f"L{layer}.attn")).abs().max() < 1e-6


def transfers(model, name):
    """rule_transfer, shortcut_transfer and disruption of a component, over all pairs drawn."""
    tokens = all_tokens()
    rule, shortcut = tokens[:, 0] % 2, tokens[:, LENGTH - 1] % 2
    generator = torch.Generator().manual_seed(0)

    def moved(chosen, to):
        pool = torch.nonzero(rule == shortcut)[:, 0]
        target = pool[torch.randint(len(pool), (50,), generator=generator)]
        source = torch.stack([_draw(chosen(rule[t], shortcut[t]), generator) for t in target])
        logits = under(model, tokens[target], Patch(name, tokens[source]))
        return float((logits.argmax(1) == to(target, source)).float().mean())

    return (
        moved(lambda y, s: (rule != y) & (shortcut == s), lambda t, s: rule[s]),
        moved(lambda y, s: (rule == y) & (shortcut != s), lambda t, s: shortcut[s]),
        1 - moved(lambda y, s: (rule == y) & (shortcut == s), lambda t, s: rule[t]),
    )


def _draw(mask, generator):
    found = torch.nonzero(mask)[:, 0]
    return found[torch.randint(len(found), (), generator=generator)]


@layers
@pytest.mark.parametrize("uses", ["rule", "shortcut"])
def test_the_gate_by_patching(uses, layer):
    model = gated_model(uses=uses, layer=layer)
    expected = (1.0, 0.0, 0.0) if uses == "rule" else (0.0, 1.0, 0.0)
    carrier, idle = (1, 0) if uses == "rule" else (0, 1)
    for name in (f"L{layer}.H{carrier}", f"L{layer}.attn", f"L{layer}.mlp", "L1.resid_post"):
        assert transfers(model, name) == expected, name
    for name in (f"L{layer}.H{idle}", f"L{1 - layer}.attn", f"L{1 - layer}.mlp"):
        assert transfers(model, name) == (0.0, 0.0, 0.0), name


@layers
def test_looking_and_moving_come_apart(layer):
    model, tokens = looking_and_moving_model(layer=layer), marked_tokens()
    first = tokens[:, 0] % 2
    place = (tokens == 5).int().argmax(1) % 2
    content, where = (torch.nn.functional.one_hot(label, 2).float() for label in (first, place))
    torch.testing.assert_close(read_logits(model, tokens), content + where)

    moving, looking = f"L{layer}.H0", f"L{layer}.H1"
    pattern = {"to": "reference mean", "reference": tokens}
    torch.testing.assert_close(under(model, tokens, AblateQK(moving, **pattern)), content + where)
    torch.testing.assert_close(under(model, tokens, AblateOV(looking, tokens)), content + where)

    same_for_all = under(model, tokens, AblateOV(moving, tokens)) - where
    torch.testing.assert_close(same_for_all, content.mean(0).expand_as(content))
    for kind in (pattern, {}):
        same_for_all = under(model, tokens, AblateQK(looking, **kind)) - content
        assert same_for_all.std(0).max() < 1e-6
