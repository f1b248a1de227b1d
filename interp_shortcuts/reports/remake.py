"""The commands that make a report again, from what a timeline says about where it comes from."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from interp_shortcuts.tasks.rules import BUILT_IN, RULES


def remake(attrs: Mapping[Any, Any]) -> list[dict[str, str]]:
    """Commands with a line each on what they do.

    Args:
        attrs: Global attributes of a timeline's dataset.

    Returns:
        `{"what", "language", "code"}` for each way.
    """
    folder = str(attrs.get("path", "")) or "run"
    config = str(attrs.get("config", ""))
    task = ", task=task" if _needs_task(config or str(attrs.get("task", ""))) else ""
    own = " `task` is your own task: its rule is not in the config." if task else ""
    ways = []
    if attrs.get("source") == "run" and task:
        ways.append(
            {
                "what": "From the run folder: measure its checkpoints, and write this page." + own,
                "language": "python",
                "code": (
                    "from interp_shortcuts import CircuitTracker, Trajectory\n\n"
                    f"trajectory = Trajectory.open({folder!r}{task})\n"
                    f"CircuitTracker(trajectory).track().report({folder + '/report.html'!r})"
                ),
            }
        )
    elif attrs.get("source") == "run":
        quoted = shlex.quote(folder)
        ways.append(
            {
                "what": "From the run folder: measure its checkpoints, and write this page.",
                "language": "sh",
                "code": f"interp-shortcuts track {quoted}\ninterp-shortcuts report {quoted}",
            }
        )
    if config:
        ways.append(
            {
                "what": "From nothing: train the same run again, measure it, and write this page."
                + own,
                "language": "python",
                "code": (
                    "from interp_shortcuts import CircuitTracker, RunConfig, train\n\n"
                    f"config = RunConfig.model_validate_json({config!r})\n"
                    f"run = train(config, out={folder + '-again'!r}{task})\n"
                    f"timeline = CircuitTracker(run.trajectory({task[2:]})).track()\n"
                    "timeline.report(run.path)"
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
    """Whether the rule is the user's own, which a config only identifies.

    A rule that the user registered counts too: a new process does not know it.

    Args:
        config: A run's config or a task's, as JSON.
    """
    try:
        found = json.loads(config)
        task = found.get("task", found)
        rule, fingerprint = task.get("rule"), task.get("rule_fingerprint")
    except (json.JSONDecodeError, AttributeError):
        return False
    if rule not in BUILT_IN:
        return bool(rule or fingerprint)
    if not fingerprint:
        return False
    try:
        return RULES[rule].fingerprint(task["length"], task["n_integers"]) != fingerprint
    except (KeyError, TypeError, ValueError):
        return True
