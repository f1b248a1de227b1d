"""The order of runs, retries and the end on Ctrl-C, with an engine that plays a script."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection
from pathlib import Path

import pytest

from interp_shortcuts.presets import smoke
from interp_shortcuts.sweeps.dispatch import Observer, dispatch
from interp_shortcuts.sweeps.engines import Engine
from interp_shortcuts.sweeps.worker import Assignment, Ending


class Scripted(Engine):
    """Ends each attempt as it is told, one at a time, the latest first."""

    name = "scripted"

    def __init__(self, endings: dict[str, list[str]], *, slots: int = 1) -> None:
        self.endings = endings
        self.n_slots = slots
        self.running: list[str] = []
        self.submitted: list[tuple[str, bool]] = []
        self.most = 0
        self.interrupted = False

    @property
    def slots(self) -> int:
        return self.n_slots

    def submit(self, key: str, assignment: Assignment) -> None:
        self.submitted.append((key, assignment.resume))
        self.running.append(key)
        self.most = max(self.most, len(self.running))

    def wait(self, timeout: float) -> list[tuple[str, Ending]]:
        key = self.running.pop()
        status = "stopped" if self.interrupted else self.endings[key].pop(0)
        if status == "ctrl-c":
            os.kill(os.getpid(), signal.SIGINT)
            self.running.append(key)
            return []
        return [(key, Ending(status))]

    def interrupt(self) -> None:
        self.interrupted = True

    def start(self) -> None: ...

    def close(self) -> None: ...


class Notes(Observer):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def began(self, key: str) -> None:
        self.lines.append(f"{key} began")

    def ended(self, key: str, ending: Ending, *, again: bool) -> None:
        self.lines.append(f"{key} {ending.status}{', again' if again else ''}")

    def stopping(self, running: Collection[str]) -> None:
        self.lines.append(f"stopping {sorted(running)}")


def played(engine: Scripted, *, retry_failed: bool = True) -> list[str]:
    assignments = {key: Assignment(smoke(0), Path(key), resume=False) for key in engine.endings}
    notes = Notes()
    try:
        dispatch(assignments, engine, notes, retry_failed=retry_failed)
    except KeyboardInterrupt:
        notes.lines.append("interrupted")
    return notes.lines


def test_a_lost_run_comes_again_after_the_others_and_resumes():
    engine = Scripted({"a": ["lost", "finished"], "b": ["finished"]})
    assert played(engine, retry_failed=False) == [
        "a began",
        "a lost, again",
        "b began",
        "b finished",
        "a began",
        "a finished",
    ]
    assert engine.submitted == [("a", False), ("b", False), ("a", True)]


@pytest.mark.parametrize("status", ["lost", "failed"])
def test_twice_is_enough(status: str):
    lines = played(Scripted({"a": [status, status]}))
    assert lines == ["a began", f"a {status}, again", "a began", f"a {status}"]


def test_failures_are_retried_only_where_asked():
    assert played(Scripted({"a": ["failed"]}), retry_failed=False) == ["a began", "a failed"]


@pytest.mark.parametrize("status", ["finished", "diverged"])
def test_an_end_is_an_end(status: str):
    assert played(Scripted({"a": [status]})) == ["a began", f"a {status}"]


def test_no_more_runs_than_slots():
    engine = Scripted({key: ["finished"] for key in "abcde"}, slots=3)
    played(engine)
    assert engine.most == 3
    assert [key for key, _ in engine.submitted] == list("abcde")


def test_ctrl_c_stops_what_runs_and_begins_nothing():
    before = signal.getsignal(signal.SIGINT)
    lines = played(Scripted({"a": ["finished"], "b": ["ctrl-c"], "c": ["finished"]}))
    assert lines[2:] == ["b began", "stopping ['b']", "b stopped", "interrupted"]
    assert signal.getsignal(signal.SIGINT) is before
