"""What the command line accepts: one frozen dataclass per command, read by tyro.

The flags of a preset are made from the fields of `RunConfig` and its parts, so there is no second
list to keep. What the commands do is `commands`; this module loads no torch, so that `--help`
answers at once.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Union

import tyro
from pydantic import BaseModel

from interp_shortcuts.presets import PRESETS, Preset
from interp_shortcuts.runs.config import RunConfig

_SWEEP_WORDS = ("run", "status", "results", "--help", "-h")

# Fields that are set otherwise: by --seeds, by the preset's name, by the task itself.
_NOT_FLAGS = {"seed", "name", "rule_fingerprint"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command:
    """What all commands share."""

    debug: bool = False
    """Show the traceback of an error."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PresetsCommand(Command):
    """`presets`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComputingCommand(Command):
    """A command that trains or measures."""

    threads: int | None = None
    """Torch's thread count, on which rounding depends; none: torch's own choice."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PresetCommand(ComputingCommand):
    """A command that trains a preset; the fields of the run are added by `_with_run_fields`."""

    preset: tyro.conf.Suppress[str] = ""

    def overrides(self) -> dict[str, Any]:
        """The run's fields that differ from the preset's, by flat name."""
        default = PRESETS[self.preset]()
        changed: dict[str, Any] = {}
        for name, field in _run_fields().items():
            value, before = getattr(self, name), getattr(default, name)
            pairs = (
                {key: (getattr(value, key), getattr(before, key)) for key in field}
                if field
                else {name: (value, before)}
            )
            changed |= {key: now for key, (now, then) in pairs.items() if now != then}
        return changed


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoCommand(PresetCommand):
    """`demo`."""

    out: Path = Path("runs/demo")
    """The run folder. A demo that is already there is gone on with, or shown again."""
    threads: int | None = min(2, os.cpu_count() or 1)
    """Torch's thread count; another count differs in rounding."""
    causal_every: int = 3
    """Patching and ablations are taken at every k-th checkpoint, the other measures at each."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainCommand(PresetCommand):
    """`train PRESET`."""

    seeds: str = "0"
    """Which seeds: 0-4, 0,3,7 or 0-2,9."""
    workers: int | None = None
    """How many seeds are trained at once; none: as many as the CPUs hold, with `threads` each (one
    unless set)."""
    out: Path = Path("runs")
    """The folder of the run folders, each named <preset>-<setting>-seed<k>."""
    resume: bool = False
    """Go on with interrupted runs, and leave finished ones as they are."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FoldersCommand(ComputingCommand):
    """A command that reads run folders."""

    paths: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATH ...")]
    """Run folders, or folders of run folders."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrackCommand(FoldersCommand):
    """`track`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportCommand(FoldersCommand):
    """`report`."""


def parse(args: Sequence[str]) -> Command:
    """The command that the arguments spell; `sweep FILE` is short for `sweep run FILE`.

    Raises:
        SystemExit: With 0 after `--help`, with 2 after a message about a mistake.
    """
    args = list(args)
    if args[:1] == ["sweep"] and args[1:] and args[1] not in _SWEEP_WORDS:
        args = ["sweep", "run", *args[1:]]
    chosen: Any = tyro.cli(
        _commands(),
        prog="interp-shortcuts",
        description="How a network moves from a shortcut circuit to a robust one while it trains.\n"
        "\nOptions of all commands: --help, --version, --debug.",
        args=args,
        config=(
            tyro.conf.OmitArgPrefixes,
            tyro.conf.OmitSubcommandPrefixes,
            tyro.conf.FlagCreatePairsOff,
        ),
    )
    return chosen if isinstance(chosen, Command) else chosen.which


@cache
def _commands() -> Any:
    from interp_shortcuts.cli.sweep_options import (
        SweepResultsCommand,
        SweepRunCommand,
        SweepStatusCommand,
    )

    def named(command: Any, name: str, description: str, **more: Any) -> Any:
        return Annotated[command, tyro.conf.subcommand(name, description=description, **more)]

    demo, train = _with_run_fields(DemoCommand), _with_run_fields(TrainCommand)
    presets = Union[  # noqa: UP007 - built at run time
        tuple(
            named(
                train,
                preset.command,
                f"{preset.description}. {preset.cost} a seed.",
                default=_of_preset(train, preset),
            )
            for preset in PRESETS.values()
        )
    ]
    sweeps = Union[  # noqa: UP007
        named(SweepRunCommand, "run", "Train what is missing of the sweeps in FILE; the default."),
        named(SweepStatusCommand, "status", "Show how far sweeps are, also while they run."),
        named(SweepResultsCommand, "results", "Write results.csv and results.parquet."),
    ]
    sweep_any = dataclasses.make_dataclass(
        "SweepAny", [("which", Annotated[sweeps, tyro.conf.arg(name="")])], frozen=True
    )
    train_any = dataclasses.make_dataclass(
        "TrainAny", [("which", Annotated[presets, tyro.conf.arg(name="")])], frozen=True
    )
    return Union[  # noqa: UP007
        named(
            demo,
            "demo",
            "Train max-parity-demo at seed 0, track it and write its report; about a minute. "
            "The last line is the report's path.",
            default=_of_preset(demo, PRESETS["max_parity_demo"]),
        ),
        named(PresetsCommand, "presets", "List the presets and what each costs."),
        named(train_any, "train", "Train seeds of a preset, any field of it changed by a flag."),
        named(
            sweep_any,
            "sweep",
            "Train a grid of settings, each at several seeds: sweep FILE, sweep status FILE, "
            "sweep results FILE. FILE is a Python script that defines `sweep = Sweep(...)`.",
        ),
        named(TrackCommand, "track", "Take every measure at every checkpoint of the runs."),
        named(
            ReportCommand,
            "report",
            "Write a page per run, and an index over a folder of runs; tracks what is not yet "
            "tracked.",
        ),
    ]


@cache
def _run_fields() -> dict[str, tuple[str, ...]]:
    """The fields of `RunConfig` that are flags, each with its own fields where it is a part."""
    return {
        name: _part_fields(field.annotation)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        else ()
        for name, field in RunConfig.model_fields.items()
        if name not in _NOT_FLAGS
    }


def _part_fields(part: type[BaseModel]) -> tuple[str, ...]:
    return tuple(name for name in part.model_fields if name not in _NOT_FLAGS)


def _flags(model: type[BaseModel], names: Sequence[str]) -> list[tuple[str, Any, Any]]:
    """Dataclass fields for a model's fields: type, default and description, without its rules.

    The rules are checked when the config is made, where the message can name field and value.
    """
    fields = []
    for name in names:
        field = model.model_fields[name]
        kind: Any = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            part = dataclasses.make_dataclass(
                f"{name.title()}Flags", _flags(kind, _part_fields(kind)), frozen=True
            )
            fields.append((name, part, dataclasses.field(default_factory=part)))
        else:
            flag = Annotated[kind, tyro.conf.arg(help=field.description)]
            fields.append((name, flag, dataclasses.field(default=field.get_default())))
    return fields


def _with_run_fields(command: type[PresetCommand]) -> type[PresetCommand]:
    fields = _flags(RunConfig, tuple(_run_fields()))
    return dataclasses.make_dataclass(
        command.__name__, fields, bases=(command,), frozen=True, kw_only=True
    )


def _of_preset(command: type[PresetCommand], preset: Preset) -> PresetCommand:
    """The command with a preset's values as its defaults."""
    config, values = preset(), {}
    for field in dataclasses.fields(command):
        if field.name not in _run_fields():
            continue
        value = getattr(config, field.name)
        part: Any = field.type
        values[field.name] = (
            part(**{key: getattr(value, key) for key in _run_fields()[field.name]})
            if _run_fields()[field.name]
            else value
        )
    return command(preset=preset.name, **values)
