"""What each command does: calls into the library, and lines on the screen.

Results go to standard output, one line each; notes, progress and errors to standard error. The
library is imported by the command that needs it, so that `presets` loads no torch.
"""

from __future__ import annotations

import sys
import traceback
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interp_shortcuts.cli.folders import index_folder, run_folders
from interp_shortcuts.cli.options import (
    Command,
    DemoCommand,
    PresetsCommand,
    ReportCommand,
    TrackCommand,
    TrainCommand,
)
from interp_shortcuts.cli.sweep_options import (
    SweepResultsCommand,
    SweepRunCommand,
    SweepStatusCommand,
)
from interp_shortcuts.errors import ConfigError, InterpShortcutsError
from interp_shortcuts.presets import PRESETS
from interp_shortcuts.runs.store import RunFolder
from interp_shortcuts.sweeps.seeds import SeedResult, parse_seeds, run_folder_name, train_seeds

if TYPE_CHECKING:
    from interp_shortcuts.cli.tracked import TrackedRun
else:  # `presets` and `train` need none of what it imports
    TrackedRun = Any

GO_ON = "the same command goes on from here"
"""What to do after Ctrl-C in a command that keeps what it has done."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a message that says how to go on."""


@singledispatch
def run_command(command: Command) -> int:
    """Does what the command says, and returns the exit code."""
    raise TypeError(f"no such command: {command!r}")


@run_command.register
def list_presets(command: PresetsCommand) -> int:  # noqa: ARG001
    """The presets, one a line."""
    width = max(len(preset.command) for preset in PRESETS.values())
    for preset in PRESETS.values():
        print(f"{preset.command:<{width}}  {preset.description}; {preset.cost}")
    note("\nThe cost is that of training one seed with one thread; 2 CPU cores train two at once.")
    note("Any field can be changed by a flag: interp-shortcuts train PRESET --help")
    return 0


@run_command.register
def run_train(command: TrainCommand) -> int:
    """Every seed in its folder; 1 if any of them failed."""
    preset, overrides = PRESETS[command.preset], command.overrides()
    configs = [preset(seed, **overrides) for seed in parse_seeds(command.seeds)]
    if not command.resume:
        _refuse_existing([command.out / run_folder_name(config) for config in configs])
    try:
        results = train_seeds(
            configs,
            out=command.out,
            resume=command.resume,
            threads=command.threads,
            workers=command.workers,
            on_start=lambda config, path: note(f"seed {config.seed} -> {path}"),
            on_end=lambda result: _print_result(result, debug=command.debug),
        )
    except KeyboardInterrupt:
        raise Interrupted("the same command with --resume goes on from here") from None
    failed = [str(result.config.seed) for result in results if not result.ok]
    if failed:
        error(f"{len(failed)} of {len(results)} seeds failed: {', '.join(failed)}")
    return 1 if failed else 0


@run_command.register
def run_track(command: TrackCommand) -> int:
    """Every run tracked, with what its timeline shows."""
    from interp_shortcuts.cli.tracked import track_run

    problems = 0
    try:
        for path in run_folders(command.paths, on_skip=_note_skipped):
            run = track_run(path, threads=command.threads)
            if run.sentence:
                print(f"{path}: {run.sentence}")
            problems += _print_problem(run, debug=command.debug)
    except KeyboardInterrupt:
        raise Interrupted(GO_ON) from None
    return 1 if problems else 0


@run_command.register
def run_report(command: ReportCommand) -> int:
    """A page per run, and an index where the runs lie in one folder; prints their paths."""
    from interp_shortcuts.cli.page_names import page_names
    from interp_shortcuts.cli.tracked import track_run, write_indexes, write_page

    paths = run_folders(command.paths, on_skip=_note_skipped)
    index, names = index_folder(command.paths, paths), page_names(paths)
    runs, problems = [], 0
    try:
        for path in paths:
            run = track_run(path, threads=command.threads)
            runs.append(run)
            if run.timeline is not None:
                print(write_page(run, index=index, name=names[path]))
            problems += _print_problem(run, debug=command.debug)
        if index is not None:
            for page in write_indexes(runs, index, names):
                print(page)
    except KeyboardInterrupt:
        raise Interrupted(GO_ON) from None
    return 1 if problems else 0


@run_command.register
def run_sweep(command: SweepRunCommand) -> int:
    """What is missing of every sweep in a script; 1 if any run of it failed."""
    from interp_shortcuts.cli.sweeping import plan_sweeps, train_sweeps

    if command.dry_run:
        return plan_sweeps(command)
    try:
        return train_sweeps(command)
    except KeyboardInterrupt:
        raise Interrupted(GO_ON) from None


@run_command.register
def run_sweep_status(command: SweepStatusCommand) -> int:
    """How far sweeps are, cell by cell."""
    from interp_shortcuts.cli.sweeping import show_status

    return show_status(command)


@run_command.register
def run_sweep_results(command: SweepResultsCommand) -> int:
    """The tables of sweeps; prints their paths."""
    from interp_shortcuts.cli.sweeping import write_tables

    return write_tables(command)


@run_command.register
def run_demo(command: DemoCommand) -> int:
    """Train, track, report; the path of the report is the last line."""
    from interp_shortcuts.cli.tracked import causal_cadence, track_run, write_page
    from interp_shortcuts.training.loop import train

    config = PRESETS[command.preset](seed=0, **command.overrides())
    note(f"Training {PRESETS[command.preset].command}, seed 0, in {command.out} ...")
    try:
        train(config, out=command.out, resume=True, threads=command.threads)
        note(
            "Tracking every measure at every checkpoint, patching and ablations at every "
            f"{command.causal_every} ..."
        )
        run = track_run(
            command.out, threads=command.threads, cadence=causal_cadence(command.causal_every)
        )
        failed = _print_problem(run, debug=command.debug)
        if run.timeline is not None:
            note(run.sentence)
            print(write_page(run))
    except KeyboardInterrupt:
        raise Interrupted(GO_ON) from None
    return 1 if failed else 0


def note(text: str) -> None:
    """A line for the person who watches, on standard error."""
    print(text, file=sys.stderr)


def error(text: str, cause: Exception | None = None, *, debug: bool = False) -> None:
    """An error's line on standard error, with the traceback of its cause if asked for."""
    if cause is not None and (debug or not isinstance(cause, InterpShortcutsError)):
        traceback.print_exception(cause)
    print(f"error: {text}", file=sys.stderr)


def _refuse_existing(folders: list[Path]) -> None:
    """Raises before hours of training, rather than at the first folder that is taken."""
    taken = [str(folder) for folder in folders if RunFolder(folder).looks_like_a_run]
    if taken:
        raise ConfigError(
            f"there already is a run in {', '.join(taken)}; add --resume to go on with what is "
            "there, or choose another --out."
        )


def _print_result(result: SeedResult, *, debug: bool) -> None:
    print(f"{result.path}: {result.status}")
    if result.error is not None:
        error(f"seed {result.config.seed}: {result.error}", result.error, debug=debug)


def _print_problem(run: TrackedRun, *, debug: bool) -> bool:
    """Says what is wrong with a run, if anything; whether it could not be tracked.

    A run that was not trained to its end is only noted: its pages are what it has.
    """
    if run.error is not None:
        error(f"{run.path}: {run.problem}", run.error, debug=debug)
    elif run.problem:
        note(f"{run.path}: {run.problem}; in no rate")
    return run.error is not None


def _note_skipped(path: Path) -> None:
    note(f"not a run folder, left out: {path}")
