"""What the command line accepts: one frozen dataclass per command, read by tyro.

The flags of a preset are made from the fields of `RunConfig` and its parts, those of task and model
being the fields of the preset's kinds, so there is no second list to keep. What the commands do is
`commands`; this module loads no torch, so that `--help` answers at once.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Union

import tyro
from pydantic import BaseModel

from interp_shortcuts.presets import PRESETS, Preset
from interp_shortcuts.runs.config import RunConfig, part_models
from interp_shortcuts.tasks.any_config import NOISY_CONFIGS
from interp_shortcuts.tasks.sequence_config import SequenceConfig

_DEMO = "max_parity_demo"
_SWEEP_WORDS = ("run", "status", "results", "--help", "-h")

# Fields that are set otherwise: by --seeds, by the preset's name, by the task itself.
_NOT_FLAGS = {"seed", "name", "rule_fingerprint", "contents"}
# Fields that can have one value only for a kind of task.
_NOT_FLAGS_OF: dict[type[BaseModel], set[str]] = {
    SequenceConfig: {"early_stop"},
    **{kind: {"early_stop", "precision"} for kind in NOISY_CONFIGS},
}

Kinds = tuple[type[BaseModel], type[BaseModel]]
"""The kind of task and the kind of model of a run, on which its flags depend."""


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
        for name, field in _run_fields(_kinds(default)).items():
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

    configs = {preset.name: preset() for preset in PRESETS.values()}
    kinds = {_kinds(config) for config in configs.values()}
    trains = {kind: _with_run_fields(TrainCommand, kind) for kind in kinds}
    demo = _with_run_fields(DemoCommand, _kinds(configs[_DEMO]))

    def train_preset(preset: Preset) -> Any:
        train = trains[_kinds(configs[preset.name])]
        about = f"{preset.description}. {preset.cost} a seed."
        return named(train, preset.command, about, default=_of_preset(train, preset))

    presets = Union[tuple(map(train_preset, PRESETS.values()))]  # noqa: UP007 - built at run time
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
            default=_of_preset(demo, PRESETS[_DEMO]),
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


def _kinds(config: RunConfig) -> Kinds:
    return type(config.task), type(config.model)


@cache
def _run_fields(kinds: Kinds) -> dict[str, tuple[str, ...]]:
    """The fields of `RunConfig` that are flags, each with its own fields where it is a part.

    Args:
        kinds: Which kinds of task and model; the flags of both are their fields.
    """
    hidden = _NOT_FLAGS | _NOT_FLAGS_OF.get(kinds[0], set())
    fields: dict[str, tuple[str, ...]] = {}
    for name in RunConfig.model_fields:
        if name not in hidden:
            part = _part(name, kinds)
            inner = () if part is None else part.model_fields
            fields[name] = tuple(key for key in inner if key not in hidden)
    return fields


def _part(name: str, kinds: Kinds) -> type[BaseModel] | None:
    """The pydantic model of a part of `RunConfig`; None if the field is none."""
    models = part_models(name)
    return next((model for model in models if model in kinds or len(models) == 1), None)


def _flags(model: type[BaseModel], names: Iterable[str]) -> list[tuple[str, Any, Any]]:
    """Dataclass fields for a model's fields: type, default and description, without its rules.

    The rules are checked when the config is made, where the message can name field and value.
    """
    fields = []
    for name in names:
        field = model.model_fields[name]
        flag = Annotated[field.annotation, tyro.conf.arg(help=field.description)]
        default = None if field.is_required() else field.get_default()  # a preset sets them all
        fields.append((name, flag, dataclasses.field(default=default)))
    return fields


def _with_run_fields(command: type[PresetCommand], kinds: Kinds) -> type[PresetCommand]:
    """The command with a flag for every field of a run of these kinds."""
    fields: list[tuple[str, Any, Any]] = []
    for name, inner in _run_fields(kinds).items():
        part = _part(name, kinds)
        if part is None:
            fields += _flags(RunConfig, [name])
        else:
            flags = dataclasses.make_dataclass(
                f"{name.title()}Flags", _flags(part, inner), frozen=True
            )
            fields.append((name, flags, dataclasses.field(default_factory=flags)))
    return dataclasses.make_dataclass(
        command.__name__, fields, bases=(command,), frozen=True, kw_only=True
    )


def _of_preset(command: type[PresetCommand], preset: Preset) -> PresetCommand:
    """The command with a preset's values as its defaults."""
    config, values = preset(), {}
    parts = _run_fields(_kinds(config))
    for field in dataclasses.fields(command):
        if field.name not in parts:
            continue
        value = getattr(config, field.name)
        part: Any = field.type
        names = parts[field.name]
        values[field.name] = part(**{key: getattr(value, key) for key in names}) if names else value
    return command(preset=preset.name, **values)
