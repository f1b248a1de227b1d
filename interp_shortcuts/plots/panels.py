"""Which panels the timeline has, by name, and which of them are shown unless others are named.

A panel whose variable is missing or undefined everywhere keeps its place in the list as a reason,
so that nothing disappears in silence. What a panel shows is chosen in `behaviour_panels`,
`fingerprint_panels`, `causal_panels` and `gradient_panels`; how it is drawn, in `timeline`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import xarray as xr

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.plots import (
    behaviour_panels,
    causal_panels,
    fingerprint_panels,
    gradient_panels,
)
from interp_shortcuts.plots.panel import Choice, Panel, rule_name

PANELS: dict[str, Callable[[xr.Dataset, Choice], Panel]] = {
    "accuracy": behaviour_panels.accuracy_panel,
    "loss": behaviour_panels.loss_panel,
    "qk": fingerprint_panels.qk_panel,
    "ov_fraction": fingerprint_panels.ov_fraction_panel,
    "ov_spearman": fingerprint_panels.ov_spearman_panel,
    "attention_to_max": fingerprint_panels.attention_to_max_panel,
    "attention_to_first": fingerprint_panels.attention_to_first_panel,
    "rule_transfer": causal_panels.rule_transfer_panel,
    "shortcut_transfer": causal_panels.shortcut_transfer_panel,
    "ablation_adversarial": causal_panels.adversarial_ablation_panel,
    "ablation_validation": causal_panels.validation_ablation_panel,
    "gradient_amplification": gradient_panels.amplification_panel,
    "gradient_cosine": gradient_panels.cosine_panel,
    "gradient_share": gradient_panels.share_panel,
}

_STORY = (
    *("accuracy", "loss", "qk", "ov_fraction", "ov_spearman", "attention_to_max"),
    *("rule_transfer", "shortcut_transfer", "gradient_amplification", "gradient_cosine"),
)
ABLATION_PANELS = ("ablation_adversarial", "ablation_validation")
"""What components are needed for, for a figure of its own."""


def story_panels(data: xr.Dataset) -> tuple[str, ...]:
    """The panels shown unless others are named: behaviour, fingerprints, transfers, gradients.

    Attention to position 0 is among them for first-element rules, whose shortcut looks there.
    """
    if not rule_name(data).startswith("first"):
        return _STORY
    place = _STORY.index("qk") + 1
    return (*_STORY[:place], "attention_to_first", *_STORY[place:])


def select_panels(
    data: xr.Dataset, choice: Choice, names: Sequence[str] | None = None
) -> list[Panel]:
    """The panels of a timeline, in order.

    Args:
        data: A timeline's dataset.
        choice: Which feature, split and forms are shown.
        names: Keys of `PANELS`; None for those of `story_panels`.

    Raises:
        ConfigError: If a name is unknown.
    """
    names = story_panels(data) if names is None else names
    for name in names:
        if name not in PANELS:
            raise ConfigError(f"`panels` must be among {', '.join(PANELS)}; got {name!r}.")
    return [PANELS[name](data, choice) for name in names]
