"""What `sweep` does and prints: calls into `sweeps`, and what came of them in lines.

Results go to standard output, notes and errors to standard error, as in `commands`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pandas as pd

from interp_shortcuts.cli.commands import error, note
from interp_shortcuts.cli.sweep_options import (
    SweepFoldersCommand,
    SweepResultsCommand,
    SweepRunCommand,
    SweepStatusCommand,
)
from interp_shortcuts.errors import ConfigError, StorageError
from interp_shortcuts.sweeps.cost import TIMED_STEPS, Timing, run_flops, step_flops, time_steps
from interp_shortcuts.sweeps.driver import ENDED, run_sweep
from interp_shortcuts.sweeps.engines import Engine, cpu_count
from interp_shortcuts.sweeps.folder import SweepFolder
from interp_shortcuts.sweeps.local_engine import LocalEngine
from interp_shortcuts.sweeps.plan import Job, Sweep
from interp_shortcuts.sweeps.ray_engine import RayEngine
from interp_shortcuts.sweeps.script import load_sweeps
from interp_shortcuts.sweeps.table import job_status, results, write_results

RUNS = Path("runs")
"""Where sweep folders lie unless told."""


def train_sweeps(command: SweepRunCommand) -> int:
    """Trains what is missing of every sweep; 1 if a run failed."""
    sweeps = load_sweeps(command.file)
    engine = chosen_engine(command)
    problems = 0
    with engine.session():
        for sweep, folder in zip(sweeps, _folders(sweeps, command.out), strict=True):
            _warn_of_dropped(sweep, folder)
            ended = run_sweep(
                sweep,
                out=folder,
                engine=engine,
                threads=command.threads,
                device=command.device,
                script=command.file,
                on_stop=lambda n: note(f"stopping {_count(n, 'run')} ..."),
            )
            for result in ended:
                if not result.ok:
                    reason = f": {result.error}" if result.error else ""
                    error(f"{result.path}: {result.status}{reason}")
            bad = sum(not result.ok for result in ended)
            problems += bad
            note(f"{sweep.name}: {len(ended) - bad} of {_count(len(ended), 'run')} finished")
            for path in write_results(folder):
                print(path)
    return 1 if problems else 0


def plan_sweeps(command: SweepRunCommand) -> int:
    """Prints the cells of every sweep, what is finished, and what the rest would cost."""
    chosen_engine(command)  # refuses what the run itself would refuse
    sweeps = load_sweeps(command.file)
    left: list[Job] = []
    for sweep, folder in zip(sweeps, _folders(sweeps, command.out), strict=True):
        _warn_of_dropped(sweep, folder)
        left += _print_plan(sweep, folder)
    if left:
        _print_cost(left, command)
    return 0


def show_status(command: SweepStatusCommand) -> int:
    """Prints how far the sweeps are: a line a cell, and one a run that failed or is running."""
    for folder in _existing(command):
        table = results(folder)
        said = ", ".join(f"{n} {status}" for status, n in Counter(table["status"]).items())
        print(f"{folder}: {_count(len(table), 'run')}: {said}")
        width = max(map(len, table["cell"]))
        for cell, rows in table.groupby("cell", sort=False):
            ended = rows.loc[rows["status"] == "finished"]
            told = _ended_how(ended)
            print(f"  {cell:<{width}}  {len(ended)} of {len(rows)} finished  {told}".rstrip())
        for row in table.to_dict("records"):
            if row["status"] == "running":
                step = 0 if pd.isna(row["last_step"]) else row["last_step"]
                print(f"  {row['run']}: step {step} of {row['n_steps']}")
            elif row["error"]:
                print(f"  {row['run']}: {row['status']}: {row['error']}")
    return 0


def _ended_how(ended: pd.DataFrame) -> str:
    """What became of finished runs: how many had which outcome, or final accuracies."""
    if "outcome" in ended:
        counts = Counter(ended["outcome"]).items()
        return ", ".join(f"{n} {outcome or 'unmeasured'}" for outcome, n in counts)
    finals = {name: ended[f"final_{name}"].dropna() for name in ("clean", "noisy", "test")}
    return ", ".join(f"{name} {some.mean():.3f}" for name, some in finals.items() if len(some))


def write_tables(command: SweepResultsCommand) -> int:
    """Writes the tables of the sweeps, and prints their paths."""
    for folder in _existing(command):
        for path in write_results(folder):
            print(path)
    return 0


def chosen_engine(command: SweepRunCommand) -> Engine:
    """The engine that the flags describe.

    Raises:
        ConfigError: If a flag of Ray's is given to another engine, or a value is impossible.
    """
    if command.threads < 1:
        raise ConfigError(f"`threads` must be at least 1; got {command.threads}.")
    asked = {
        "address": command.ray_address,
        "num_cpus": command.num_cpus,
        "num_gpus": command.num_gpus,
        "memory": command.memory,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    if command.engine == "ray":
        return RayEngine(workers=command.workers, **given)
    if given:
        flag = "ray-address" if "address" in given else next(iter(given)).replace("_", "-")
        raise ConfigError(f"--{flag} is for --engine ray; the engine is 'local'.")
    return LocalEngine(command.workers)


def _folders(sweeps: Sequence[Sweep], out: Path | None) -> list[Path]:
    if out is not None and len(sweeps) == 1:
        return [out]
    return [(out or RUNS) / sweep.name for sweep in sweeps]


def _existing(command: SweepFoldersCommand) -> list[Path]:
    """The sweep folders that a command means."""
    if command.path.is_dir():
        if command.out is not None:
            raise ConfigError(f"--out belongs to a FILE; `{command.path}` is a folder.")
        return [command.path]
    sweeps = load_sweeps(command.path)
    folders = _folders(sweeps, command.out)
    for sweep, folder in zip(sweeps, folders, strict=True):
        stored = _stored(folder)
        if stored is not None and _runs(stored) != _runs(sweep):
            note(
                f"note: {folder} holds another plan than {command.path}: {_count_plan(stored)} "
                f"there, {_count_plan(sweep)} in the script. What follows is of the plan in the "
                f"folder; `interp-shortcuts sweep {command.path}` puts the script's in its place."
            )
    return folders


def _warn_of_dropped(sweep: Sweep, folder: Path) -> None:
    """Says so where a folder's plan has runs that the new plan has not."""
    stored = _stored(folder)
    if stored is None or stored.name != sweep.name:
        return
    kept = {job.folder_name for job in sweep.jobs}
    dropped = [job for job in stored.jobs if job.folder_name not in kept]
    if dropped:
        cells = dict.fromkeys(job.cell.label for job in dropped)
        note(
            f"warning: {folder}: the new plan drops {_count(len(dropped), 'run')} of "
            f"{_count(len(cells), 'cell')} of the plan before ({'; '.join(cells)}). Runs that are "
            "there are kept, but are in no table."
        )


def _stored(folder: Path) -> Sweep | None:
    """The plan in a folder; None without one, or if it cannot be read, which is said later."""
    try:
        return SweepFolder(folder).read_sweep()
    except StorageError:
        return None


def _runs(sweep: Sweep) -> list[tuple[str, str]]:
    return [(job.cell.label, job.config.run_id) for job in sweep.jobs]


def _count_plan(sweep: Sweep) -> str:
    return f"{_count(len(sweep.cells), 'cell')} and {_count(len(sweep.jobs), 'run')}"


def _print_plan(sweep: Sweep, folder: Path) -> list[Job]:
    """Prints the cells of a sweep; returns the jobs that are left."""
    home = SweepFolder(folder)
    left = [job for job in sweep.jobs if job_status(home, job)[0] not in ENDED]
    cells = f"{_count(len(sweep.cells), 'cell')} x {_count(len(sweep.seeds), 'seed')}"
    print(f"{sweep.name}: {cells} = {_count(len(sweep.jobs), 'run')}, in {folder}")
    width = max(len(cell.label) for cell in sweep.cells)
    for cell in sweep.cells:
        jobs = [job for job in sweep.jobs if job.cell is cell]
        todo = sum(job.cell is cell for job in left)
        cost = _operations(run_flops(jobs[0].config))
        ended = len(jobs) - todo
        print(f"  {cell.label:<{width}}  {ended} of {len(jobs)} runs ended; {cost} a run")
    return left


def _print_cost(left: Sequence[Job], command: SweepRunCommand) -> None:
    """Times the largest setting where it can be, and prints what the runs that are left cost."""
    flops = sum(run_flops(job.config) for job in left)
    largest = max(left, key=lambda job: step_flops(job.config))
    print(f"left: {_count(len(left), 'run')}, {_operations(flops)}")
    note(f"timing {TIMED_STEPS} steps of the largest setting ({largest.cell.label}) ...")
    timing = time_steps(largest.config, threads=command.threads)
    at_once = command.workers or max(1, cpu_count() // command.threads)
    at_once = min(at_once, len(left))
    print(f"{_timed(timing)}: {_time(timing.seconds(flops))} of work,")
    print(f"  {_time(timing.seconds(flops) / at_once)} with {_count(at_once, 'worker')} at once")
    if _has_gpu():
        timing = time_steps(largest.config, device="cuda", threads=command.threads)
        print(f"{_timed(timing)}: {_time(timing.seconds(flops))} one run at a time")
    else:
        print("GPU: there is none here to time; for another device divide the operations by the")
        print("  rate that `--dry-run` shows on it")
    note(
        "Operations by the formula of interp_shortcuts/sweeps/cost.py, other cells scaled by them; "
        "small models reach a lower rate, and starting a worker takes some seconds more."
    )


def _timed(timing: Timing) -> str:
    rate = f"{timing.rate / 1e9:.3g} GFLOP/s"
    return f"{timing.device}, {timing.seconds_per_step * 1e3:.3g} ms a step there ({rate})"


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _operations(flops: int) -> str:
    return f"{flops / 1e12:.3g} TFLOP"


def _time(seconds: float) -> str:
    return str(timedelta(seconds=max(1, round(seconds))))


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
