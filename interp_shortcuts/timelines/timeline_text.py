"""How a timeline looks at a prompt and in a notebook. Everything shown is computed elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from interp_shortcuts.errors import MeasureError

if TYPE_CHECKING:
    from interp_shortcuts.timelines.timeline import Timeline


def title(timeline: Timeline) -> str:
    """Task, seed and run in a few words."""
    attrs = timeline.data.attrs
    words = [str(attrs.get("task_name") or "task unknown")]
    if int(attrs.get("seed", -1)) >= 0:
        words.append(f"seed {attrs['seed']}")
    if attrs.get("run_id"):
        words.append(f"run {attrs['run_id']}")
    return ", ".join(words)


def _evaluations(steps: Sequence[int]) -> str:
    return f"{len(steps)} evaluation{'' if len(steps) == 1 else 's'}"


def as_text(timeline: Timeline) -> str:
    """A few lines: what it is about, what was measured, what happened."""
    steps = timeline.steps
    span = f", steps {steps[0]} to {steps[-1]}" if steps else ""
    components = timeline.components()
    heads = f"; heads {' '.join(components)}" if components else ""
    lines = [f"Timeline of {title(timeline)}", f"  {_evaluations(steps)}{span}{heads}"]
    for measure, names in _by_measure(timeline).items():
        lines.append(f"  {measure}: {', '.join(names)}")
    outcome, sentence = _story(timeline)
    return "\n".join([*lines, f"  outcome: {outcome}", f"  {sentence}"])


def as_html(timeline: Timeline) -> str:
    """The same, with a folded table of the variables and their definitions."""
    steps = timeline.steps
    span = f", steps {steps[0]} to {steps[-1]}" if steps else ""
    outcome, sentence = _story(timeline)
    rows = []
    for name, array in timeline.data.data_vars.items():
        cells = (
            str(name),
            ", ".join(map(str, array.dims)),
            str(array.attrs.get("units", "")),
            str(array.attrs.get("definition", "")),
        )
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("variable", "dims", "units", "definition"))
    return (
        f"<div><p><b>Timeline of {escape(title(timeline))}</b><br>"
        f"{_evaluations(steps)}{span}; heads {escape(' '.join(timeline.components()))}<br>"
        f"<b>{escape(outcome)}</b>: {escape(sentence)}</p>"
        f"<details><summary>{len(rows)} variables</summary>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        "</details></div>"
    )


def _by_measure(timeline: Timeline) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, array in timeline.data.data_vars.items():
        found.setdefault(str(array.attrs.get("measure", "other")), []).append(str(name))
    return found


def _story(timeline: Timeline) -> tuple[str, str]:
    """Outcome and sentence; a dataset that phases cannot be read from must still show itself."""
    from interp_shortcuts.timelines.hidden_progress import about_label_noise
    from interp_shortcuts.timelines.story import story

    if about_label_noise(timeline.data):
        return "none of a hand-over: the labels are noisy", " ".join(story(timeline.data))
    try:
        phases = timeline.phases()
    except MeasureError as error:
        return "unknown", str(error)
    return phases.outcome, phases.sentence
