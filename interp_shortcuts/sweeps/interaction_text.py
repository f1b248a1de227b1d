"""An interaction in plain words: what changed where, by how much, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interp_shortcuts.sweeps.settings import shown_value

if TYPE_CHECKING:
    from interp_shortcuts.sweeps.interaction import Interaction

_LIKELY = 0.05


def interaction_sentence(found: Interaction) -> str:
    """The result in words; without numbers, the reason why there are none."""
    if found.reason:
        text = (
            f"Whether the effect of {found.effect} depends on {found.between} cannot be told yet: "
            f"{found.reason}."
        )
    else:
        low, high = shown_value(found.cells[0].effect), shown_value(found.cells[1].effect)
        text = (
            f"Going from {found.effect} {low} to {high} changed the share of seeds that "
            f"generalise by {_part(found, 1)}, and by {_part(found, 0)}: a difference of "
            f"{_signed(found.difference)} (95% interval {_number(found.low)} to "
            f"{_number(found.high)}; bootstrap over seeds {_number(found.bootstrap_low)} to "
            f"{_number(found.bootstrap_high)}; exact permutation p {p_value(found.p_value)}). "
            f"{_reading(found)}"
        )
    if found.setting:
        text = f"With {found.setting}, {text[0].lower()}{text[1:]}"
    return text + _rest(found)


def p_value(value: float) -> str:
    """`= 0.012`, or `< 0.0001`."""
    return "< 0.0001" if value < 1e-4 else f"= {value:.2g}"


def _part(found: Interaction, index: int) -> str:
    before, after = found.cells[2 * index : 2 * index + 2]
    return (
        f"{_signed(found.differences[index])} with {found.between} {shown_value(before.between)} "
        f"({before.generalised} of {before.n} to {after.generalised} of {after.n})"
    )


def _reading(found: Interaction) -> str:
    if found.p_value >= _LIKELY:
        return f"The runs do not show that the effect depends on {found.between}."
    one, other = found.differences
    opposite = " and goes in opposite directions" if one * other < 0 else ""
    return f"The effect depends on {found.between}{opposite}."


def _rest(found: Interaction) -> str:
    out = {name: count for name, count in found.not_counted.items() if count}
    if not out:
        return ""
    total = sum(out.values())
    verb = "is" if total == 1 else "are"
    listed = ", ".join(f"{count} {name}" for name, count in out.items())
    return f" Of these runs {total} {verb} in no number: {listed}."


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + _number(value)


def _number(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")
