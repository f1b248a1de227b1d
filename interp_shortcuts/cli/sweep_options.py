"""What `sweep` accepts: one frozen dataclass for each of run, status and results."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

import tyro

from interp_shortcuts.cli.options import Command

_FILE = "A Python script that defines `sweep = Sweep(...)`, or several in a dict or list `sweeps`"


@dataclasses.dataclass(frozen=True, kw_only=True)
class SweepRunCommand(Command):
    """`sweep FILE`."""

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE", help=f"{_FILE}.")]
    out: Path | None = None
    """The sweep folder, or with several sweeps the folder of theirs; none: runs/<name>."""
    dry_run: bool = False
    """Train nothing: show the cells, what is finished, and what the rest would cost."""
    engine: Literal["local", "ray"] = "local"
    """Who trains: processes of this machine, or a Ray cluster."""
    workers: int | None = None
    """How many runs at once; none: one for each CPU, or as many as the Ray cluster holds."""
    threads: int = 1
    """Torch's thread count for each run, on which rounding depends."""
    device: str = "cpu"
    """Where runs are trained: cpu or cuda."""
    ray_address: str | None = None
    """The Ray cluster; none: that of RAY_ADDRESS, else one is started here for the while."""
    num_cpus: float | None = None
    """CPUs that Ray reserves for each run (1)."""
    num_gpus: float | None = None
    """GPUs that Ray reserves for each run (0)."""
    memory: float | None = None
    """Memory that Ray reserves for each run, in GiB (none)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SweepFoldersCommand(Command):
    """A command that reads sweep folders."""

    path: Annotated[
        Path,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="FILE-OR-DIR", help=f"A sweep folder. Or: {_FILE}."),
    ]
    out: Path | None = None
    """Where the sweeps of a FILE are, as in `sweep FILE --out`; none: runs/<name>."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SweepStatusCommand(SweepFoldersCommand):
    """`sweep status`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SweepResultsCommand(SweepFoldersCommand):
    """`sweep results`."""
