"""The table of a sweep: a row for every run, with what its folder says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from interp_shortcuts.errors import StorageError
from interp_shortcuts.presets import smoke
from interp_shortcuts.runs.curves import append_curve
from interp_shortcuts.runs.run import Run
from interp_shortcuts.runs.store import MANIFEST_FORMAT, RunFolder
from interp_shortcuts.sweeps.folder import SweepFolder
from interp_shortcuts.sweeps.plan import Job, Sweep
from interp_shortcuts.sweeps.rates import generalisation_rates
from interp_shortcuts.sweeps.table import (
    COLUMNS,
    job_status,
    read_results,
    results,
    write_results,
)
from interp_shortcuts.timelines import run_phases

SWEEP = Sweep(
    name="s",
    base=smoke(n_steps=50),
    grid={"normalization": ["none", "LN"], "batch_size": [None, 8]},
    seeds="0-1",
)
SHORTCUT, RULE = (1.0, 0.0), (1.0, 1.0)
"""Validation and adversarial accuracy."""


@pytest.fixture
def home(tmp_path: Path) -> SweepFolder:
    folder = SweepFolder(tmp_path / "s")
    folder.write_sweep(SWEEP)
    return folder


def write_run(
    home: SweepFolder, job: Job, curve: list[tuple[float, float]], *, status: str, **manifest: str
) -> None:
    """A run with an evaluation every 10 steps, as training leaves it, without its weights."""
    folder = RunFolder(home.run_path(job))
    folder.create()
    folder.write_config(job.config)
    folder.write_manifest(
        {
            "format": MANIFEST_FORMAT,
            "run_id": job.config.run_id,
            "status": status,
            "step": 10 * (len(curve) - 1),
            **manifest,
        }
    )
    for index, (validation, adversarial) in enumerate(curve):
        score = {"loss": 0.01, "shortcut_rate": 0.5, "n": 32}
        append_curve(
            folder.curves_path,
            {
                "step": 10 * index,
                "train": {**score, "accuracy": 0.9},
                "consistent": {**score, "accuracy": 1.0},
                "anti": {**score, "accuracy": 0.0},
                "validation": {**score, "accuracy": validation},
                "adversarial": {**score, "accuracy": adversarial, "n": 31},
            },
        )


def row(home: SweepFolder, job: Job) -> pd.Series:
    return results(home.path).set_index("run").loc[f"runs/{job.folder_name}"]


def missing(line: pd.Series, *names: str) -> bool:
    return all(pd.isna(line[name]) for name in names)


def test_columns_are_pinned(home: SweepFolder):
    expected = (
        "cell seed run run_id status error rule ratio length n_integers n_train n_layers n_heads "
        "weight_decay n_steps normalization batch_size chance outcome generalised lasting "
        "shortcut_learned saturation onset completion lost last_step final_validation "
        "final_adversarial best_adversarial n_adversarial seconds"
    )
    assert list(results(home.path).columns) == expected.split()
    assert [name for name in expected.split() if name in COLUMNS] == list(COLUMNS)


def test_runs_that_are_not_there_have_rows(home: SweepFolder):
    table = results(home.path)
    assert list(table["cell"].unique()) == [cell.label for cell in SWEEP.cells]
    assert list(table["seed"]) == [0, 1] * 4
    assert set(table["status"]) == {"pending"}
    assert set(table["outcome"]) == set(table["error"]) == {""}
    assert list(table["run_id"]) == [
        cell_job.config.run_id
        for cell in SWEEP.cells
        for cell_job in SWEEP.jobs
        if cell_job.cell is cell
    ]
    first = table.iloc[0]
    assert (first["chance"], first["n_train"], first["normalization"]) == (0.5, 96, "none")
    assert missing(first, "generalised", "lasting", "last_step", "seconds", "batch_size")
    assert table["batch_size"].iloc[2] == 8


def test_a_finished_run_has_its_events_and_outcome(home: SweepFolder):
    job = SWEEP.jobs[0]
    write_run(
        home,
        job,
        [(0.5, 0.5), SHORTCUT, SHORTCUT, (0.98, 0.7), RULE, (0.97, 0.96)],
        status="finished",
        started="2026-01-01T00:00:00+00:00",
        finished="2026-01-01T00:01:30+00:00",
    )
    line = row(home, job)
    assert (line["status"], line["outcome"]) == ("finished", "generalised")
    assert (line["generalised"], line["lasting"]) == (True, True)
    assert (line["shortcut_learned"], line["saturation"], line["onset"]) == (10, 0, 20)
    assert (line["completion"], line["last_step"]) == (40, 50)
    assert (line["final_validation"], line["final_adversarial"]) == (0.97, 0.96)
    assert (line["best_adversarial"], line["n_adversarial"], line["seconds"]) == (1.0, 31, 90.0)
    assert missing(line, "lost")
    phases = run_phases(Run.open(home.run_path(job)))
    assert (phases.outcome, phases.onset, phases.completion) == ("generalised", 20, 40)


def test_one_evaluation_at_1_is_generalised_and_a_lost_rule_does_not_last(home: SweepFolder):
    job = SWEEP.jobs[0]
    curve = [SHORTCUT, SHORTCUT, (1.0, 0.8), RULE, (1.0, 0.4), (1.0, 0.3)]
    write_run(home, job, curve, status="finished")
    line = row(home, job)
    assert line["outcome"] == "transient"
    assert (line["generalised"], line["lasting"], line["lost"]) == (True, False, 40)


def test_just_below_1_is_not_generalised(home: SweepFolder):
    job = SWEEP.jobs[0]
    write_run(home, job, [SHORTCUT, SHORTCUT, (1.0, 0.999), (1.0, 0.999)], status="finished")
    line = row(home, job)
    assert (line["outcome"], line["generalised"], line["lasting"]) == ("partial", False, False)


@pytest.mark.parametrize(
    ("status", "shown"),
    [("interrupted", "stopped"), ("stopped", "stopped"), ("diverged", "diverged")],
)
def test_a_run_that_is_not_finished_has_events_but_no_outcome(
    home: SweepFolder, status: str, shown: str
):
    job = SWEEP.jobs[0]
    written = "running" if status == "interrupted" else status
    write_run(home, job, [SHORTCUT, SHORTCUT, RULE], status=written, error="why")
    line = row(home, job)
    assert (line["status"], line["outcome"]) == (shown, "")
    assert (line["completion"], line["last_step"]) == (20, 20)
    assert missing(line, "generalised", "lasting")
    assert line["error"] == ("why" if status == "diverged" else "")


def test_attempts_say_why_a_run_failed_and_how_long_it_trained(home: SweepFolder):
    never, lost, done = SWEEP.jobs[:3]
    for job, ends in (
        (never, ["failed", "failed"]),
        (lost, ["lost", "lost"]),
        (done, ["stopped", "finished"]),
    ):
        for status in ends:
            home.attempts(job).begin(engine="local")
            home.attempts(job).end(status, error=f"it {status}", seconds=2.5)
    write_run(home, lost, [SHORTCUT], status="running")
    write_run(home, done, [SHORTCUT, SHORTCUT], status="finished")
    assert (row(home, never)["status"], row(home, never)["error"]) == ("failed", "it failed")
    assert (row(home, lost)["status"], row(home, lost)["error"]) == ("failed", "it lost")
    assert (row(home, done)["status"], row(home, done)["error"]) == ("finished", "")
    assert row(home, done)["seconds"] == 5.0


def test_what_breaks_and_is_tried_once_more_is_not_failed_yet(home: SweepFolder):
    never, begun, failed = SWEEP.jobs[:3]
    for job, status in ((never, "lost"), (begun, "lost"), (failed, "failed")):
        home.attempts(job).begin(engine="local")
        home.attempts(job).end(status, error=f"it {status}", seconds=2.5, again=True)
    write_run(home, begun, [SHORTCUT], status="running")
    write_run(home, failed, [SHORTCUT], status="failed", error="it failed")
    for job, status in ((never, "pending"), (begun, "stopped"), (failed, "stopped")):
        assert row(home, job)["status"] == job_status(home, job)[0] == status
        assert row(home, job)["error"].startswith("will be tried once more; before: it ")
        assert job_status(home, job)[1] == row(home, job)["error"]
    home.attempts(begun).begin(engine="local")
    home.attempts(begun).end("lost", error="it lost", seconds=2.5)
    assert (row(home, begun)["status"], row(home, begun)["error"]) == ("failed", "it lost")


def unmeasured(home: SweepFolder, job: Job) -> str:
    """The error of a run that is finished and counts nowhere."""
    line = row(home, job)
    assert (line["status"], line["generalised"] is pd.NA) == ("finished", True)
    assert missing(line, "lasting")
    rates = generalisation_rates(results(home.path)).set_index("cell").loc[job.cell.label]
    assert (rates["n"], rates["unmeasured"], rates["generalised"]) == (0, 1, 0)
    return str(line["error"])


def test_a_finished_run_without_its_curves_is_unmeasured(home: SweepFolder):
    job = SWEEP.jobs[0]
    write_run(home, job, [SHORTCUT, RULE, SHORTCUT], status="finished")
    path = RunFolder(home.run_path(job)).curves_path
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    assert "ends at step 10, though the run ended at step 20" in unmeasured(home, job)
    path.write_text("".join(lines[:-1]) + "{\n")
    assert "line 3 is damaged" in unmeasured(home, job)
    path.unlink()
    assert "curves.jsonl' is missing" in unmeasured(home, job)
    for line in lines:
        record = json.loads(line)
        del record["adversarial"]
        append_curve(path, record)
    assert "no adversarial accuracy in" in unmeasured(home, job)


def test_a_damaged_run_is_unmeasured_and_a_foreign_one_failed(home: SweepFolder):
    damaged, foreign = SWEEP.jobs[:2]
    write_run(home, damaged, [SHORTCUT, SHORTCUT], status="finished")
    with RunFolder(home.run_path(damaged)).curves_path.open("a") as file:
        file.write("{\n")
    write_run(home, SWEEP.jobs[2], [SHORTCUT], status="finished")
    shutil.copytree(home.run_path(SWEEP.jobs[2]), home.run_path(foreign))
    assert (row(home, damaged)["status"], row(home, foreign)["status"]) == ("finished", "failed")
    assert "line 3 is damaged" in row(home, damaged)["error"]
    assert "holds another run" in row(home, foreign)["error"]
    assert row(home, damaged)["outcome"] == row(home, foreign)["outcome"] == ""


def test_tables_are_read_back_as_they_were(home: SweepFolder):
    write_run(home, SWEEP.jobs[0], [SHORTCUT, SHORTCUT, RULE], status="finished")
    write_run(home, SWEEP.jobs[2], [SHORTCUT], status="failed", error='a "b", c')
    table = results(home.path)
    for path in write_results(home.path):
        pd.testing.assert_frame_equal(read_results(path), table)
    assert str(table["generalised"].dtype) == "boolean"
    assert str(table["onset"].dtype) == str(table["batch_size"].dtype) == "Int64"
    assert str(table["final_adversarial"].dtype) == "Float64"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("outcome,", "outcom,", r"it lacks the column `outcome`\."),
        ("pending", "waiting", r"`status` must be one of 'pending', .*; got 'waiting'"),
        ("max_parity,0.9", "max_parity,much", r"has a value of the wrong type: .*much"),
    ],
)
def test_a_file_that_is_no_table_says_why(home: SweepFolder, before: str, after: str, message: str):
    path, _ = write_results(home.path)
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(StorageError, match=message):
        read_results(path)
    with pytest.raises(StorageError, match=r"is missing; write it with"):
        read_results(home.path / "none.csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"a,b\n1,2,3,4\n1,2,3,4,5\n"),
        ("a.csv", b""),
        ("a.csv", b"\xff\xfe\x00"),
        ("a.parquet", b"no parquet"),
    ],
)
def test_a_file_that_cannot_be_read_says_what_to_give(tmp_path: Path, name: str, content: bytes):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StorageError, match=rf"{name}' cannot be read as a table .* results\.csv"):
        read_results(tmp_path / name)


def test_a_rule_that_this_process_does_not_know(home: SweepFolder):
    data = json.loads(home.plan_path.read_text())
    data["sweep"]["base"]["task"]["rule"] = "somebody's"
    home.plan_path.write_text(json.dumps(data))
    assert results(home.path)["chance"].isna().all()
