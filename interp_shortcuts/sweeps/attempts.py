"""What was tried for one run: one JSON line when an attempt begins, and one when it ends.

Only the process that drives the sweep writes here. A begun attempt without an end means that this
process was killed meanwhile.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from interp_shortcuts.runs.curves import append_curve as append_line


@dataclass(frozen=True)
class Attempt:
    """One attempt at a run."""

    engine: str
    started: str
    """ISO time, UTC."""
    status: str = ""
    """`finished`, `diverged`, `failed`, `stopped` or `lost` (its worker died); empty if unknown."""
    error: str = ""
    seconds: float | None = None
    """How long it trained; if it was stopped or lost, the start of its worker is included."""
    again: bool = False
    """Whether the run was to be tried once more."""


@dataclass(frozen=True)
class AttemptLog:
    """The attempts at one run, in a file that is appended to."""

    path: Path

    def begin(self, *, engine: str) -> None:
        """Note that an attempt begins."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        append_line(self.path, {"event": "begin", "at": _now(), "engine": engine})

    def end(self, status: str, *, error: str, seconds: float, again: bool = False) -> None:
        """Note how the last attempt ended, and whether there will be another one."""
        append_line(
            self.path,
            {
                "event": "end",
                "at": _now(),
                "status": status,
                "error": error,
                "seconds": round(seconds, 3),
                "again": again,
            },
        )

    def read(self) -> list[Attempt]:
        """The attempts in order; a line that a kill cut short is passed over."""
        if not self.path.exists():
            return []
        attempts: list[Attempt] = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if record["event"] == "begin":
                attempts.append(Attempt(record["engine"], record["at"]))
            elif attempts:
                last = attempts[-1]
                attempts[-1] = Attempt(
                    last.engine,
                    last.started,
                    record["status"],
                    record["error"],
                    record["seconds"],
                    again=record.get("again", False),
                )
        return attempts


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
