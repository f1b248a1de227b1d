"""Which run a page is about, as plain JSON values."""

from __future__ import annotations

from typing import Any

from interp_shortcuts.timelines.timeline import Timeline


def run_facts(timeline: Timeline) -> dict[str, Any]:
    """Task, seed, origin and span of a timeline; a seed that was not recorded is None."""
    attrs, steps = timeline.data.attrs, timeline.steps
    texts = ("task_name", "run_id", "path", "source", "created", "task_fingerprint")
    return {
        **{name: str(attrs.get(name, "")) for name in texts},
        "seed": None if int(attrs.get("seed", -1)) < 0 else int(attrs["seed"]),
        "evaluations": len(steps),
        "first_step": steps[0] if steps else None,
        "last_step": steps[-1] if steps else None,
    }
