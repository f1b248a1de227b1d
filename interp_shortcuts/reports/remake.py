"""The commands that make a report again, from what a timeline says about where it comes from."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any


def remake(attrs: Mapping[Any, Any]) -> list[dict[str, str]]:
    """Commands with a line each on what they do.

    Args:
        attrs: Global attributes of a timeline's dataset.

    Returns:
        `{"what", "language", "code"}` for each way.
    """
    folder = str(attrs.get("path", "")) or "run"
    config = str(attrs.get("config", ""))
    ways = []
    if attrs.get("source") == "run":
        quoted = shlex.quote(folder)
        ways.append(
            {
                "what": "From the run folder: measure its checkpoints, and write this page.",
                "language": "sh",
                "code": f"interp-shortcuts track {quoted}\ninterp-shortcuts report {quoted}",
            }
        )
    if config:
        task = ", task=task" if _needs_task(config) else ""
        ways.append(
            {
                "what": "From nothing: train the same run again, measure it, and write this page."
                + (" `task` is your own task: its rule is not in the config." if task else ""),
                "language": "python",
                "code": (
                    "from interp_shortcuts import CircuitTracker, RunConfig, train\n\n"
                    f"config = RunConfig.model_validate_json({config!r})\n"
                    f"run = train(config, out={folder!r}{task})\n"
                    f"timeline = CircuitTracker(run.trajectory({task[2:]})).track()\n"
                    'timeline.report("report.html")'
                ),
            }
        )
    elif attrs.get("source") == "observed":
        ways.append(
            {
                "what": "From your training loop.",
                "language": "python",
                "code": (
                    "from interp_shortcuts import CircuitTracker\n\n"
                    "tracker = CircuitTracker(task)\n"
                    "# in the loop: tracker.observe(step, model)\n"
                    'tracker.timeline.report("report.html")'
                ),
            }
        )
    else:
        ways.append(
            {
                "what": "From your checkpoints: `spec` and `task` are your own.",
                "language": "python",
                "code": (
                    "from interp_shortcuts import CircuitTracker, Trajectory\n\n"
                    "trajectory = Trajectory.from_checkpoints(\n"
                    "    [(step, path_or_state_dict), ...], spec=spec, task=task\n"
                    ")\n"
                    'CircuitTracker(trajectory).track().report("report.html")'
                ),
            }
        )
    return ways


def _needs_task(config: str) -> bool:
    """Whether the rule is a function of the user's, which a config only identifies."""
    try:
        task = json.loads(config).get("task", {})
    except (json.JSONDecodeError, AttributeError):
        return False
    return bool(isinstance(task, dict) and task.get("rule_fingerprint"))
