"""How phases look at a prompt and in a notebook. Everything shown is computed elsewhere."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from interp_shortcuts.timelines.carriers import CarrierVerdict, When

if TYPE_CHECKING:
    from interp_shortcuts.timelines.phases import Phases


def as_text(phases: Phases) -> str:
    """Several lines: outcome, sentence, events, hand-over order, what carried what."""
    lines = [f"Phases: {phases.outcome}", f"  {phases.sentence}", ""]
    for event in phases.events:
        if event.step is None:
            lines.append(f"  {event.name:<17} {'-':>8}  {event.reason}")
        else:
            value = "" if event.value is None else f"  value {event.value:.4g}"
            lines.append(f"  {event.name:<17} {event.step:>8}{value}")
    if phases.handover:
        lines += ["", "  hand-over (lag to onset):"]
        lines += [f"  {entry.step:>8} {entry.lag:>+6}  {entry.what}" for entry in phases.handover]
    if phases.carriers:
        lines += ["", "  carriers (transfer of rule / shortcut, disruption):"]
        width = max(len(verdict.component) for verdict in phases.carriers)
        for verdict in phases.carriers:
            before, after = _carried(verdict, "before"), _carried(verdict, "after")
            lines.append(f"  {verdict.component:<{width}}  {before:<38}  -> {after}")
    return "\n".join(lines)


def as_html(phases: Phases) -> str:
    """The same as small tables."""
    rows = []
    for event in phases.events:
        step = "–" if event.step is None else str(event.step)
        value = "" if event.value is None else f"{event.value:.4g}"
        note = event.reason or event.description
        cells = (event.name, step, value, note)
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    html = [
        "<div>",
        f"<p><b>Phases: {escape(phases.outcome)}</b><br>{escape(phases.sentence)}</p>",
        "<table><thead><tr><th>event</th><th>step</th><th>value</th><th></th></tr></thead>",
        f"<tbody>{''.join(rows)}</tbody></table>",
    ]
    if phases.handover:
        rows = [
            f"<tr><td>{entry.step}</td><td>{entry.lag:+d}</td><td>{escape(entry.what)}</td></tr>"
            for entry in phases.handover
        ]
        html.append(
            "<table><thead><tr><th>step</th><th>lag to onset</th><th>hand-over</th></tr></thead>"
            f"<tbody>{''.join(rows)}</tbody></table>"
        )
    if phases.carriers:
        rows = []
        for verdict in phases.carriers:
            cells = (verdict.component, _carried(verdict, "before"), _carried(verdict, "after"))
            rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
        html.append(
            "<table><thead><tr><th>carrier (transfer of rule / shortcut, disruption)</th>"
            f"<th>phase 1</th><th>at the end</th></tr></thead><tbody>{''.join(rows)}</tbody>"
            "</table>"
        )
    html.append("</div>")
    return "".join(html)


def _carried(verdict: CarrierVerdict, when: When) -> str:
    """The verdict with its numbers, short."""
    if verdict.reason(when):
        return verdict.verdict(when)
    return (
        f"{verdict.verdict(when)} ({verdict.transfer('rule', when):.2f} / "
        f"{verdict.transfer('shortcut', when):.2f}, {verdict.disruption(when):.2f})"
    )
