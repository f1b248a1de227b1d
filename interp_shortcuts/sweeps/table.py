"""The results of a sweep as one tidy table: a row for every run, whatever became of it.

Settings come from the plan; status, events and accuracies from the run folders, by way of
`timelines/from_curves`. Statistics over the rows are left to others. Loads no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from interp_shortcuts.errors import ConfigError, InterpShortcutsError, StorageError
from interp_shortcuts.runs.config import RunConfig
from interp_shortcuts.runs.run import Run
from interp_shortcuts.runs.store import RunFolder, replacing
from interp_shortcuts.sweeps.attempts import Attempt
from interp_shortcuts.sweeps.columns import COLUMNS as COLUMNS
from interp_shortcuts.sweeps.columns import (
    JOB_STATUSES,
    NOISY_FINALS,
    OF_NOISE,
    columns_among,
    columns_of,
    typed,
)
from interp_shortcuts.sweeps.folder import SweepFolder
from interp_shortcuts.sweeps.plan import Job, Sweep
from interp_shortcuts.timelines.from_curves import run_phases
from interp_shortcuts.timelines.phases import OUTCOMES


def results(folder: Path | str) -> pd.DataFrame:
    """The table of a sweep as it stands, also while it runs.

    Args:
        folder: The sweep folder, the one with sweep.json.

    Returns:
        One row a run, in the order of cells and then seeds, with the columns

        - `cell`, `seed`, `run` (its folder, relative to the sweep's), `run_id`;
        - `status` (one of `JOB_STATUSES`) and `error` (why it failed, diverged, could not be
          measured or will be tried once more, or "");
        - the setting: `rule`, `ratio`, `length`, `n_integers`, `n_train`, `n_layers`, `n_heads`,
          `weight_decay`, `n_steps`, and any other field of the grid;
        - `chance` (1 / classes);
        - `outcome` (one of `OUTCOMES`), `generalised` (adversarial accuracy was 1.0 at any
          evaluation) and `lasting` (generalised and not lost): empty or missing unless the run is
          finished and its curves are whole;
        - the steps of `shortcut_learned`, `saturation`, `onset`, `completion` and `lost` (missing
          where there is none), and `last_step`, the last evaluation: of unfinished runs too, so
          far;
        - `final_validation`, `final_adversarial` and `best_adversarial` (fractions in [0, 1]) and
          `n_adversarial` (examples asked);
        - `seconds` of training (missing if that is not known).

        Under label noise the setting is `arithmetic`, `modulus`, `noise`, `train_fraction`,
        `width`, `activation`, `optimizer`, `lr`, `weight_decay`, `n_steps` and the grid's other
        fields, and the results are `chance`, `last_step`, the accuracies at the last evaluation
        `final_clean`, `final_noisy`, `final_noisy_true` and `final_test` (missing for a group
        without examples), `best_test` and `seconds`. What is no field of the model is missing.

    Raises:
        StorageError: If it is no sweep folder.
    """
    home = SweepFolder(Path(folder))
    sweep = home.read_sweep()
    order = {cell.label: index for index, cell in enumerate(sweep.cells)}
    jobs = sorted(sweep.jobs, key=lambda job: order[job.cell.label])
    rows = [_row(home, job, sweep) for job in jobs]
    return typed(rows, sweep.fields, columns_of(sweep.base.task))


def write_results(folder: Path | str) -> tuple[Path, Path]:
    """Writes results.csv and results.parquet into a sweep folder, and returns their paths."""
    home = SweepFolder(Path(folder))
    table = results(home.path)
    with replacing(home.csv_path) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n")
    with replacing(home.parquet_path) as temporary:
        table.to_parquet(temporary, index=False)
    return home.csv_path, home.parquet_path


def read_results(path: Path | str) -> pd.DataFrame:
    """The table in a CSV or Parquet file that `write_results` wrote, with its types.

    Raises:
        StorageError: If the file is missing or unreadable, lacks a column, or has a status or an
            outcome that there is not.
    """
    path = Path(path)
    if not path.is_file():
        raise StorageError(f"'{path}' is missing; write it with `interp-shortcuts sweep results`.")
    try:
        if path.suffix == ".parquet":
            table = pd.read_parquet(path)
        else:
            table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (ValueError, OSError) as error:  # also pandas' and pyarrow's own, and bytes of no text
        raise StorageError(
            f"'{path}' cannot be read as a table ({str(error).strip()}). Give a results.csv or "
            "results.parquet, as `interp-shortcuts sweep results` writes them."
        ) from error
    columns = columns_among(table.columns)
    missing = [name for name in columns.names if name not in table]
    if missing:
        raise StorageError(
            f"'{path}' is no table of results: it lacks the column"
            f"{'s' if len(missing) > 1 else ''} {', '.join(f'`{name}`' for name in missing)}."
        )
    others = [name for name in table.columns if name not in columns.names]
    try:
        table = typed(table.to_dict("records"), others, columns)
    except (ValueError, TypeError) as error:
        raise StorageError(f"'{path}' has a value of the wrong type: {error}.") from error
    for name, known in (("status", JOB_STATUSES), ("outcome", ("", *OUTCOMES))):
        unknown = sorted(set(table[name]) - set(known)) if name in table else []
        if unknown:
            raise StorageError(
                f"'{path}': `{name}` must be one of {', '.join(map(repr, known))}; "
                f"got {unknown[0]!r}."
            )
    return table


def job_status(home: SweepFolder, job: Job) -> tuple[str, str]:
    """How a job stands, as one of `JOB_STATUSES`, and why it failed or diverged."""
    attempts = home.attempts(job).read()
    run, status, error = _open(home, job, attempts)
    return status, error if run is None else _reason(run, status, attempts)


def _row(home: SweepFolder, job: Job, sweep: Sweep) -> dict[str, Any]:
    attempts = home.attempts(job).read()
    run, status, error = _open(home, job, attempts)
    setting, columns = _setting(job.config), columns_of(job.config.task)
    row = {
        "cell": job.cell.label,
        "seed": job.seed,
        "run": f"runs/{job.folder_name}",
        "run_id": job.config.run_id,
        "status": status,
        "error": error,
        **{name: setting.get(name) for name in (*columns.setting, *sweep.fields)},
        "chance": _chance(job.config),
        "outcome": "",
        "n_adversarial": setting.get("n_adversarial"),
    }
    if run is None:
        return row
    row |= {"error": _reason(run, status, attempts), "seconds": _seconds(run, attempts)}
    try:
        if columns is OF_NOISE:
            return row | _memorised(run)
        return row | _measured(run, finished=status == "finished")
    except InterpShortcutsError as damage:  # how it ended is known, what it learned is not
        return row | {"error": row["error"] or str(damage)}


def _measured(run: Run, *, finished: bool) -> dict[str, Any]:
    """What the learning curves say; the outcome only of a run that is finished."""
    curves = run.curves()
    phases = run_phases(run)
    steps = {name: phases.event(name).step for name in ("shortcut_learned", "saturation", "lost")}
    found = {
        "chance": phases.chance,
        **steps,
        "onset": phases.onset,
        "completion": phases.completion,
        "last_step": phases.last_step,
        "final_validation": _at_end(curves, "validation"),
        "final_adversarial": _at_end(curves, "adversarial"),
        "best_adversarial": curves.loc[curves["split"] == "adversarial", "accuracy"].max(),
    }
    if phases.n_adversarial is not None:
        found["n_adversarial"] = phases.n_adversarial
    if finished:
        known = bool(phases.n_adversarial) and pd.notna(found["best_adversarial"])
        found["outcome"] = phases.outcome
        found["generalised"] = phases.completion is not None if known else None
        found["lasting"] = (
            phases.completion is not None and steps["lost"] is None if known else None
        )
        if not known:
            found["error"] = f"no adversarial accuracy in '{RunFolder(run.path).curves_path}'"
    return found


def _memorised(run: Run) -> dict[str, Any]:
    """What the learning curves say under label noise, also of a run that is not finished."""
    curves = run.curves()
    return {
        "last_step": curves["step"].max(),
        **{name: _at_end(curves, split) for name, split in NOISY_FINALS.items()},
        "best_test": curves.loc[curves["split"] == "test", "accuracy"].max(),
    }


def _at_end(curves: pd.DataFrame, split: str) -> float | None:
    accuracies = curves.loc[curves["split"] == split, "accuracy"]
    return float(accuracies.iloc[-1]) if len(accuracies) else None


def _open(home: SweepFolder, job: Job, attempts: list[Attempt]) -> tuple[Run | None, str, str]:
    """The run, its status, and the error; without a run, the status that the attempts give."""
    path = home.run_path(job)
    gave_up = bool(attempts) and _broke(attempts[-1]) and not attempts[-1].again
    if not RunFolder(path).looks_like_a_run:
        if gave_up:
            return None, "failed", attempts[-1].error
        return None, "pending", _tried_again(attempts)
    try:
        run = Run.open(path)
        if run.run_id != job.config.run_id:
            return None, "failed", f"'{path}' holds another run (its run id is {run.run_id})"
        status = run.status
    except InterpShortcutsError as damage:
        return None, "failed", str(damage)
    if status in ("interrupted", "stopped"):
        status = "failed" if gave_up else "stopped"
    elif status == "failed" and _tried_again(attempts):
        status = "stopped"
    return run, status, ""


def _broke(attempt: Attempt) -> bool:
    return attempt.status in ("failed", "lost")


def _tried_again(attempts: list[Attempt]) -> str:
    """That a run whose last attempt broke has another one, and why; else empty."""
    last = attempts[-1] if attempts else None
    if last is None or not (_broke(last) and last.again):
        return ""
    return f"will be tried once more; before: {last.error or last.status}"


def _reason(run: Run, status: str, attempts: list[Attempt]) -> str:
    if status == "stopped":
        return _tried_again(attempts)
    if status not in ("failed", "diverged"):
        return ""
    said = attempts[-1].error if attempts and status == "failed" else ""
    return said or str(run.manifest.get("error") or "")


def _seconds(run: Run, attempts: list[Attempt]) -> float | None:
    """The attempts together; for a run trained otherwise and in one go, by its manifest."""
    if attempts:
        known = [attempt.seconds for attempt in attempts if attempt.seconds is not None]
        return round(sum(known), 3) if len(known) == len(attempts) else None
    manifest = run.manifest
    if manifest.get("resumed") or not manifest.get("finished"):
        return None
    begun, ended = (datetime.fromisoformat(manifest[key]) for key in ("started", "finished"))
    return (ended - begun).total_seconds()


def _chance(config: RunConfig) -> float | None:
    try:
        return 1 / config.spec.n_classes
    except ConfigError:  # a rule of the user's own, known where the sweep was started
        return None


def _setting(config: RunConfig) -> dict[str, Any]:
    """Every field by its flat name."""
    flat: dict[str, Any] = {}
    for name, value in config.model_dump(mode="json").items():
        flat |= value if isinstance(value, Mapping) else {name: value}
    return flat
