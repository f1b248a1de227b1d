"""The colours, dashes and markers of every picture: a style per component, split, outcome, cell.

Colours are those of Okabe and Ito, which stay apart for colour-blind readers; a marker (for
components) or a dash (for splits) says the same again. Splits on which the shortcut is right are
black and grey; those on which it is wrong are vermilion. Which lines are drawn is left to others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

OKABE_ITO = (
    "#0072B2",  # blue
    "#E69F00",  # orange
    "#009E73",  # green
    "#CC79A7",  # purple
    "#56B4E9",  # sky
    "#7A5195",  # violet (in place of yellow, which is too faint on white)
    "#8C6D31",  # olive (in place of black, which is taken by splits)
    "#882255",  # wine (in place of vermilion, for the same reason)
)
SYMBOLS = (
    *("circle", "square", "diamond", "triangle-up", "cross"),
    *("x", "triangle-down", "star", "pentagon"),
)

INK = "#1F2933"
MUTED = "#5F6B7A"
RULE = "#E3E7EC"
SHORTCUT_PHASE = "#E7EDF5"
HANDOVER_PHASE = "#FFF1CF"

ATTENTION_SCALE = ((0.0, "#F4F6F9"), (0.5, "#A9D0EA"), (1.0, "#3D9AD6"))
"""From no weight to all of it; dark text stays readable on every shade."""

RULE_SCALE = ((0.0, "#FFFFFF"), (0.5, "#8CCBB4"), (1.0, "#00563F"))
SHORTCUT_SCALE = ((0.0, "#FFFFFF"), (0.5, "#F2B27E"), (1.0, "#9A4200"))
DISRUPTION_SCALE = ((0.0, "#FFFFFF"), (0.5, "#AEB4D6"), (1.0, "#343A70"))
"""From 0 (white) to 1 (darkest); of green, brown and violet each."""
RANK_SCALE = ((0.0, "#FFFFFF"), (0.5, "#B9C4D6"), (1.0, "#5B7297"))
"""From the lowest rank (white) to the highest; dark text stays readable on every shade."""
GAP_SCALE = ((0.0, "#4C9BD0"), (0.5, "#FFFFFF"), (1.0, "#EFA24A"))
"""Blue for heroes (attribution too low), orange for bloats (too high), white for no gap."""
SPECTRUM_SCALE = ((0.0, "#FFFFFF"), (0.25, "#B7D9EC"), (0.6, "#3D8EC2"), (1.0, "#08305C"))
"""From nothing at a frequency (white) to all of it."""
UNDEFINED = "#C3CAD3"
"""Behind maps: what is undefined shows as grey, never as the white of zero."""


@dataclass(frozen=True)
class Style:
    """How one component or split is drawn, in every panel.

    Attributes:
        colour: Hex colour.
        dash: Plotly dash.
        symbol: Plotly marker symbol.
    """

    colour: str
    dash: str = "solid"
    symbol: str = "circle"

    def band(self, opacity: float = 0.14) -> str:
        """The fill of this style's interval."""
        red, green, blue = (int(self.colour[i : i + 2], 16) for i in (1, 3, 5))
        return f"rgba({red},{green},{blue},{opacity})"


_SPLITS = {
    "train": Style("#8A8F98", "dot", "circle-open"),
    "consistent": Style("#5F6B7A", "dash", "square-open"),
    "anti": Style("#E58A55", "dash", "diamond-open"),
    "validation": Style("#111827", "solid", "square"),
    "adversarial": Style("#D55E00", "solid", "diamond"),
}


def split_style(name: str) -> Style:
    """The style of a split; a split that the palette does not know is olive, with its own dash."""
    return _SPLITS.get(name, Style("#8C6D31", "longdashdot", "x"))


def component_style(index: int) -> Style:
    """The style of the component at `index` in the timeline's order of components.

    Args:
        index: Position among the components; colours repeat after eight, markers after nine,
            so that the pair is unique for 72 components.
    """
    return Style(OKABE_ITO[index % len(OKABE_ITO)], "solid", SYMBOLS[index % len(SYMBOLS)])


_OUTCOMES = {
    "generalised": Style("#00765A", symbol="circle"),
    "direct": Style("#56B48F", symbol="circle"),
    "transient": Style("#E69F00", symbol="diamond"),
    "partial": Style("#8C6D31", symbol="square"),
    "shortcut": Style("#D55E00", symbol="circle-open"),
    "memorised": Style("#882255", symbol="square-open"),
    "never learned": Style("#8A8F98", symbol="diamond-open"),
}


def outcome_style(name: str) -> Style:
    """The style of a run's outcome: filled markers for those that left the shortcut behind."""
    return _OUTCOMES.get(name, Style("#8A8F98", symbol="x-thin-open"))


_ROLES = {
    "hero": Style("#0072B2", "solid", "triangle-up"),
    "bloat": Style("#D55E00", "dash", "square"),
    "aligned": Style("#8A8F98", "dot", "circle"),
    "random": Style("#5F6B7A", "dot", "circle-open"),
}


def role_style(name: str) -> Style:
    """The style of a role: `hero`, `bloat`, `aligned`; of components drawn at random: `random`."""
    return _ROLES.get(name, Style("#8A8F98", "dot", "x-thin-open"))


_NETWORKS = {
    "full": Style("#111827", symbol="circle"),
    "G": Style("#00765A", symbol="diamond"),
    "R": Style("#D55E00", symbol="square"),
    "G joint": Style("#56B48F", symbol="diamond-open"),
    "R joint": Style("#E58A55", symbol="square-open"),
}
_ACTING_DASHES = {"trained": "solid", "quadratic": "dash", "relu": "dot", "reverse_relu": "dashdot"}


def network_style(network: str, acting: str = "trained") -> Style:
    """The style of a network or a part of it by frequency; the dash says how its neurons act."""
    found = _NETWORKS.get(network, Style("#8C6D31", symbol="x"))
    return Style(found.colour, _ACTING_DASHES.get(acting, "longdashdot"), found.symbol)


_GROUPS = {
    "train": Style("#8A8F98", "dot", "circle-open"),
    "clean": Style("#0072B2", "solid", "square"),
    "noisy": Style("#D55E00", "dash", "diamond"),
    "noisy_true": Style("#E69F00", "dashdot", "diamond-open"),
    "test": Style("#111827", "solid", "circle"),
}


def group_style(name: str) -> Style:
    """The style of a group of examples under label noise: all, clean and noisy ones, test."""
    return _GROUPS.get(name, Style("#8C6D31", "longdashdot", "x"))


_SCORES = {
    "ipr": Style("#0072B2", "solid", "circle"),
    "strength": Style("#CC79A7", "dash", "square"),
    "random": Style("#5F6B7A", "dot", "circle-open"),
}


def score_style(name: str) -> Style:
    """The style of what orders neurons: participation ratio, strength, or chance."""
    return _SCORES.get(name, Style("#8C6D31", "longdashdot", "x"))


_CELL_DASHES = ("solid", "dash", "dashdot", "dot")


def cell_style(index: int) -> Style:
    """The style of a cell of a sweep, or of cells that share a line; unique for 36 of them."""
    dash = _CELL_DASHES[index % len(_CELL_DASHES)]
    return Style(OKABE_ITO[index % len(OKABE_ITO)], dash, SYMBOLS[index % len(SYMBOLS)])


_WHOLE_SETS = {
    "all heads": Style("#111111", "solid", "circle-open"),
    "all mlps": Style("#6B7280", "solid", "square-open"),
}


def component_styles(names: Iterable[str]) -> dict[str, Style]:
    """The style of each component of a timeline: heads first, so that they keep their colours.

    MLPs follow the heads, other sets the MLPs. Sets have open markers; those of the whole model are
    black and grey.

    Args:
        names: All components of the timeline, e.g. `"L0.H1"`, `"L1.mlp"`, `"all heads"`.
    """
    order = sorted(dict.fromkeys(names), key=_kind)  # stable within a kind
    counted = [name for name in order if name not in _WHOLE_SETS]
    styles = {}
    for index, name in enumerate(counted):
        style = component_style(index)
        many = _kind(name) == _SET
        styles[name] = Style(style.colour, style.dash, f"{style.symbol}-open") if many else style
    return styles | {name: _WHOLE_SETS[name] for name in order if name in _WHOLE_SETS}


_SET = 2


def _kind(name: str) -> int:
    if re.fullmatch(r"L\d+\.H\d+", name):
        return 0
    return 1 if re.fullmatch(r"L\d+\.mlp", name) else _SET
