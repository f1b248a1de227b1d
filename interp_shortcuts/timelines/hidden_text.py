"""A run under label noise in sentences, with the numbers they rest on.

Nothing is computed here. What the words mean is said on the pages that show them.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from interp_shortcuts.timelines.hidden_progress import HiddenProgress
from interp_shortcuts.timelines.reached import Reached
from interp_shortcuts.timelines.sentence import accuracy_text
from interp_shortcuts.timelines.words import capital, count_of, listed

WITH = {"trained": "the activation of the training"}
"""How activations are spoken of; others by their name."""


def hidden_sentences(
    found: HiddenProgress,
    spectra: pd.DataFrame | None = None,
    partition: pd.DataFrame | None = None,
) -> list[str]:
    """What one run shows: when network G generalises, what is fitted first, who keeps the noise.

    Args:
        found: The events of the run.
        spectra: Its neurons, as `hidden_tables.spectra_table` gives them.
        partition: Its partitions by neuron, as `hidden_tables.partition_table` gives them.
    """
    if not found.steps and found.reason:
        return [f"Nothing can be said of this run: no group was measured, and {found.reason}."]
    return [
        *_hidden(found),
        *_fitted(found),
        *_finals(found),
        *([] if spectra is None else _neurons(spectra)),
        *([] if partition is None else _partition(found, partition)),
    ]


def with_activation(acting: str) -> str:
    """`with the activation of the training`, `with the quadratic activation`."""
    named = acting.replace("_", " ")
    return f"with {WITH.get(acting, f'the {named} activation')}"


def _hidden(found: HiddenProgress) -> list[str]:
    """Network G and the network itself; each activation that was asked is spoken of."""
    own = f"The network itself {_when(found.full, found.threshold)}."
    if found.reason:
        return [own, f"Nothing is known of network G: {found.reason}."]
    sentences = []
    for acting in _foremost_first(found):
        event = found.hidden[acting]
        text = f"network G {with_activation(acting)} {_when(event, found.threshold)}"
        lead = found.lead(acting)
        if lead.steps is not None:
            text += f", {_ahead(lead.steps)}"
        elif lead.at_least:
            text += f", at least {count_of(lead.at_least, 'step')} before the network itself"
        sentences.append(f"{capital(text)}.")
    return [*sentences[:1], own, *sentences[1:]]


def _foremost_first(found: HiddenProgress) -> list[str]:
    """The activations of network G: the one that is there first, then by final test accuracy."""
    return sorted(
        found.hidden, key=lambda name: (name != found.best, -found.final("G", "test", name))
    )


def _when(event: Reached, threshold: float) -> str:
    if event.step is None:
        why = event.reason.removeprefix(f"it never was {threshold:g}: ").removeprefix("it ")
        return f"never reaches a test accuracy of {threshold:g} for good ({why})"
    last = ", the last one" if event.at_last else ""
    between = f" (measured before it: step {event.before:,})" if event.before is not None else ""
    return f"has a test accuracy of at least {threshold:g} from step {event.step:,}{last}{between}"


def _ahead(steps: int) -> str:
    if steps == 0:
        return "at the same step as the network itself"
    side = "before" if steps > 0 else "after"
    return f"{count_of(abs(steps), 'step')} {side} the network itself"


def _fitted(found: HiddenProgress) -> list[str]:
    first = found.fitted_first()
    if first.which is None:
        return [f"Which labels are fitted first cannot be said: {first.reason}."]
    verb = {
        "noisy": "Noisy labels are fitted first",
        "clean": "Clean labels are fitted first",
        "together": "Clean and noisy labels are fitted at the same step",
    }[first.which]
    order = ("clean", "noisy") if first.which == "clean" else ("noisy", "clean")
    levels = []
    for level in found.levels:
        parts = [f"of the {label} {_by(found.fitted[label, level])}" for label in order]
        levels.append(f"{100 * level:g}% {listed(parts)}")
    return [f"{verb}: {'; '.join(levels)}."]


def _by(event: Reached) -> str:
    return "never" if event.step is None else f"by step {event.step:,}"


def _finals(found: HiddenProgress) -> list[str]:
    values = {label: found.final("full", label) for label in ("clean", "noisy", "noisy_true")}
    if np.isnan(values["clean"]):
        return []
    text = f"At step {found.steps[-1]:,} the network fits {accuracy_text(values['clean'])} of the "
    if np.isnan(values["noisy"]):
        text += "clean labels; there are no noisy ones"
    else:
        text += (
            f"clean and {accuracy_text(values['noisy'])} of the noisy training labels (of these it "
            f"gives the true answer to {accuracy_text(values['noisy_true'])})"
        )
    rest = {group: found.final("R", group) for group in ("noisy", "test")}
    if np.isfinite(rest["noisy"]):
        text += (
            f". Network R keeps {accuracy_text(rest['noisy'])} of the noisy labels and has a test "
            f"accuracy of {accuracy_text(rest['test'])}"
        )
    joint = found.final("G joint", "test")
    if np.isfinite(joint):
        text += (
            ". With one frequency a neuron in place of one a vector (G joint), test accuracy is "
            f"{accuracy_text(joint)}"
        )
    return [f"{text}."]


def _neurons(spectra: pd.DataFrame) -> list[str]:
    shares = {
        row["of"]: row for row in spectra.to_dict("records") if row["quantity"] == "concentration"
    }
    shares = {name: row for name, row in shares.items() if row["n"]}
    if not shares:
        return []
    parts = [f"{row['mean']:.2f} of {name}" for name, row in shares.items()]
    n = max(row["n"] for row in shares.values())
    text = f"On average over {count_of(n, 'neuron')}, the dominant frequency has {listed(parts)}"
    errors = [row for row in spectra.to_dict("records") if row["quantity"] == "phase_error"]
    if errors and errors[0]["n"]:
        text += f"; the median size of the phase error is {errors[0]['median']:.2f} rad"
    return [f"{text}."]


def _partition(found: HiddenProgress, table: pd.DataFrame) -> list[str]:
    """The best test accuracy of each score's top share, beside that of the frequency filter."""
    top = [
        row
        for row in table.to_dict("records")
        if (row["keep"], row["group"]) == ("top", "test") and np.isfinite(row["accuracy"])
    ]
    parts = []
    for score in dict.fromkeys(row["score"] for row in top):
        best = max((r for r in top if r["score"] == score), key=lambda row: row["accuracy"])
        named = {"ipr": "by IPR", "strength": "by strength"}.get(score, "at random")
        value = accuracy_text(best["accuracy"])
        parts.append(f"{value} {named} (a share of {best['share']:g})")
    if not parts:
        return []
    filtered = found.final("G", "test")
    beside = f"; network G has {accuracy_text(filtered)}" if np.isfinite(filtered) else ""
    return [f"Keeping whole neurons, test accuracy is at most {listed(parts)}{beside}."]
