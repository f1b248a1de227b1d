"""Measures that tell processes apart, for trackings with several workers."""

from __future__ import annotations

import multiprocessing
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import xarray as xr

from interp_shortcuts.measures.base import Measure, Observation

SECONDS_TO_WAIT = 120.0


@dataclass(frozen=True)
class Awaited(Measure):
    """Mean logits; this process waits at each step until another one has measured some step.

    Attributes:
        folder: Where the other process leaves a file for each step.
        fails: What the other process does: nothing, "raises" or "dies".
    """

    name: ClassVar[str] = "awaited"
    reads: ClassVar[Literal["weights", "activations"]] = "activations"

    folder: str
    fails: str = ""

    def measure(self, observation: Observation) -> xr.Dataset:
        if multiprocessing.parent_process() is not None:
            (Path(self.folder) / str(observation.step)).touch()
            if self.fails == "raises":
                raise ValueError("no such luck")
            if self.fails == "dies":
                os._exit(3)
        else:
            self._wait()
        return xr.Dataset({"awaited": ((), observation.logits("validation").mean().numpy())})

    def _wait(self) -> None:
        end = time.monotonic() + SECONDS_TO_WAIT
        while not list(Path(self.folder).iterdir()):
            assert time.monotonic() < end, "no other process came"
            time.sleep(0.05)
